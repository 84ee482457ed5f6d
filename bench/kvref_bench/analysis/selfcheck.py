"""Whether the generator measures the server and not itself: its ceiling, its cost, its schedule, its histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from kvref_bench.analysis import intervals, style
from kvref_bench.load import histogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

LAG: Final = 2e6  # ns: what 99 % of the sends must not be late by at half of the ceiling
HALF: Final = 0.5
SHARES: Final = (0.5, 0.9, 0.99, 0.999)


def ceilings(points: pd.DataFrame) -> pd.DataFrame:
    """Give for each point with a ceiling which share of it was measured, `share`, nearest first.

    points: of runs. The ceiling is what the same sessions, depth and sizes get from a responder of constants.
    """
    known = points[points["ceiling"].notna() & (points["ops"] > 0)]
    with_share = known.assign(share=known["qps"] / known["ceiling"])
    names = ["scenario", "server", "series", "sessions", "depth", "rate", "rep", "qps", "ceiling", "share", "valid"]
    return with_share[names].sort_values("share", ascending=False, ignore_index=True)


def draw_ceilings(axes: Axes, shares: pd.DataFrame) -> None:
    """Draw each point's share of the generator's ceiling, a row for each scenario."""
    scenarios = sorted(shares["scenario"].unique(), reverse=True)
    rng = np.random.default_rng(0)
    for row, scenario in enumerate(scenarios):
        xs = shares.loc[shares["scenario"] == scenario, "share"] * 100
        axes.scatter(
            xs,
            row + rng.uniform(-0.22, 0.22, len(xs)),
            s=50,
            color=style.PALETTE["plugin"][0],
            alpha=0.45,
            linewidths=0,
        )
    axes.axvline(100, color=style.INK, linewidth=2)
    axes.set_yticks(range(len(scenarios)), scenarios)
    axes.set(xlabel="operations per second, % of what the generator alone can do", ylim=(-0.6, len(scenarios) - 0.4))
    axes.set_xlim(left=0, right=max(110.0, float(shares["share"].max()) * 105))


def clients(points: pd.DataFrame) -> pd.DataFrame:
    """Give the CPU of each client (series) in us for an operation: median, interval, its user and system parts, rate.

    points: of `client-overhead` that count, one server. Cheapest first; `times`: against the cheapest.
    """
    found = intervals.medians(points, ["series"], "client_cpu_us_per_op").set_index("series")
    each = points.assign(
        user=1e6 * points["client_cpu_user"] / points["ops"], system=1e6 * points["client_cpu_sys"] / points["ops"]
    )
    parts = each.groupby("series")[["user", "system", "qps"]].median()
    table = found.join(parts).sort_values("value")
    return table.assign(times=table["value"] / table["value"].min())


def draw_clients(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the CPU of an operation by client, the part of the kernel lighter, cheapest on top."""
    rows = np.arange(len(table))[::-1]
    scale = table["value"] / (table["user"] + table["system"])  # medians of parts do not add up to the median
    user, system = table["user"] * scale, table["system"] * scale
    dark, light = style.PALETTE["plugin"][:2]
    axes.barh(rows, user, color=dark, height=0.62, label="in the client's code")
    axes.barh(rows, system, left=user, color=light, height=0.62, label="in the kernel")
    known = table["low"].notna()
    axes.hlines(rows[known], table.loc[known, "low"], table.loc[known, "high"], color=style.INK, linewidth=2.5)
    for row, value, times in zip(rows, table["value"], table["times"], strict=True):
        end = max(value, float(table["high"].fillna(0).iloc[len(rows) - 1 - row]))
        axes.text(end + table["value"].max() * 0.012, row, f"{value:.3g} µs   x {times:.3g}", va="center", fontsize=15)
    axes.set_yticks(rows, [str(each) for each in table.index])
    axes.set(xlabel="CPU of the client for one operation, µs", xlim=(0, table[["value", "high"]].max().max() * 1.2))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower right", fontsize=15)


def lags(points: pd.DataFrame) -> pd.DataFrame:
    """Give the points of open loops: how late 99 % of the sends were at most, asked for which share of the ceiling."""
    open_loop = points[points["rate"].notna() & points["lag_p99"].notna()]
    asked = open_loop.assign(of_ceiling=open_loop["rate"] / open_loop["ceiling"])
    names = ["scenario", "server", "series", "sessions", "rate", "of_ceiling", "rep", "lag_p99", "lag_max", "valid"]
    return asked[names].sort_values(["scenario", "server", "rate", "rep"], ignore_index=True)


def draw_lags(axes: Axes, asked: pd.DataFrame) -> None:
    """Draw how late sends were over the share of the ceiling that was asked for, with the limit."""
    kept = asked["lag_p99"] <= LAG
    for chosen, colour in ((kept, style.PALETTE["plugin"][0]), (~kept, style.PALETTE["kvref"][0])):
        part = asked[chosen]
        axes.scatter(part["of_ceiling"] * 100, part["lag_p99"], s=70, color=colour, alpha=0.6, linewidths=0)
    axes.axhline(LAG, color=style.INK, linewidth=2)
    axes.axvline(HALF * 100, color=style.MUTED, linewidth=1.5, linestyle=":")
    axes.set(yscale="log", xlabel="asked rate, % of what the generator alone can do")
    axes.set_xlim(left=0, right=max(60.0, float(asked["of_ceiling"].max()) * 105))
    style.time_axis(axes, "99 % of the sends were at most so late")


def errors(values: Sequence[int], shares: Sequence[float] = SHARES) -> pd.DataFrame:
    """Compare percentiles of durations (ns) from bins with the exact ones: `exact`, `bins`, `error` in percent."""
    ordered = np.sort(np.asarray(values, dtype=np.int64))
    counts: dict[int, int] = {}
    for value in ordered.tolist():
        place = histogram.index(value)
        counts[place] = counts.get(place, 0) + 1
    rows = []
    for share in shares:
        exact = int(ordered[max(int(np.ceil(share * len(ordered))) - 1, 0)])
        told = histogram.quantile(counts, share)
        rows.append((f"p{share * 100:g}", exact, told, 100 * (told - exact) / exact))
    return pd.DataFrame(rows, columns=["percentile", "exact", "bins", "error"]).set_index("percentile")


def drawn(count: int, seed: int) -> dict[str, list[int]]:
    """Draw durations in ns of the shapes that latencies have: one hump, a heavy tail, two humps, spread evenly."""
    rng = np.random.default_rng(seed)
    fast, slow = rng.normal(8e4, 5e3, count), rng.normal(4e7, 2e6, count)
    shapes = {
        "one hump": rng.lognormal(np.log(2e5), 0.3, count),
        "heavy tail": 1e5 * (1 + rng.pareto(1.5, count)),
        "two humps": np.where(rng.random(count) < 0.95, fast, slow),
        "even": rng.uniform(2e4, 2e6, count),
    }
    return {name: np.maximum(values, 1).astype(np.int64).tolist() for name, values in shapes.items()}
