"""Latencies of runs: percentiles of their histograms, at one load, over the load and over time.

Every figure here is made of counts by bin (`load.histogram`), merged by adding: never a mean of percentiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from kvref_bench.load import histogram

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from kvref_bench.runs.folder import Run
    from support.gather import Data

SHARES: Final = (0.5, 0.9, 0.99, 0.999)


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
    """Return the distribution of merged histograms, one row for each bin that has something.

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
    """Return percentiles of merged histograms in ns, by names such as `p99.9`; NaN where there is nothing."""
    by_bin = {int(each): int(number) for each, number in merged.items()}  # type: ignore[call-overload]
    return {f"p{share * 100:g}": float(histogram.quantile(by_bin, share)) if by_bin else np.nan for share in shares}


def at_default_settings(points: pd.DataFrame, uses: Collection[str] = ("valid",)) -> pd.DataFrame:
    """Keep the points of plain series that count and have every setting of the server at its lowest, or none."""
    selected: pd.DataFrame = points[points["default"] & points["use"].isin(uses)]
    for factor in [name for name in points.columns if name.startswith("factor_")]:
        selected = selected[selected[factor].isna() | (selected[factor] == selected[factor].min())]
    return selected


def at_one_load(data: Data) -> pd.DataFrame:
    """Return the closed loop's points at the largest number of sessions that every line of the scenario has.

    Where lines share no number of sessions, each is given at its own largest.
    """
    points = at_default_settings(data.closed)
    shared = points.groupby("sessions")["line"].nunique()
    common = shared[shared == points["line"].nunique()]
    own = points.groupby("line")["sessions"].transform("max")
    return points.loc[points["sessions"] == (common.index.max() if len(common) else own)]


def curves(
    hist: pd.DataFrame, points: pd.DataFrame, timing: str = "service", by: str = "line"
) -> dict[str, pd.DataFrame]:
    """Return the distribution (`curve`) of each line that has something in this timing."""
    merged = {str(name): counts(hist, group, timing) for name, group in points.groupby(by, sort=True)}
    return {name: curve(each) for name, each in merged.items() if len(each)}


def open_loop(data: Data) -> pd.DataFrame:
    """Return the open loop's points of each line, those with its largest number of sessions."""
    scheduled = at_default_settings(data.points[data.points["rate"].notna()])
    return scheduled.loc[scheduled["sessions"] == scheduled.groupby("line")["sessions"].transform("max")]


def over_load(hist: pd.DataFrame, data: Data) -> pd.DataFrame:
    """Return p50 and p99 in ns at each target rate of the open loop, from the schedule to the reply.

    Repetitions are merged.

    Columns: line, sessions, rate, share (of the closed loop's median with the same sessions), p50, p99.
    """
    closed = at_default_settings(data.closed, ("valid", "limited")).groupby(["line", "sessions"])["qps"].median()
    scheduled = open_loop(data)
    rows: list[dict[str, Any]] = []
    shares = data.spec["rates"]
    for (line, sessions), group in scheduled.groupby(["line", "sessions"], sort=True):
        measured = group["rate"] / closed.get((line, sessions), np.nan)
        nearest = measured.map(
            lambda share: np.nan if np.isnan(share) else min(shares, key=lambda each: abs(each - share))
        )
        for share, part in group.groupby(nearest, sort=True):
            found = quantiles(counts(hist, part, "intended"), (0.5, 0.99))
            rows.append({"line": line, "sessions": sessions, "rate": part["rate"].median(), "share": share, **found})
    return pd.DataFrame(rows, columns=["line", "sessions", "rate", "share", "p50", "p99"])


def highest_rate(data: Data) -> pd.DataFrame:
    """Return the valid points of the open loop at the highest rate of each line; several where it has repetitions."""
    scheduled = open_loop(data)
    top = scheduled.groupby("line")["rate"].transform("max")
    return scheduled[scheduled["rate"] > 0.95 * top]


def at(distribution: pd.DataFrame, share: float) -> float:
    """Return the latency, ns, that `share` of a distribution (`curve`) did not exceed."""
    return float(distribution["ns"].iloc[int(np.searchsorted(distribution["share"], share))])
