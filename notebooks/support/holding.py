"""The capacity answer for each line of a scenario: how many users a server holds, and how many servers a rate needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from support import style
from support.answer import Answer, cannot_tell, command, figures
from support.capacity import SPARE, Capacity, Limits, Measured, capacity
from support.gather import gather
from support.sides import at_defaults

if TYPE_CHECKING:
    from support.gather import Data


def measured(data: Data) -> dict[str, list[Measured]]:
    """Return for each line, of the first mix of verbs, the medians of its valid repetitions by sessions."""
    closed = at_defaults(data.closed)
    closed = closed[closed["mix"] == closed["mix"].iloc[0]]
    found: dict[str, list[Measured]] = {str(line): [] for line in sorted(closed["line"].unique())}
    for (line, sessions), part in closed[closed["use"] == "valid"].groupby(["line", "sessions"], sort=True):
        rate, p99, cpu = (float(part[column].median()) for column in ("qps", "p99", "cpu_share"))
        found[line].append(Measured(sessions, rate, _known(p99), _known(cpu)))
    return found


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def capacities(points: dict[str, list[Measured]], limits: Limits) -> dict[str, Capacity]:
    """Return what each line holds within the limits."""
    return {line: capacity(each, limits) for line, each in points.items()}


def table(data: Data, limits: Limits, target: float) -> pd.DataFrame:
    """Return a row for each line: sessions and rate within the limits, and machines for a target rate, with a spare.

    target: operations a second.
    """
    found = capacities(measured(data), limits)
    rows = []
    for line, each in found.items():
        machines = each.machines(target)
        needed = f"{machines} ({machines - SPARE} + {SPARE})" if machines else "cannot tell"
        rows.append({
            "line": line,
            "sessions": f"{'at least ' if each.at_least else ''}{each.sessions}" if each.known else "cannot tell",
            "operations a second": figures(each.rate) if each.rate is not None else "cannot tell",
            f"machines for {figures(target)} a second": needed,
            "limiting factor": each.reason,
        })  # fmt: skip
    return pd.DataFrame(rows).set_index("line")


def chart(data: Data, limits: Limits) -> style.Slide:
    """Draw latency and CPU by sessions, with the limits."""
    points = measured(data)
    shown = {line: [each for each in part if each.p99 is not None] for line, part in points.items()}
    shown = {line: part for line, part in shown.items() if part}
    if not shown:
        return style.nothing("Capacity: cannot tell", "No repetition of any point passed the gates.", data.source)
    made, (latency, cpu) = style.slide(
        _title(capacities(points, limits), limits), data.source, columns=2, wspace=0.28, left=0.1,
        subtitle=f"{data.title}; closed loop, median of the valid repetitions; dotted: the limits",
    )  # fmt: skip
    ends = []
    for line, part in shown.items():
        look = data.looks[line]
        sessions = [each.sessions for each in part]
        style.line(latency, sessions, [each.p99 or 0.0 for each in part], look=look)
        known = [each for each in part if each.cpu is not None]
        style.line(cpu, [each.sessions for each in known], [100 * (each.cpu or 0.0) for each in known], look=look)
        last = part[-1]
        ends.append(style.End(last.sessions, 100 * last.cpu if last.cpu is not None else 0.0, line, look.colour))
    everywhere = [each.sessions for part in shown.values() for each in part]
    latency.set_yscale("log")
    style.time_axis(latency, "")
    latency.set_title("p99 of the latency")
    latency.axhline(limits.p99, color=style.INK, linestyle=":", linewidth=2.4)
    cpu.set_title(f"CPU of the server, of {data.cores} cores")
    cpu.axhline(100 * limits.cpu, color=style.INK, linestyle=":", linewidth=2.4)
    cpu.set_ylim(0, 105)
    cpu.yaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")
    for axes in (latency, cpu):
        style.sessions_axis(axes, everywhere)
    style.label_ends(cpu, ends)
    return made


def _title(found: dict[str, Capacity], limits: Limits) -> str:
    held = sorted((each for each in found.items() if each[1].known), key=lambda each: -(each[1].rate or 0))
    if not held:
        return f"Nothing measured keeps {limits}"
    line, most = held[0]
    more = "at least " if most.at_least else ""
    rate = f"{style.short(most.rate or 0)} operations a second"
    return f"Within {limits} {line} holds {more}{most.sessions} sessions, {rate}"


def answer(scenario: str, limits: Limits, target: float) -> Answer:
    """Say how many sessions each line holds, and how many machines the target needs, operations a second."""
    data = gather(scenario)
    if data is None:
        return cannot_tell(f"no run of {scenario} here", command=command(scenario))
    found = capacities(measured(data), limits)
    told = {line: each for line, each in found.items() if each.known}
    untold = [f"What {line} holds: {each.reason}." for line, each in found.items() if not each.known]
    if not told:
        reasons = "; ".join(dict.fromkeys(each.reason for each in found.values()))
        return cannot_tell(f"the capacity of a server within {limits} ({reasons})", command=command(scenario))
    parts = []
    for line, each in told.items():
        more = "at least " if each.at_least else ""
        machines = each.machines(target)
        parts.append(
            f"{line} holds {more}{each.sessions} sessions at {figures(each.rate or 0)} operations a second "
            f"({machines} machines for {figures(target)} a second, one of them spare)"
        )
    return Answer(f"Within {limits}: {'; '.join(parts)}.", (
        *untold,
        "The latency of requests that arrive by schedule: a closed loop sends nothing while it waits (notebook 03).",
        "The capacity of a server on a machine of its own: here the client used the same cores.",
    ))  # fmt: skip
