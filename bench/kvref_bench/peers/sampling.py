"""What a server used and counted while a point ran."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

import psutil

from kvref_bench.load.recorder import Usage
from kvref_bench.peers.processes import tree
from kvref_bench.runs import machine
from kvref_bench.runs.records import Resource, ServerSample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType


class Sampling:
    """One sample; `begin` and `end` are the moments between which it counts, or the block of a `with`.

    running: processes of the server by role, each with its children. counters: reads those of the server.

    sample: None until the end.
    resources: a reading of each process and of the machine when it begins, and at the end.
    """

    def __init__(self, running: Mapping[str, int], counters: Callable[[], dict[str, int]] = dict) -> None:
        self.sample: ServerSample | None = None
        self.resources: list[Resource] = []
        self._running = running
        self._counters = counters
        self._before: tuple[dict[str, int], dict[str, Resource]] | None = None
        self._used: dict[str, float] = {}

    def begin(self) -> None:
        """Take the first numbers."""
        # The counters first: these are compared with what was sent since this moment.
        self._before = (self._counters(), self._read())

    def end(self) -> ServerSample:
        """Read the final counters; a second call returns the same sample.

        Raises:
            BenchError: the server no longer returns its counters.
        """
        if self.sample is not None:
            return self.sample
        assert self._before is not None, "begin() comes first"
        counters, first = self._before
        last = self._read()
        both = [(first[role], last[role]) for role in first if role in last]
        usage = seconds = None
        if both:
            seconds = (both[0][1].time - both[0][0].time) / 1e9
            usage = Usage(
                user=sum(late.user - early.user for early, late in both),
                system=sum(late.system - early.system for early, late in both),
                rss=sum(max(early.rss, late.rss) for early, late in both),
            )
        self._used = {late.role: late.user + late.system - early.user - early.system for early, late in both}
        moved = {name: value - counters.get(name, 0) for name, value in self._counters().items()}
        self.sample = ServerSample(usage, {name: moved[name] for name in sorted(moved) if moved[name]}, seconds)
        return self.sample

    def used(self) -> dict[str, float]:
        """Return the CPU seconds in between, by role."""
        return self._used

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.end()

    def _read(self) -> dict[str, Resource]:
        found = {}
        for role, pid in self._running.items():
            try:
                used = [(each.cpu_times(), each.memory_info().rss) for each in tree([pid])]
            except psutil.NoSuchProcess:
                continue
            user, system = sum(times.user for times, _ in used), sum(times.system for times, _ in used)
            found[role] = Resource(time.time_ns(), role, pid, user, system, sum(rss for _, rss in used))
        self.resources += [*found.values(), machine.reading()]
        return found
