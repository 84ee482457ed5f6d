"""Latencies of a run: percentiles from its histograms, over the load and over time, and how they are drawn.

Every figure here is made of counts by bin (`load.histogram`), merged by adding: never a mean of percentiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullLocator

from kvref_bench.analysis import style
from kvref_bench.load import histogram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from kvref_bench.runs.run import Run

SHARES: Final = (0.5, 0.9, 0.99, 0.999)
TICKS: Final = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)


def joined(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the histograms of runs, without operations that ended in an error."""
    every = pd.concat([run.hist for run in runs], ignore_index=True)
    answered: pd.DataFrame = every[every["outcome"] != "error"]
    return answered


def counts(hist: pd.DataFrame, points: pd.DataFrame, timing: str = "service") -> pd.Series[int]:
    """Merge the histograms of points.

    hist: as of `joined`. points: rows with `run_id` and `point_id`. timing: `service`, `intended` or `lag`.

    Returns operations by bin, in order of the bins; empty when nothing was measured so.
    """
    return _of(hist, points, timing).groupby("bin_index")["count"].sum().sort_index()


def _of(hist: pd.DataFrame, points: pd.DataFrame, timing: str) -> pd.DataFrame:
    return hist[hist["clock"] == timing].merge(points[["run_id", "point_id"]], on=["run_id", "point_id"])


def curve(merged: pd.Series[int]) -> pd.DataFrame:
    """Give the distribution of merged histograms, one row for each bin that has something.

    Columns: `ns`; `share`: of the operations that took at most so long; `beyond`: 1 / (1 - share before this bin), the
    axis of percentile plots, on which 100 is p99 and 1000 is p99.9; `above`: share that took at least so long.
    """
    bins = merged.index.to_numpy(dtype=np.int64)
    number = merged.to_numpy(dtype=np.int64)
    reached = np.cumsum(number)
    above = (reached[-1:] - reached + number) / max(int(number.sum()), 1)
    return pd.DataFrame({
        "ns": histogram.middle(bins),
        "share": reached / max(int(number.sum()), 1),
        "beyond": 1 / above,
        "above": above,
    })  # fmt: skip


def quantiles(merged: pd.Series[int], shares: Sequence[float] = SHARES) -> dict[str, float]:
    """Give percentiles of merged histograms in ns, by names such as `p99.9`; NaN where there is nothing."""
    by_bin = {int(each): int(number) for each, number in merged.items()}  # type: ignore[call-overload]
    return {f"p{share * 100:g}": float(histogram.quantile(by_bin, share)) if by_bin else np.nan for share in shares}


def table(hist: pd.DataFrame, points: pd.DataFrame, by: Sequence[str], timing: str = "service") -> pd.DataFrame:
    """Give percentiles in ns for each group of points, repetitions merged.

    by: columns of `points` to group by. The rest as for `counts`.
    """
    rows: list[dict[str, Any]] = []
    for name, group in points.groupby(list(by), sort=True):
        merged = counts(hist, group, timing)
        if len(merged):
            rows.append({**dict(zip(by, name, strict=True)), "operations": int(merged.sum()), **quantiles(merged)})
    return pd.DataFrame(rows)


def of_seconds(hist: pd.DataFrame, points: pd.DataFrame, timing: str, share: float) -> pd.DataFrame:
    """Give a percentile of each second, all points merged: columns `second`, `ns` and `operations`."""
    rows = [
        {"second": second, **_at(group.groupby("bin_index")["count"].sum(), share)}
        for second, group in _of(hist, points, timing).groupby("second", sort=True)
    ]
    return pd.DataFrame(rows, columns=["second", "ns", "operations"])


def _at(merged: pd.Series[int], share: float) -> dict[str, float]:
    (value,) = quantiles(merged, [share]).values()
    return {"ns": value, "operations": int(merged.sum())}


def heat(hist: pd.DataFrame, points: pd.DataFrame, timing: str, bands: int = 4) -> pd.DataFrame:
    """Give how latencies lie in time: share of each second's operations (columns) by band of latency (rows).

    bands: for each power of two. The index is the shortest latency of the band, ns.
    """
    rows = _of(hist, points, timing)
    width = (1 << histogram.BITS) // bands
    band = rows["bin_index"] // width
    wide = rows.assign(band=band).pivot_table(index="band", columns="second", values="count", aggfunc="sum")
    every = wide.reindex(range(int(wide.index.min()), int(wide.index.max()) + 1)).fillna(0.0)
    every.index = pd.Index(histogram.lowest(every.index.to_numpy(dtype=np.int64) * width), name="ns")
    shares: pd.DataFrame = every / every.sum()
    return shares


def draw_percentiles(
    axes: Axes, curves: Mapping[str, pd.DataFrame], looks: Mapping[str, style.Look]
) -> list[style.End]:
    """Draw percentile curves over 1 / (1 - q), where a step to the right is ten times rarer; give their ends."""
    rarest = max((float(each["beyond"].max()) for each in curves.values()), default=100.0)
    for name, each in curves.items():
        axes.step(each["beyond"], each["ns"], where="post", color=looks[name].colour, linestyle=looks[name].dash)
    axes.set(xscale="log", yscale="log", xlabel="percentile of the operations", xlim=(1, rarest * 1.1))
    shown = [share for share in TICKS if 1 / (1 - share) <= rarest]
    axes.xaxis.set_major_locator(FixedLocator([1 / (1 - share) for share in shown]))
    axes.xaxis.set_major_formatter(FixedFormatter([f"p{share * 100:.6g}" for share in shown]))
    axes.xaxis.set_minor_locator(NullLocator())
    style.time_axis(axes)
    last = {name: each.iloc[-1] for name, each in curves.items()}
    return [style.End(each["beyond"], each["ns"], name, looks[name].colour) for name, each in last.items()]


def draw_above(axes: Axes, curves: Mapping[str, pd.DataFrame], looks: Mapping[str, style.Look]) -> None:
    """Draw which share of the operations took longer (CCDF), both axes logarithmic."""
    for name, each in curves.items():
        axes.step(each["ns"], each["above"], where="post", color=looks[name].colour, linestyle=looks[name].dash)
    axes.set(xscale="log", yscale="log", ylabel="share that took at least so long")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.duration(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g} %"))
    axes.set_xlabel("latency")


def draw_heat(axes: Axes, shares: pd.DataFrame) -> None:
    """Draw seconds across and latency upwards; the darker, the more of that second's operations."""
    step = shares.index[-1] / shares.index[-2] if len(shares) > 1 else 1.2
    edges = np.append(shares.index.to_numpy(), shares.index[-1] * step)
    seconds = np.arange(int(shares.columns[0]), int(shares.columns[-1]) + 2)
    field = axes.pcolormesh(seconds, edges, shares.replace(0.0, np.nan) * 100, cmap="viridis_r", rasterized=True)
    axes.set(yscale="log", xlabel="second of the measured time")
    axes.grid(visible=False)
    style.time_axis(axes)
    axes.figure.colorbar(field, ax=axes, label="% of the second's operations", pad=0.02)
