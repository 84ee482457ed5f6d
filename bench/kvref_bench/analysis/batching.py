"""What batches and the binary log cost writes, and after how long SQL sees a batch that is left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from kvref_bench.analysis import intervals, style
from kvref_bench.analysis.latency import curve
from kvref_bench.load import histogram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from kvref_bench.runs.run import Run

W_BATCH: Final = "factor_daemon_memcached_w_batch_size"
BINLOG: Final = "factor_innodb_api_enable_binlog"
INTERVAL: Final = "factor_innodb_api_bk_commit_interval"
# Of the measure's outcomes, what is looked at and how a chart calls it.
SEEN: Final = {
    "visible": "rows seen at READ COMMITTED",
    "unlocked": "row locks given up",
    "uncommitted": "rows seen at READ UNCOMMITTED",
}
SECOND: Final = 1e9  # ns


def surface(points: pd.DataFrame, batch: str = W_BATCH, log: str = BINLOG) -> pd.DataFrame:
    """Give the median operations a second over the binary log (rows: off, on) and the size of batches (columns).

    points: those of one server and one number of sessions that count.
    """
    medians = points.groupby([log, batch])["qps"].median().unstack()
    medians.index = pd.Index([("off", "on")[int(each)] for each in medians.index], name="binary log")
    medians.columns = pd.Index([int(each) for each in medians.columns], name="batch")
    return medians


def cost(points: pd.DataFrame, by: Sequence[str], log: str = BINLOG) -> pd.DataFrame:
    """Give what the binary log leaves of the rate: the ratio on : off with its interval, for each group of points.

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


def moved(runs: Sequence[Run], points: pd.DataFrame, counter: str) -> pd.Series[float]:
    """Give for each of the points by how much a counter of the server moved for one operation; NaN: it did not.

    counter: its name, or the beginning of it.
    """
    every = pd.concat([run.counters.assign(run_id=run.id) for run in runs], ignore_index=True)
    chosen = every[every["name"].str.startswith(counter)].groupby(["run_id", "point_id"])["value"].sum()
    places = pd.MultiIndex.from_frame(points[["run_id", "point_id"]])
    return pd.Series(chosen.reindex(places).to_numpy(dtype=float) / points["ops"].to_numpy(dtype=float), points.index)


def draw_surface(axes: Axes, rates: pd.DataFrame, base: float) -> None:
    """Draw a surface as a grid: each cell with its rate and how many times `base` that is; the darker, the faster."""
    values = rates.to_numpy(dtype=float)
    axes.imshow(
        np.log(values / base),
        cmap="Blues",
        aspect="auto",
        vmin=-0.7,
        vmax=max(np.nanmax(np.log(values / base)), 0.7) * 1.5,
    )
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            text = f"{style.short(value)}/s\nx {value / base:.3g}"
            axes.text(column, row, text, ha="center", va="center", fontsize=15, linespacing=1.3)
    axes.set_xticks(range(len(rates.columns)), [str(each) for each in rates.columns])
    axes.set_yticks(range(len(rates.index)), [str(each) for each in rates.index])
    axes.set(xlabel="writes in a batch", ylabel="binary log")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def lags(hist: pd.DataFrame, points: pd.DataFrame, by: Sequence[str]) -> dict[tuple[object, ...], pd.DataFrame]:
    """Give the distribution of the lags (`latency.curve`) by group of points and by what was waited for.

    hist: of the runs. points: of kind `lag`. by: columns of `points`; the last word of a key is one of SEEN.
    """
    rows = hist[hist["outcome"].isin(list(SEEN))].merge(points[["run_id", "point_id", *by]], on=["run_id", "point_id"])
    grouped = rows.groupby([*by, "outcome"], sort=True)
    return {key: curve(part.groupby("bin_index")["count"].sum().sort_index()) for key, part in grouped}


def lag_table(curves: Mapping[tuple[object, ...], pd.DataFrame], by: Sequence[str]) -> pd.DataFrame:
    """Give the shortest, median and longest lag in seconds of each distribution."""
    rows = [
        (*key, *(float(each["ns"].iloc[place]) / SECOND for place in (0, int(np.searchsorted(each["share"], 0.5)), -1)))
        for key, each in curves.items()
    ]
    return pd.DataFrame(rows, columns=[*by, "what", "shortest", "median", "longest"])


def draw_lags(axes: Axes, curves: Mapping[str, pd.DataFrame], looks: Mapping[str, style.Look], interval: int) -> None:
    """Draw which share was seen after how many seconds, over the time in which it should be.

    interval: of the background commit, s: a thread that wakes each second commits what is idle for longer.
    """
    axes.axvspan(interval, interval + 1, color=style.GRID, zorder=0)
    for name, each in curves.items():
        xs = np.concatenate([[0.0], each["ns"].to_numpy(dtype=float) / SECOND])
        ys = np.concatenate([[0.0], each["share"].to_numpy(dtype=float)])
        axes.step(xs, ys * 100, where="post", color=looks[name].colour, linestyle=looks[name].dash, label=name)
    axes.set(xlabel="seconds after the last write", ylabel="% of the trials", ylim=(0, 103))
    axes.set_xlim(left=0, right=max(axes.get_xlim()[1], interval + 1.5))


def resolution(nanoseconds: int) -> float:
    """Give the width of the bin of a duration in seconds: how exactly a lag is known."""
    place = np.array([histogram.index(nanoseconds)] * 2, dtype=np.int64) + np.array([0, 1])
    low, high = histogram.lowest(place)
    return float(high - low) / SECOND
