"""What the latency notebook shows of one scenario, picked from its runs once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pandas as pd

from support import latency, style
from support.answer import Answer, cannot_tell, command

if TYPE_CHECKING:
    from support.gather import Data

LIMITS: Final = (
    "A closed loop sends nothing while it waits, so that its percentiles hide queues; only the open loop shows them.",
    "Seconds are too few to tell a rare pause (a checkpoint, a flush) from chance.",
)


@dataclass(frozen=True)
class Waiting:
    """Latencies of one scenario.

    at: points of the closed loop that are shown together; curves: their distributions by line.
    load: as of `latency.over_load`. line: the one whose open loop waits longest beyond its service time, else the
    slowest; both: its distributions by timing at the highest rate.
    """

    data: Data | None = None
    at: pd.DataFrame = field(default_factory=pd.DataFrame)
    curves: dict[str, pd.DataFrame] = field(default_factory=dict)
    load: pd.DataFrame = field(default_factory=pd.DataFrame)
    line: str = ""
    both: dict[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def table(self) -> pd.DataFrame:
        """Percentiles of the closed loop by line, with units."""
        rows = {
            name: {f"p{share * 100:g}": style.duration(latency.at(each, share)) for share in latency.SHARES}
            for name, each in self.curves.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    @property
    def loaded(self) -> pd.DataFrame:
        """p50 and p99 at each target rate, with units."""
        shown = self.load.assign(rate=self.load["rate"].round()) if len(self.load) else self.load
        return shown.assign(**{name: shown[name].map(style.duration) for name in ("p50", "p99") if name in shown})


def of(data: Data | None) -> Waiting:
    """Select the data to show; nothing if there is no run or no valid point."""
    if data is None:
        return Waiting()
    hist = latency.joined(data.runs)
    at = latency.at_one_load(data)
    curves = latency.curves(hist, at)
    if not curves:
        return Waiting(data)
    highest = latency.highest_rate(data)
    intended, service = (latency.curves(hist, highest, timing) for timing in ("intended", "service"))
    extra = {name: latency.at(each, 0.99) / latency.at(service[name], 0.99) for name, each in intended.items()}
    line = (
        max(extra, key=lambda name: extra[name])
        if extra
        else max(curves, key=lambda name: latency.at(curves[name], 0.99))
    )
    both = {"service": service[line], "intended": intended[line]} if extra else {}
    return Waiting(data, at, curves, latency.over_load(hist, data), line, both)


def conclude(waiting: Waiting) -> Answer:
    """Answer how long clients wait, and what the timing from the send hides."""
    if waiting.data is None or not waiting.curves:
        why = "there is no valid point of get-vs-select here"
        return cannot_tell(why, command=command("get-vs-select", sql=True), limits=LIMITS)
    p99 = {name: latency.at(each, 0.99) for name, each in waiting.curves.items()}
    order = sorted(p99, key=lambda name: p99[name])
    figures = " to ".join(f"{style.duration(p99[name])} ({name})" for name in dict.fromkeys((order[0], order[-1])))
    sessions = f"{waiting.at['sessions'].max()} sessions that send the next request as soon as a reply arrives"
    text = f"With {sessions}, p99 is {figures}"
    if not waiting.both:
        return Answer(f"{text}; no open loop was measured, so the latency under a schedule is unknown.", LIMITS)
    rate, service, intended = (
        latency.highest_rate(waiting.data).loc[lambda rows: rows["line"] == waiting.line, "rate"].median(),
        *(latency.at(waiting.both[timing], 0.99) for timing in ("service", "intended")),
    )
    hidden = f"timed from the send it is {style.duration(service)}, {intended / service:.2g} times less"
    return Answer(
        f"{text}; at a target rate of {style.short(rate)} operations a second by schedule, {waiting.line} has a p99 of "
        f"{style.duration(intended)}, and {hidden}.",
        LIMITS,
    )
