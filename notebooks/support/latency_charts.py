"""How latencies are drawn: percentile plot, load, timing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from support import latency, style

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from support.gather import Data

TICKS: Final = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
NO_RUN: Final = "There is no run of this scenario."
NO_OPEN_LOOP: Final = "No open loop of this scenario has a valid point."

Curves = dict[str, "pd.DataFrame"]


def percentiles(data: Data | None, curves: Curves) -> style.Slide:
    """Draw the percentile plot of one load: a step to the right is ten times rarer."""
    title = "No percentiles"
    if data is None or not curves:
        return style.nothing(title, NO_RUN, "Source: none.")
    page, (axes,) = style.slide(
        _title(data, curves), data.source, subtitle="Latency from send to reply, closed loop, all repetitions together"
    )
    ends = draw_percentiles(axes, curves, data.line_styles)
    style.label_ends(axes, ends)
    return page


def _title(data: Data, curves: Curves) -> str:
    sessions = int(latency.at_one_load(data)["sessions"].max())
    slow = sorted(curves, key=lambda name: latency.at(curves[name], 0.99))
    low, high = (f"{style.duration(latency.at(curves[name], 0.99))} ({name})" for name in (slow[0], slow[-1]))
    range_shown = f"more than {low}" if len(slow) == 1 else f"more than {low} to {high}"
    return f"With {sessions} sessions one request in a hundred takes {range_shown}"


def draw_percentiles(axes: Axes, curves: Curves, line_styles: Mapping[str, style.LineStyle]) -> list[style.End]:
    """Draw percentile curves over 1 / (1 - q), both axes logarithmic; give their ends."""
    rarest = max(float(each["beyond"].max()) for each in curves.values())
    for name, each in curves.items():
        axes.step(
            each["beyond"], each["ns"], where="post", color=line_styles[name].colour, linestyle=line_styles[name].dash
        )
    axes.set(xscale="log", yscale="log", xlabel="percentile of the requests", xlim=(1, rarest * 1.1))
    shown = [share for share in TICKS if 1 / (1 - share) <= rarest]
    axes.xaxis.set_major_locator(FixedLocator([1 / (1 - share) for share in shown]))
    axes.xaxis.set_major_formatter(FixedFormatter([f"p{share * 100:.6g}" for share in shown]))
    axes.xaxis.set_minor_locator(NullLocator())
    log_time_axis(axes)
    last = {name: each.iloc[-1] for name, each in curves.items()}
    return [style.End(each["beyond"], each["ns"], name, line_styles[name].colour) for name, each in last.items()]


def load(data: Data | None, table: pd.DataFrame) -> style.Slide:
    """Draw p50 and p99 from the schedule to the reply over the target rate: the hockey stick."""
    if data is None or table.empty:
        return style.nothing("No latency against load", NO_RUN if data is None else NO_OPEN_LOOP, "Source: none.")
    # A line without a valid point at its highest rate shows the low rates, but not the growth.
    whole = table[table.groupby("line")["share"].transform("max") == table["share"].max()]
    ends = whole.sort_values("rate").groupby("line")["p99"].agg(["first", "last"])
    growth = (ends["last"] / ends["first"]).sort_values()
    low, high = (f"{growth.iloc[place]:.2g} times ({growth.index[place]})" for place in (0, -1))
    shares = f"{table['share'].min():.0%} to {table['share'].max():.0%}"
    title = f"From {shares} of a server's own maximum p99 grows {low if len(growth) == 1 else f'{low} to {high}'}"
    if table["share"].nunique() == 1:
        best, worst = (style.duration(each) for each in (ends["last"].min(), ends["last"].max()))
        title = f"At {table['share'].max():.0%} of its own maximum a server has a p99 of {best} to {worst}"
    page, (axes,) = style.slide(
        title, data.source, subtitle="p99 solid, p50 dotted; open loop, from the scheduled time to the reply"
    )
    labels = []
    for name, part in table.sort_values("rate").groupby("line"):
        line_style = data.line_styles[str(name)]
        axes.plot(part["rate"], part["p99"], color=line_style.colour, marker=line_style.marker, markeredgecolor="white")
        axes.plot(part["rate"], part["p50"], color=line_style.colour, linestyle=":", linewidth=2, marker=".")
        labels.append(style.End(part["rate"].iloc[-1], part["p99"].iloc[-1], str(name), line_style.colour))
    axes.set_yscale("log")
    axes.set(xlabel="target rate, operations per second", xlim=(0, table["rate"].max() * 1.04))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.short(value)))
    log_time_axis(axes)
    style.label_ends(axes, labels)
    return page


def timings(data: Data | None, line: str, both: Curves) -> style.Slide:
    """Draw one server's latencies at its highest target rate, timed from the send and from the schedule.

    both: the distributions by timing, `service` and `intended`.
    """
    if data is None or len(both) < 2:
        return style.nothing("No two timings", NO_RUN if data is None else NO_OPEN_LOOP, "Source: none.")
    service, intended = (latency.at(both[name], 0.99) for name in ("service", "intended"))
    range_shown = f"p99 is {style.duration(service)} from the send, {style.duration(intended)} from the schedule"
    title = f"{line}: {range_shown}, which is the time that users wait"
    page, (axes,) = style.slide(
        title,
        data.source,
        subtitle="Highest target rate; only the latency from the schedule includes the wait behind a slow request",
    )
    dark, light = style.PALETTE["plugin"][0], style.PALETTE["kvref"][0]
    line_styles = {"from the send": style.LineStyle(dark), "from the schedule": style.LineStyle(light)}
    named = {"from the send": both["service"], "from the schedule": both["intended"]}
    style.label_ends(axes, draw_percentiles(axes, named, line_styles))
    return page


def log_time_axis(axes: Axes, label: str = "latency") -> None:
    """Name durations on a logarithmic axis, also between the tens where it is short."""
    style.time_axis(axes, label)
    low, high = axes.get_ylim()
    if high < 3 * low:
        low, high = axes.set_ylim(low / 1.5, high * 1.5)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axes.yaxis.set_minor_formatter(NullFormatter())
