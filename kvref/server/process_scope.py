"""What one process of a server has for itself, or has together with others that serve the same port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kvref.engine.crawler import Crawler
from kvref.engine.marks import Marks
from kvref.engine.stats import Counters
from kvref.engine.vbuckets import VBuckets
from kvref.server.telemetry.event_counters import EventCounters, ProcessEventCounters
from kvref.storage.base import Store


class Scope(Protocol):
    """State that connections share in addition to the tables, such as the counters of `stats`."""

    alone: bool  # there are no other processes
    first: bool  # the process that does what one of them has to do

    @property
    def counters(self) -> Counters:
        """Return what `stats` counts."""

    @property
    def vbuckets(self) -> VBuckets:
        """Return the states of vbuckets."""

    @property
    def marks(self) -> Marks:
        """Return what meta commands remember of rows."""

    @property
    def crawler(self) -> Crawler:
        """Return whether `lru_crawler` is enabled."""

    @property
    def tally(self) -> EventCounters:
        """Return what is counted for metrics and health, of all processes."""

    @property
    def own(self) -> ProcessEventCounters:
        """Return the part of it that is this process's."""

    def cas_numbers(self, store: Store) -> Iterator[int]:
        """Return the counter of cas numbers."""

    def publish(self, connections: int, most: int) -> None:
        """Show other processes what was counted, and how many connections there are and were at once."""

    def rows(self) -> dict[str, str]:
        """Return the rows of `stats` that are about more than this process."""


class SingleProcess:
    """The state of a server with a single process."""

    alone = True
    first = True

    def __init__(self) -> None:
        self.counters = Counters()
        self.vbuckets = VBuckets()
        self.marks = Marks()
        self.crawler = Crawler()
        self.tally = EventCounters(1)
        (self.own,) = self.tally.processes

    def cas_numbers(self, store: Store) -> Iterator[int]:
        """Return the counter of cas numbers."""
        return store.cas_numbers()

    def publish(self, connections: int, most: int) -> None:
        """Do nothing."""

    def rows(self) -> dict[str, str]:
        """Return none."""
        return {}
