"""How many sessions a server holds within limits, of those that were measured, and how many machines a rate needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from support.answer import Answer, cannot_tell, command, figures, percent
from support.gather import gather
from support.sides import at_defaults
from support.style import duration

if TYPE_CHECKING:
    from support.gather import Data

SPARE: Final = 1  # machines: one may fail
COLUMNS: Final = ["line", "sessions", "rate", "machines", "limited by"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server must keep: p99 of the latency, ns; share of the machine's cores in use, 0 to 1."""

    p99: float = 5e6
    cpu: float = 0.7

    def __str__(self) -> str:
        return f"p99 ≤ {duration(self.p99)} and CPU ≤ {percent(self.cpu)}"

    def broken(self, p99: float, cpu: float) -> str:
        """Say which limit is broken; empty: none. cpu: NaN where the server ran elsewhere."""
        if p99 > self.p99:
            return f"p99 is {duration(p99)}"
        return f"CPU is {figures(100 * cpu, 2)} %" if cpu > self.cpu else ""


def sustained(data: Data, limits: Limits, target: float) -> pd.DataFrame:
    """Return for each line the most measured sessions within the limits, up to the first that breaks one.

    target: operations a second that machines must serve, each at most the highest rate within the limits, and one of
        them spare. sessions, rate and machines are NaN where nothing keeps the limits; limited by: empty where nothing
        that was measured breaks one.
    """
    closed = at_defaults(data.closed)
    closed = closed[closed["mix"] == closed["mix"].iloc[0]]
    rows = []
    for line, every in closed.groupby("line", sort=True):
        valid = every[every["use"] == "valid"]
        medians = valid.groupby("sessions")[["qps", "p99", "cpu_share"]].median().dropna(subset=["p99"])
        sessions, rate, highest, why = math.nan, math.nan, 0.0, "no valid point was measured" if medians.empty else ""
        for each in medians.itertuples():
            if why := limits.broken(float(each.p99), float(each.cpu_share)):
                why = f"{why} with {figures(float(each.Index))} sessions"
                break
            sessions, rate = float(each.Index), float(each.qps)
            highest = max(highest, rate)
        machines = math.ceil(target / highest) + SPARE if highest else math.nan
        rows.append((str(line), sessions, rate, machines, why))
    return pd.DataFrame(rows, columns=COLUMNS)


def table(data: Data, limits: Limits, target: float) -> pd.DataFrame:
    """Return what each line holds, for readers; see `sustained`."""
    found = sustained(data, limits, target).replace({"limited by": {"": "nothing that was measured"}}).set_index("line")
    return found.map(lambda each: each if isinstance(each, str) else "-" if math.isnan(each) else f"{each:,.0f}")


def answer(scenario: str, limits: Limits, target: float) -> Answer:
    """Say how many sessions each line holds, and how many machines the target needs, operations a second."""
    data = gather(scenario)
    if data is None:
        return cannot_tell(f"no run of {scenario} here", command=command(scenario))
    found = sustained(data, limits, target)
    known = found[found["sessions"].notna()]
    if known.empty:
        reasons = "; ".join(dict.fromkeys(found["limited by"]))
        return cannot_tell(f"the capacity of a server within {limits} ({reasons})", command=command(scenario))
    parts = [
        f"{row['line']} holds {'' if row['limited by'] else 'at least '}{row['sessions']:.0f} sessions at "
        f"{figures(row['rate'])} operations a second ({row['machines']:.0f} machines for {figures(target)} a second, "
        "one of them spare)"
        for row in known.to_dict("records")
    ]
    unknown = found[found["sessions"].isna()].to_dict("records")
    return Answer(f"Within {limits}: {'; '.join(parts)}.", (
        *(f"What {row['line']} holds: {row['limited by']}." for row in unknown),
        "The latency of requests that arrive by schedule: a closed loop sends nothing while it waits (notebook 02).",
        "The capacity of a server on a machine of its own: here the client used the same cores.",
    ))  # fmt: skip
