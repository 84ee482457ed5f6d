"""`kvref bench compare A B`: every point that both have, A against B, as the ratio of medians over repetitions.

The unit is a repetition, never a request (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, 2013).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from rich.table import Table

from kvref_bench.errors import BenchError
from kvref_bench.runs import folder
from kvref_bench.runs.gates import REPETITIONS
from kvref_bench.runs.tables import FACTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kvref_bench.runs.folder import Run

THRESHOLD: Final = 0.05
RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
NOT_INTERLEAVED: Final = (
    "not interleaved: A and B were measured at different times, what changed in between is in the ratio"
)
NO_DIFFERENCE: Final = "no difference shown"
TOO_FEW: Final = "too few repetitions"
# pyperf's rule: figures of another machine or another Python are no figures of this one.
MUST_AGREE: Final = (
    ("scenario", "name"), ("scenario", "version"), ("scenario", "spec_sha256"), ("machine", "cpu_model"),
    ("machine", "cores"), ("machine", "memory"), ("machine", "kernel"), ("machine", "hostname_hash"),
    ("runtime", "python"),
)  # fmt: skip
# What is compared: name, column of `points`, what A is called if its value is larger or smaller, unit, divisor.
MEASURES: Final = (
    ("throughput", "qps", "faster", "slower", "1/s", 1.0),
    ("p99", "p99", "slower", "faster", "us", 1e3),
    ("server CPU per operation", "server_cpu_us_per_op", "dearer", "cheaper", "us", 1.0),
    ("client CPU per operation", "client_cpu_us_per_op", "dearer", "cheaper", "us", 1.0),
)

Place = dict[str, Any]
# a, b: in words. threshold. compared: each `place` of the figure with its factors and its `ratios`, see `of`.
# judged: what is known of their servers' answers, by server. warnings: what limits the comparison as a whole.
# left_out: points that were not used, and why.
Comparison = dict[str, Any]


@dataclass(frozen=True)
class Selection:
    """Points of a run.

    server, series: only theirs; None: all.
    """

    run: Run
    server: str | None = None
    series: str | None = None

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read a run and take a part of it.

        text: the run's folder, and behind colons a server and a series.

        Raises:
            BenchError: the run does not have the part; the text has what there is.
        """
        # A folder may have colons in its name, so the longest that is there is the run.
        words = text.split(":")
        counts = [count for count in range(len(words), 0, -1) if Path(":".join(words[:count])).is_dir()]
        if not counts or len(words) - counts[0] > 2:
            raise BenchError(f"{text}: no such run folder; give RUN, RUN:SERVER or RUN:SERVER:SERIES")
        run = folder.read(":".join(words[: counts[0]]))
        server, series = [word or None for word in (*words[counts[0] :], "", "")][:2]
        for column, wanted in (("server", server), ("series", series)):
            known = sorted(run.points[column].unique())
            if wanted is not None and wanted not in known:
                raise BenchError(f"{run.folder} has no {column} {wanted!r}: choose {', '.join(known)}")
        chosen = cls(run, server, series)
        if chosen.points.empty:
            raise BenchError(f"{run.folder} has no point of server {server!r} and series {series!r}: choose others")
        return chosen

    @property
    def points(self) -> pd.DataFrame:
        """Its rows of `points`."""
        rows = self.run.points
        for column, wanted in (("server", self.server), ("series", self.series)):
            rows = rows if wanted is None else rows[rows[column] == wanted]
        return rows

    @property
    def name(self) -> str:
        """In words."""
        return ":".join(filter(None, (self.run.id, self.server, self.series)))

    @property
    def factors(self) -> set[str]:
        """The settings that its points have."""
        return {name for name in self.run.factors if self.points[name].notna().any()}


def table(found: Comparison) -> Table:
    """Return a comparison for the terminal."""
    shown = Table(title=f"A = {found['a']}\nB = {found['b']}")
    for name in ("point", "measure", "A", "B", "A : B", "95 %", "P(A > B)", "verdict on A"):
        shown.add_column(name, justify="right" if name in {"A", "B", "A : B"} else "left")
    places = [each["place"] for each in found["compared"]]
    # What is the same in all is not worth a word in each row.
    different = {name for place in places for name in place if len({str(each.get(name)) for each in places}) > 1}
    for each in found["compared"]:
        words = _words({name: value for name, value in each["place"].items() if name in {"sessions", *different}})
        for number, one in enumerate(each["ratios"]):
            shown.add_row(
                "" if number else words,
                f"{one['measure']}, {one['unit']}",
                *(f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" for value in (one["a"], one["b"])),
                f"{one['ratio']:.2f}",
                "-" if one["low"] is None else f"{one['low']:.2f} to {one['high']:.2f}",
                f"{one['superiority']:.2f}",
                one["verdict"],
            )
    return shown


def compare(a: Selection, b: Selection, threshold: float = THRESHOLD) -> Comparison:
    """Compare the points that two selections have in common.

    Args:
        a, b: of one run (then by pairs of interleaved repetitions), or of two.
        threshold: share below which a difference is none, whatever the interval says.

    Raises:
        BenchError: both are the same; they are no load; they have no valid point in common; or two runs differ in
            machine, Python or scenario.
    """
    same = a.run.id == b.run.id
    if same and a.name == b.name:
        raise BenchError(f"{a.name} is compared with itself: name a server, RUN:SERVER, or a series, RUN:SERVER:SERIES")
    if a.run.info["scenario"]["spec"].get("kind") == "lag":
        raise BenchError(f"{a.name} has trials of a lag and no load: there is no throughput to compare; draw its lags")
    if not same:
        _refuse_other_conditions(a.run, b.run)
    common = _common(a, b)
    ours, theirs = _places(a, common, b), _places(b, common, a)
    seed = f"{a.run.id}/{b.run.id}"
    compared = [
        {
            "place": {**_named(common, key), **dict(own), **dict(other)},
            "ratios": _ratios(mine, yours, pairs=same, threshold=threshold, seed=f"{seed}/{key}/{own}/{other}"),
        }
        for (key, own), mine in ours.items()
        for (counterpart, other), yours in theirs.items()
        if key == counterpart
    ]
    left_out = [*_invalid("A", a), *_invalid("B", b)]
    for side, mine, others in (("A", ours, theirs), ("B", theirs, ours)):
        lonely = dict.fromkeys(key for key, _ in mine if key not in {known for known, _ in others})
        left_out += [f"{side} alone has {_words(_named(common, key))}" for key in lonely]
    if not compared:
        why = "; ".join(left_out[:5]) or "choose others"
        raise BenchError(f"{a.name} and {b.name} have no valid point in common: {why}")
    runs = {side.run.id: side.run for side in (a, b)}
    ended = [f"{name} ended early: {run.info['stopped']}" for name, run in runs.items() if run.info["stopped"]]
    killed = [f"{name} was killed before its end" for name, run in runs.items() if not run.info["finished"]]
    warnings = [*([] if same else [NOT_INTERLEAVED]), *killed, *ended]
    judged = {f"{s.run.id}:{name}": s.run.judged(name) for s in (a, b) for name in s.points["server"].unique()}
    return {
        "a": a.name, "b": b.name, "threshold": threshold, "compared": compared, "judged": judged, "warnings": warnings,
        "left_out": left_out,
    }  # fmt: skip


def _refuse_other_conditions(a: Run, b: Run) -> None:
    differing = [
        f"{room} {name} ({a.info[room].get(name)!r} and {b.info[room].get(name)!r})"
        for room, name in MUST_AGREE
        if a.info[room].get(name) != b.info[room].get(name)
    ]
    if differing:
        raise BenchError(
            f"{a.folder} and {b.folder} must not be compared, they differ in {', '.join(differing)}: "
            "repeat one of them under the conditions of the other"
        )


def _common(a: Selection, b: Selection) -> list[str]:
    """Name the columns in which points must agree; where each side has one server or series, that is what differs."""
    one_server = all(each.points["server"].nunique() == 1 for each in (a, b))
    one_series = a.series is not None and b.series is not None
    names = [*([] if one_series else ["series"]), *([] if one_server else ["server"]), "sessions", "processes"]
    return [*names, "depth", "multiget", "rate", *sorted(a.factors & b.factors)]


def _places(side: Selection, common: list[str], other: Selection) -> dict[tuple[Any, Any], pd.DataFrame]:
    """Return the valid repetitions of each place: values of the common columns, and of settings only this side has."""
    own = sorted(side.factors - other.factors)
    rows = side.points[side.points["valid"]]
    return {
        # None for what a point does not have: NaN is not even itself.
        (
            tuple(None if pd.isna(value) else value for value in key[: len(common)]),
            tuple(_named(own, key[len(common) :]).items()),
        ): part.set_index("rep").sort_index()
        for key, part in _groups(rows, [*common, *own])
    }


def _groups(rows: pd.DataFrame, names: list[str]) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    grouped: Any = rows.groupby(names, dropna=False, sort=False)
    return list(grouped)


def _named(names: Sequence[str], values: Sequence[Any]) -> Place:
    """Name what a point has; numbers that pandas made fractions of are whole again."""
    named = {name: value for name, value in zip(names, values, strict=True) if not pd.isna(value)}
    return {name: int(value) if name.startswith(FACTOR) else value for name, value in named.items()}


def _ratios(a: pd.DataFrame, b: pd.DataFrame, *, pairs: bool, threshold: float, seed: str) -> list[dict[str, Any]]:
    found = []
    for measure in MEASURES:
        first, second = (rows[measure[1]][rows[measure[1]] > 0] for rows in (a, b))
        if pairs:
            both = first.index.intersection(second.index)
            first, second = first[both], second[both]
        if len(first) and len(second):
            found.append(of(measure, first.tolist(), second.tolist(), pairs=pairs, threshold=threshold, seed=seed))
    return found


def of(
    measure: tuple[str, str, str, str, str, float], a: Sequence[float], b: Sequence[float], *, pairs: bool,
    threshold: float, seed: str,
) -> dict[str, Any]:  # fmt: skip
    """Compare repetitions.

    Args:
        measure: of MEASURES.
        a, b: one value for each repetition, positive; with `pairs` in the same order.
        pairs: a[i] and b[i] were measured one after the other.
        threshold: minimum difference of the medians, 0.05 for 5 %, in addition to an interval without 1.
        seed: of the resampling; the runs' names.

    Returns:
        `a`, `b`: medians; `ratio` of these; `low`, `high`: its 95 % interval, None where there are too few repetitions;
        `superiority`: probability that a repetition of A is the larger one, ties as half; `verdict` in words.
    """
    from scipy import stats  # noqa: PLC0415 -- takes a second to load, for every command

    name, column, larger, smaller, unit, scale = measure
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    ratio, low, high = float(_of_medians(first, second)), None, None
    if min(len(first), len(second)) >= REPETITIONS:
        # Percentiles of the ratio, since BCa has none where all repetitions are alike.
        found = stats.bootstrap(
            (first, second), _of_medians, paired=pairs, vectorized=True, n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE, method="percentile",
            rng=np.random.default_rng(zlib.crc32(f"{seed}/{column}".encode())),
        ).confidence_interval  # fmt: skip
        low, high = float(found.low), float(found.high)
    if low is None or high is None:
        verdict = TOO_FEW
    elif low <= 1 <= high or abs(ratio - 1) <= threshold:
        verdict = NO_DIFFERENCE
    else:
        verdict = larger if ratio > 1 else smaller
    greater = (np.sign(np.subtract.outer(first, second)) + 1) / 2
    return {
        "measure": name, "unit": unit, "a": float(np.median(first)) / scale, "b": float(np.median(second)) / scale,
        "ratio": ratio, "low": low, "high": high, "superiority": float(greater.mean()),
        "repetitions": [len(first), len(second)], "verdict": verdict,
    }  # fmt: skip


def _of_medians(a: NDArray[np.float64], b: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = np.median(a, axis=axis) / np.median(b, axis=axis)
    return ratio


def _invalid(side: str, selection: Selection) -> list[str]:
    rows = selection.points[~selection.points["valid"]]
    return [
        f"{side}: point {row['point_id']} ({row['server']}, {row['series']}, {row['sessions']} sessions, repetition "
        f"{row['rep']}) is not valid: {row['invalid_reason']}"
        for row in rows.to_dict("records")
    ]


def _words(place: Place) -> str:
    return ", ".join(f"{name.removeprefix(FACTOR)} {value}" for name, value in place.items())
