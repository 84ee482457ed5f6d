"""What a metric is, and where its numbers come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kvref.server.telemetry.event_counters import EventCounters


class Source(Protocol):
    """Where the numbers are; all of it may be read in any thread or process."""

    tally: EventCounters
    started: float  # UNIX time
    info: dict[str, str]  # what serves: version, profile, store, workers

    def totals(self) -> dict[str, int]:
        """Return the counters of `stats` by name."""

    def connections(self) -> int:
        """Return how many clients are connected."""

    def pids(self) -> list[int]:
        """Return the processes, first the one that listens."""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric, as the documentation lists it.

    Args:
        name: as it is exposed.
        kind: counter, gauge or histogram.
        help: what it says.
        label: whose values tell its samples apart, empty where it has one.
    """

    name: str
    kind: str
    help: str
    label: str = ""
