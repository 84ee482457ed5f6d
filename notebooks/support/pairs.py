"""A against B: settings of one server, servers of one run, or two runs, with the verdicts of `kvref bench compare`.

The unit is a repetition. In one run A and B were measured in turn, so that repetition i of both is a pair.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from kvref_bench.errors import BenchError
from kvref_bench.runs import folder
from kvref_bench.runs.compare import THRESHOLD, compare
from kvref_bench.runs.ratio import MEASURES, NO_DIFFERENCE, TOO_FEW
from kvref_bench.runs.ratio import compare as compare_values
from kvref_bench.runs.selection import Selection
from support import style
from support.answer import Answer, cannot_tell, command, figures
from support.gather import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from kvref_bench.runs.compare import Compared
    from kvref_bench.runs.ratio import Ratio
    from kvref_bench.runs.run import Run
    from support.gather import Data

COLUMNS: Final = (
    "comparison", "on", "sessions", "measure", "a", "b", "ratio", "low", "high", "p", "superiority", "pairs", "verdict",
)  # fmt: skip
COLOURS: Final = {NO_DIFFERENCE: style.MUTED, TOO_FEW: "#b8bec5", "faster": "#009e73", "slower": "#d55e00"}
LIMITS: Final = (
    "“No difference shown” is not “equal”: with few repetitions only large differences can be shown.",
    "Many comparisons at 95 % show about one difference in twenty where there is none.",
)
NO_PAIR: Final = "No two sides have a valid point in common here."
NO_OTHER: Final = "There is no earlier run of this scenario under the same conditions."
UNIT: Final = "Operations per second, ratio of medians with 95 % interval; the band is what counts as none"
# Settings by what readers call them.
SHORT: Final = {
    "daemon_memcached_r_batch_size": "r_batch",
    "daemon_memcached_w_batch_size": "w_batch",
    "innodb_api_trx_level": "trx_level",
    "innodb_api_enable_binlog": "binlog",
    "innodb_api_bk_commit_interval": "bk_commit",
}


def _row(comparison: str, on: str, sessions: int, found: Ratio) -> dict[str, Any]:
    low, high = (np.nan if each is None else each for each in (found.low, found.high))
    return {
        "comparison": comparison, "on": on, "sessions": sessions, "measure": found.measure, "a": found.a, "b": found.b,
        "ratio": found.ratio, "low": low, "high": high, "p": np.nan if found.p is None else found.p,
        "superiority": found.superiority, "pairs": min(found.repetitions), "verdict": found.verdict,
    }  # fmt: skip


def of_settings(run: Run, factor: str) -> pd.DataFrame:
    """Compare each value of a setting with its lowest, for each server, series and number of sessions, in pairs.

    run: of which valid points of the closed loop are used. factor: column of its points; other settings are at their
    lowest.
    """
    points = _plain(run, factor).points
    points = points[points["valid"]]
    names, rows = _labels(run), []
    series_with = points.loc[points[factor].notna(), "series"].nunique() if factor in points else 0
    values = sorted(int(each) for each in points.get(factor, pd.Series(dtype=float)).dropna().unique())
    for server, series, sessions in sorted(
        set(points[["server", "series", "sessions"]].itertuples(index=False, name=None))
    ):
        here = (points["server"] == server) & (points["series"] == series) & (points["sessions"] == sessions)
        for value in values[1:]:
            a, b = (points[here & (points[factor] == each)].set_index("rep") for each in (value, values[0]))
            what = f"{_short(factor)} {value} : {values[0]}"
            found = _measured(a, b, f"{run.id} {server} {series} {sessions} {what}")
            on = f"{names[server]}, {series}" if series_with > 1 else names[server]
            rows += [_row(what, on, int(sessions), each) for each in found]
    return pd.DataFrame(rows, columns=COLUMNS)


def _plain(run: Run, but: str = "") -> Run:
    """Keep the closed loop's points that have every setting, but one, at its lowest."""
    points = run.points[run.points["rate"].isna()]
    for other in [name for name in run.factors if name != but]:
        points = points[points[other].isna() | (points[other] == points[other].min())]
    return replace(run, points=points)


def _without_settings(run: Run) -> Run:
    """Omit series with server settings if there are series with the same commands without settings."""
    spec = run.info["scenario"]["spec"]
    own = {each["name"]: each.get("settings") for each in spec["series"]}
    bare = [name for name, settings in own.items() if not (spec.get("settings") if settings is None else settings)]
    kept = run.points[run.points["series"].isin(bare)]
    return replace(run, points=kept) if len(kept) else run


def _measured(a: pd.DataFrame, b: pd.DataFrame, seed: str) -> list[Ratio]:
    found = []
    for measure in MEASURES:
        first, second = a[measure.column].dropna(), b[measure.column].dropna()
        both = first.index.intersection(second.index)
        if len(both):
            one, other = first[both].tolist(), second[both].tolist()
            found.append(compare_values(measure, one, other, pairs=True, threshold=THRESHOLD, seed=seed))
    return found


def of_servers(run: Run) -> pd.DataFrame:
    """Compare every two servers of a run, with the same sessions and every setting at its lowest, in pairs."""
    run, rows = _without_settings(_plain(run)), []
    names = _labels(run)
    for one, other in itertools.combinations(sorted(run.points["server"].unique(), reverse=True), 2):
        try:
            found = compare(Selection.of(run, one), Selection.of(run, other))
        except BenchError:  # no valid point in common: there is no row
            continue
        what = f"{names[one]} : {names[other]}"
        rows += _rows(what, found.compared, run)
    return pd.DataFrame(rows, columns=COLUMNS)


def of_runs(newer: Run, older: Run) -> pd.DataFrame:
    """Compare a run with an earlier one of the same scenario, server by server: not pairs, they lie apart in time.

    Raises BenchError: the runs were made under other conditions.
    """
    newer, older, rows = _without_settings(_plain(newer)), _without_settings(_plain(older)), []
    names = _labels(newer)
    for server in sorted(set(newer.points["server"]) & set(older.points["server"])):
        found = compare(Selection.of(newer, server), Selection.of(older, server))
        rows += _rows(f"{names[server]}, now : then", found.compared, newer)
    return pd.DataFrame(rows, columns=COLUMNS)


def _rows(what: str, compared: Sequence[Compared], run: Run) -> list[dict[str, Any]]:
    several = run.points["series"].nunique() > 1
    return [
        _row(what, str(each.place.get("series", "")) if several else "", int(each.place["sessions"]), found)
        for each in compared
        for found in each.ratios
    ]


def _labels(run: Run) -> dict[str, str]:
    return {str(each["name"]): label(each) for each in run.info["servers"]}


def _short(factor: str) -> str:
    name = factor.removeprefix("factor_")
    return SHORT.get(name, name)


def throughput(table: pd.DataFrame, most: int = 13) -> pd.DataFrame:
    """Keep the ratios of throughput; where they are more than `most`, of each comparison the largest sessions."""
    rows = table[table["measure"] == "throughput"]
    lines = max(rows.groupby(["comparison", "on"]).ngroups, 1)
    kept = rows.sort_values("sessions").groupby(["comparison", "on"], sort=False).tail(max(most // lines, 1))
    return kept.sort_values(["comparison", "on", "sessions"]).head(most)


def draw(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw ratios with their intervals, one below the other; the band is what counts as no difference."""
    records = rows.to_dict("records")
    places = [len(records) - 1 - place for place in range(len(records))]
    axes.axvspan(1 / (1 + THRESHOLD), 1 + THRESHOLD, color=style.GRID, zorder=0)
    axes.axvline(1, color=style.INK, linewidth=1.5)
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 13}
    for place, row in zip(places, records, strict=True):
        colour = COLOURS[row["verdict"]]
        if np.isfinite(row["low"]):
            axes.plot(
                [row["low"], row["high"]], [place] * 2, color=colour, linewidth=6, solid_capstyle="butt", alpha=0.45
            )
        axes.plot(row["ratio"], place, "o", color=colour, markersize=11, markeredgecolor="white")
        axes.text(1.03, place, f"{row['ratio']:.2f}", color=colour, fontweight="bold", **beside)
        axes.text(1.2, place, row["verdict"], color=colour, **beside)
        axes.text(1.74, place, f"{row['superiority']:.2f}", color=colour, **beside)
    for x, head in ((1.03, "A : B"), (1.2, "verdict on A"), (1.66, "P(A > B)")):
        axes.text(x, len(records) - 0.3, head, color=style.MUTED, **beside)
    axes.set_yticks(places, [_words(row) for row in records], fontsize=12.5)
    axes.set(xscale="log", ylim=(-0.7, len(records) - 0.3), xlabel="A : B")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(FixedLocator(_ticks(low, high)))
    axes.set_xlim(low, high)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _ticks(low: float, high: float) -> list[float]:
    """Return ratios to name on the axis, 1 among them: tenths, or the usual steps where the axis is long."""
    if high < 2.5 * low:
        step = 0.05 if high < 1.35 * low else 0.1 if high < 1.8 * low else 0.2
        return [1 + step * number for number in range(-20, 21) if step * number > -1]
    return [10**power * step for power in range(-3, 4) for step in ((1, 2, 5) if high < 40 * low else (1,))]


def _words(row: Mapping[Any, Any]) -> str:
    sessions = f"{row['sessions']} session" + "s" * (row["sessions"] > 1)
    return ", ".join(filter(None, (row["comparison"], row["on"], sessions)))


def every_setting(data: Data | None) -> pd.DataFrame:
    """Compare the values of each setting that a run of the scenario varied."""
    tables = [of_settings(run, factor) for run in (data.runs if data else ()) for factor in run.factors]
    return _joined(tables)


def every_server(data: Data | None) -> pd.DataFrame:
    """Compare the servers of each run of the scenario."""
    return _joined([of_servers(run) for run in (data.runs if data else ())])


def every_run(where: Path, scenario: str) -> pd.DataFrame:
    """Compare the newest run of a scenario with the one before; nothing where conditions differ or it is alone."""
    found = [folder.read(path) for path in folder.find(where, scenario)[-2:]]
    try:
        return of_runs(found[1], found[0]) if len(found) == 2 else _joined([])
    except BenchError:  # another machine, scale or version: not to be compared
        return _joined([])


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [each for each in tables if len(each)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=COLUMNS)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of comparisons with three figures."""
    digits = {name: table[name].map(figures) for name in ("a", "b", "ratio", "low", "high", "p")}
    return table.assign(**digits, superiority=table["superiority"].map(lambda value: f"{value:.2f}"))


def page(table: pd.DataFrame, data: Data | None, missing: str = NO_PAIR) -> style.Slide:
    """Draw the ratios of throughput in a table of comparisons, with what they say; `missing`: where there is none."""
    rows, source = throughput(table), data.source if data else "Source: none."
    if rows.empty:
        return style.nothing("Nothing to compare", missing, source)
    made, (axes,) = style.slide(finding(table), source, subtitle=UNIT, left=0.4, right=0.7)
    draw(axes, rows)
    return made


def finding(table: pd.DataFrame) -> str:
    """Say for a chart what a table of comparisons shows in throughput."""
    rows = table[table["measure"] == "throughput"]
    differing = rows[rows["verdict"].isin(["faster", "slower"])]
    few = int((rows["verdict"] == TOO_FEW).sum())
    if len(rows) and few == len(rows):
        return f"Fewer than 5 repetitions: none of the {len(rows)} ratios has an interval"
    if differing.empty:
        return f"None of {len(rows)} ratios shows a difference" + (f"; {few} have too few repetitions" if few else "")
    return f"{len(differing)} of {len(rows)} ratios show a difference; the largest: {_largest(differing)}"


def _largest(differing: pd.DataFrame) -> str:
    top = differing.iloc[int(np.abs(np.log(differing["ratio"].to_numpy(dtype=float))).argmax())]
    return f"{_words(top.to_dict())}: {top['ratio']:.2f} ({top['low']:.2f} to {top['high']:.2f})"


def conclude(tables: Sequence[pd.DataFrame]) -> Answer:
    """Answer how many comparisons show a difference in throughput, and which is the largest."""
    every = _joined(tables)
    rows = every[every["measure"] == "throughput"]
    if rows.empty:
        why = "no two sides have a valid point in common"
        return cannot_tell(why, command=command("ro-1m-int", sql=True), limits=LIMITS)
    counts = rows["verdict"].value_counts()
    differing = rows[rows["verdict"].isin(["faster", "slower"])]
    none = f"{counts.get(NO_DIFFERENCE, 0)} show none, {counts.get(TOO_FEW, 0)} have too few repetitions"
    largest = f"; the largest: {_largest(differing)}" if len(differing) else ""
    known = len(differing) + int(counts.get(NO_DIFFERENCE, 0)) > 0
    said = f"{len(differing)} of {len(rows)} comparisons show a difference in throughput, {none}{largest}."
    return Answer(said, LIMITS, known)
