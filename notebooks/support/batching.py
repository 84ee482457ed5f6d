"""What batches and the binary log cost writes, and after how long SQL sees a batch that is left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from support import intervals, style
from support.answer import Answer, cannot_tell, command
from support.latency import curve, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from support.gather import Data

W_BATCH: Final = "factor_daemon_memcached_w_batch_size"
BINLOG: Final = "factor_innodb_api_enable_binlog"
INTERVAL: Final = "factor_innodb_api_bk_commit_interval"
# Of the measure's outcomes, what is looked at and how a chart calls it.
SEEN: Final = {
    "visible": "rows seen at READ COMMITTED",
    "unlocked": "row locks given up",
    "uncommitted": "rows seen at READ UNCOMMITTED",
}
UNDER: Final = "Grey: between the interval and a second later, when a thread that wakes each second commits"
LIMITS: Final = (
    "What a crash would lose with open batches is not measured.",
    "A disk that answers before it has written makes commits cheap, and batches look useless.",
)
DASHES: Final[dict[str, str | tuple[float, tuple[float, ...]]]] = {
    "visible": "-",
    "unlocked": (0, (5, 1.6)),
    "uncommitted": (0, (1.4, 1.4)),
}
SECOND: Final = 1e9  # ns


def surface(points: pd.DataFrame, batch: str = W_BATCH, log: str = BINLOG) -> pd.DataFrame:
    """Return the median operations a second over the binary log (rows: off, on) and the size of batches (columns).

    points: those of one server and one number of sessions that count.
    """
    medians = points.groupby([log, batch])["qps"].median().unstack()
    medians.index = pd.Index([("off", "on")[int(each)] for each in medians.index], name="binary log")
    medians.columns = pd.Index([int(each) for each in medians.columns], name="batch")
    return medians


def cost(points: pd.DataFrame, by: Sequence[str], log: str = BINLOG) -> pd.DataFrame:
    """Return what the binary log leaves of the rate: the ratio on : off with its interval, for each group of points.

    by: columns of `points`, the size of batches among them.
    """
    rows = []
    for group, part in points.groupby(list(by), sort=True):
        sides = {
            side: dict(zip(each["rep"].tolist(), each["qps"].tolist(), strict=True)) for side, each in part.groupby(log)
        }
        if sides.keys() >= {0, 1}:
            name = f"{part['run_id'].iloc[0]} binlog {group}"
            found = intervals.ratio(intervals.Pair(sides[1], sides[0]), name=name)
            rows.append((*group, found.value, found.low, found.high, found.count))
    return pd.DataFrame(rows, columns=[*by, "ratio", "low", "high", "count"])


def draw_surface(axes: Axes, rates: pd.DataFrame, base: float, size: float = 15) -> None:
    """Draw a surface as a grid: each cell with its rate and how many times `base` that is; the darker, the faster."""
    values = rates.to_numpy(dtype=float)
    field = np.log(values / base)
    top = max(float(np.nanmax(field)), 0.7) * 1.3
    axes.imshow(field, cmap="Blues", aspect="auto", vmin=-0.7, vmax=top)
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            text = f"{style.short(value)}/s\nx {value / base:.3g}"
            ink = "white" if field[row, column] > 0.55 * top else style.INK
            axes.text(column, row, text, ha="center", va="center", fontsize=size, linespacing=1.3, color=ink)
    axes.set_xticks(range(len(rates.columns)), [str(each) for each in rates.columns])
    axes.set_yticks(range(len(rates.index)), [str(each) for each in rates.index])
    axes.set(xlabel="writes in a batch", ylabel="binary log")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def lags(hist: pd.DataFrame, points: pd.DataFrame, by: Sequence[str]) -> dict[tuple[object, ...], pd.DataFrame]:
    """Return the distribution of the lags (`latency.curve`) by group of points and by what was waited for.

    hist: of the runs. points: of kind `lag`. by: columns of `points`; the last word of a key is one of SEEN.
    """
    rows = hist[hist["outcome"].isin(list(SEEN))].merge(points[["run_id", "point_id", *by]], on=["run_id", "point_id"])
    grouped = rows.groupby([*by, "outcome"], sort=True)
    return {key: curve(part.groupby("bin_index")["count"].sum().sort_index()) for key, part in grouped}


def lag_table(curves: Mapping[tuple[object, ...], pd.DataFrame], by: Sequence[str]) -> pd.DataFrame:
    """Return the shortest, median and longest lag in seconds of each distribution."""
    rows = [
        (*key, *(float(each["ns"].iloc[place]) / SECOND for place in (0, int(np.searchsorted(each["share"], 0.5)), -1)))
        for key, each in curves.items()
    ]
    return pd.DataFrame(rows, columns=[*by, "what", "shortest", "median", "longest"])


def draw_lags(
    axes: Axes, curves: Mapping[str, pd.DataFrame], line_styles: Mapping[str, style.LineStyle], interval: int
) -> None:
    """Draw which share was seen after how many seconds, over the time in which it should be.

    interval: of the background commit, s: a thread that wakes each second commits what is idle for longer.
    """
    axes.axvspan(interval, interval + 1, color=style.GRID, zorder=0)
    for name, each in curves.items():
        xs = np.concatenate([[0.0], each["ns"].to_numpy(dtype=float) / SECOND])
        ys = np.concatenate([[0.0], each["share"].to_numpy(dtype=float)])
        axes.step(
            xs, ys * 100, where="post", color=line_styles[name].colour, linestyle=line_styles[name].dash, label=name
        )
    axes.set(xlabel="seconds after the last write", ylabel="% of the trials", ylim=(0, 103))
    axes.set_xlim(left=0, right=max(axes.get_xlim()[1], interval + 1.5))


def chosen(data: Data | None) -> pd.DataFrame:
    """Keep the points that count, at the largest number of sessions of all servers, other settings at their lowest."""
    if data is None or W_BATCH not in data.points or BINLOG not in data.points:
        return pd.DataFrame(columns=["label", "sessions", "qps", "rep", "ops", W_BATCH, BINLOG])
    points = data.points[(data.points["use"] == "valid") & data.points[W_BATCH].notna() & data.points[BINLOG].notna()]
    for factor in [name for name in points.columns if name.startswith("factor_") and name not in {W_BATCH, BINLOG}]:
        points = points[points[factor].isna() | (points[factor] == points[factor].min())]
    shared = points.groupby("sessions")["label"].nunique()
    return points[points["sessions"] == shared[shared == shared.max()].index.max()] if len(points) else points


def surface_page(data: Data | None) -> style.Slide:
    """Draw the surface of each server, with what they say."""
    title, points = "Batches and the binary log", chosen(data)
    if data is None or points.empty:
        return style.nothing(
            title, "There is no valid point of this scenario.", data.source if data else "Source: none."
        )
    servers = sorted(points["label"].unique())
    rows, columns = (1, len(servers)) if len(servers) < 3 else ((len(servers) + 1) // 2, 2)
    under = f"Sets per second, {points['sessions'].max()} sessions; x: times the rate of the same server with neither"
    page, panels = style.slide(
        _gains(points), data.source, subtitle=under, columns=columns, rows=rows, right=0.97, hspace=0.55, wspace=0.16
    )
    for axes, server in zip(panels, servers, strict=False):
        rates = surface(points[points["label"] == server])
        draw_surface(axes, rates, float(rates.to_numpy()[0, 0]), size=15 if rows == 1 else 13)
        axes.set_title(server)
    for axes in panels[len(servers) :]:
        axes.set_axis_off()
    return page


def _gains(points: pd.DataFrame) -> str:
    gains, rates_left, largest = {}, [], int(points[W_BATCH].max())
    for server, part in points.groupby("label", sort=True):
        rates = surface(part).to_numpy(dtype=float)
        gains[str(server)] = rates[0, -1] / rates[0, 0]
        rates_left += [rates[1, -1] / rates[0, -1]] if len(rates) > 1 else []
    if largest == int(points[W_BATCH].min()):
        return (
            f"Without batches the binary log leaves {_span(rates_left)} of the rate"
            if rates_left
            else "Batches were not varied"
        )
    low, high = min(gains.values()), max(gains.values())
    sentences = f"Batches of {largest} write {low:.2g}" + (f" to {high:.2g}" if high > low else "") + " times as fast"
    return sentences + (f"; the binary log leaves {_span(rates_left)} of that" if rates_left else "")


def _span(shares: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{each:.0%}" for each in (min(shares), max(shares))))


def rates(data: Data | None) -> pd.DataFrame:
    """List the median rates by server, binary log and batch."""
    points = chosen(data)
    found = {str(server): surface(part).round() for server, part in points.groupby("label", sort=True)}
    return pd.concat(found, names=["server"]) if found else points


def costs(data: Data | None) -> pd.DataFrame:
    """List what the binary log leaves of the rate, by server and batch: ratio and interval."""
    return cost(chosen(data), ["label", W_BATCH]).rename(columns={"label": "server", W_BATCH: "batch"}).round(3)


def lags_of(data: Data | None) -> dict[tuple[object, ...], pd.DataFrame]:
    """Return the distributions of the lags by server, interval and what was waited for."""
    if data is None or INTERVAL not in data.points:
        return {}
    return lags(joined(data.runs), data.points, ["label", INTERVAL])


def lag_page(data: Data | None, curves: Mapping[tuple[object, ...], pd.DataFrame]) -> style.Slide:
    """Draw after how long SQL sees an open batch, a panel for each interval, with what it says.

    curves: as of `lags` by label and INTERVAL.
    """
    title = "When SQL sees an open batch"
    if data is None or not curves:
        return style.nothing(title, "There is no run of this scenario.", "Source: none.")
    spans = sorted({int(float(str(key[1]))) for key in curves})
    page, panels = style.slide(
        _when(curves, spans), data.source, subtitle=UNDER, columns=len(spans), left=0.075, right=0.71
    )
    line_styles = data.line_styles
    for axes, span in zip(panels, spans, strict=True):
        here = {key: each for key, each in curves.items() if int(float(str(key[1]))) == span}
        named = {f"{key[0]}:\n{SEEN[str(key[2])]}": each for key, each in here.items()}
        drawn = {
            name: style.LineStyle(line_styles[str(key[0])].colour, dash=DASHES[str(key[2])])
            for name, key in zip(named, here, strict=True)
        }
        draw_lags(axes, named, drawn, span)
        axes.set_title(f"interval {span} s")
    panels[-1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.02), fontsize=11, labelspacing=0.6)
    return page


def _when(curves: Mapping[tuple[object, ...], pd.DataFrame], spans: Sequence[int]) -> str:
    sentences = []
    for span in spans:
        seen = [each["ns"] for key, each in curves.items() if key[2] == "visible" and int(float(str(key[1]))) == span]
        if seen:
            ends = min(each.iloc[0] for each in seen), max(each.iloc[-1] for each in seen)
            sentences.append(f"{ends[0] / SECOND:.1f} to {ends[1] / SECOND:.1f} s (interval {span} s)")
    return f"SQL sees an open batch after {', '.join(sentences)}" if sentences else "SQL never saw an open batch"


def conclude(data: Data | None, curves: Mapping[tuple[object, ...], pd.DataFrame]) -> Answer:
    """Answer what batches and the binary log do to writes, and after how long SQL sees an open batch."""
    points, sentences = chosen(data), []
    if len(points):
        sentences.append(_gains(points))
    visible = lag_table({key: each for key, each in curves.items() if key[2] == "visible"}, ["server", "interval"])
    sentences += [
        f"{row['server']} shows an open batch after {row['shortest']:.2f} to {row['longest']:.2f} s at an interval of "
        f"{row['interval']:.0f} s"
        for row in visible.to_dict("records")
    ]
    if not sentences:
        return cannot_tell("there is no valid point of either scenario", command=command("binlog-batch"), limits=LIMITS)
    return Answer("; ".join(sentences) + ".", LIMITS)
