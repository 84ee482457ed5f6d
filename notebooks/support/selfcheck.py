"""Whether the generator measures the server and not itself: its ceiling, its cost, its schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from support import intervals, style
from support.answer import Answer, cannot_tell, command, figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from kvref_bench.runs.folder import Run
    from support.gather import Data

LAG: Final = 2e6  # ns: what 99 % of the sends must not be late by at half of the ceiling
NEAR: Final = 0.9  # of the ceiling: above it the generator may be what was measured
UNDER: Final = "Each dot is a measured point; the ceiling is a responder of constants, in Python, on the same cores"
LIMITS: Final = (
    "Servers and clients share the cores of one machine, so that a cheaper client also makes a faster server.",
)


def ceilings(points: pd.DataFrame) -> pd.DataFrame:
    """Return for each point with a ceiling which share of it was measured, `share`, nearest first.

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
    """Return the CPU of each client (series) in us for an operation: median, interval, its user and system parts, rate.

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
        axes.text(1.02, row, f"{value:.3g} µs   x {times:.3g}", transform=axes.get_yaxis_transform(), va="center")
    axes.set_yticks(rows, [str(each) for each in table.index])
    axes.set(
        xlabel="CPU of the client for one operation, µs", xlim=(0, float(table[["value", "high"]].max().max()) * 1.03)
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2)


def calibrations(runs: Sequence[Run]) -> pd.DataFrame:
    """List what the null responder gave: the ceiling of each run by sessions and depth, the lag at half of it, ns."""
    rows = [
        {
            "scenario": run.info["scenario"]["name"], "run": run.id, "sessions": each["sessions"],
            "depth": each["depth"] * each["multiget"], "ceiling": each["operations_per_second"],
            "us_per_op": each["cpu_us_per_operation"], "lag_p99": each.get("lag_p99_ns_at_half", np.nan),
        }
        for run in runs
        for each in run.info["calibration"].get("null_responder", ())
    ]  # fmt: skip
    names = ["scenario", "run", "sessions", "depth", "ceiling", "us_per_op", "lag_p99"]
    return pd.DataFrame(rows, columns=names).sort_values(["scenario", "run", "sessions", "depth"], ignore_index=True)


def ceiling_page(shares: pd.DataFrame, source: str) -> style.Slide:
    """Draw how near the points came to the generator's ceiling, with what it says."""
    if shares.empty:
        return style.nothing("The ceiling is not known", "No run has points with a ceiling.", source)
    top, near = shares.iloc[0], int((shares["share"] > NEAR).sum())
    where = f"{top['scenario']}, {top['server']}"
    title = f"The nearest any point came to the generator's ceiling: {top['share']:.0%} ({where})"
    if near:
        within = f"within {1 - NEAR:.0%} of the generator's own ceiling, or beyond it"
        title = f"{near:,} of {len(shares):,} points were {within}"
    page, (axes,) = style.slide(title, source, left=0.2, right=0.97, subtitle=UNDER)
    draw_ceilings(axes, shares)
    return page


def clients_of(data: Data | None) -> pd.DataFrame:
    """Return the clients' cost (`clients`) with native memcached, the cheapest server, or with the first server."""
    if data is None:
        return pd.DataFrame()
    points = data.points[data.points["use"] != "invalid"]
    native = points[points["kind"] == "memcached"]
    return clients(native if len(native) else points.loc[points["label"] == points["label"].min()])


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with three figures."""
    return table.map(figures)


def client_page(table: pd.DataFrame, data: Data | None) -> style.Slide:
    """Draw the clients with what they say."""
    source = data.source if data else "Source: none."
    if table.empty:
        return style.nothing("The clients' cost is not known", "There is no valid run of client-overhead.", source)
    cheap, dear = table.index[0], table.index[-1]
    title = f"{dear} costs {table['times'].iloc[-1]:.2g} times the CPU of {cheap} for the same request"
    page, (axes,) = style.slide(
        title, source, left=0.2, right=0.83, subtitle="One session, one request at a time; line: 95 % interval"
    )
    page.subplots_adjust(top=page.subplotpars.top - 0.055)  # room for the legend
    draw_clients(axes, table)
    return page


def conclude(shares: pd.DataFrame, calibrated: pd.DataFrame, table: pd.DataFrame) -> Answer:
    """Answer whether the generator measures the servers or itself."""
    sentences, own = [], calibrated.dropna(subset=["lag_p99"])
    if len(shares):
        near = int((shares["share"] > NEAR).sum())
        sentences.append(
            f"{near:,} of {len(shares):,} points came within {1 - NEAR:.0%} of the generator's own ceiling"
        )
    if len(own):
        on_time = f"{int((own['lag_p99'] <= LAG).sum())} of {len(own)}"
        sentences.append(
            f"at half of the ceiling 99 % of the requests were sent within 2 ms of the scheduled time in {on_time} runs"
        )
    if len(table):
        low, high = (figures(float(table["value"].iloc[place])) for place in (0, -1))
        sentences.append(
            f"a request costs the client {low} µs of CPU ({table.index[0]}) to {high} µs ({table.index[-1]})"
        )
    if not sentences:
        return cannot_tell("no run has a null responder", command=command("client-overhead"), limits=LIMITS)
    text = "; ".join(sentences)
    return Answer(f"{text[0].upper()}{text[1:]}.", LIMITS)
