"""What a server used and counted while a point ran."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Self

from kvref_bench.peers import processes
from kvref_bench.runs import machine
from kvref_bench.runs.records import Resource, ServerSample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from kvref_bench.peers.processes import Switches

SECOND: Final = 1.0
NONE: Final = (0, 0)


class Sampling:
    """One sample; `begin` and `end` are the moments between which it counts, or the block of a `with`.

    sample: None until the end.
    resources: a reading of each process and of the machine when it begins, each second, and at the end.
    """

    def __init__(self, running: Mapping[str, int], counters: Callable[[], dict[str, int]]) -> None:
        self.sample: ServerSample | None = None
        self.resources: list[Resource] = []
        self._running = running
        self._counters = counters
        self._over = Event()
        self._reader = Thread(target=self._read_each_second, name="readings", daemon=True)
        self._before: tuple[dict[str, int], list[Resource]] | None = None
        self._switches: dict[int, tuple[Switches, Switches]] = {}

    def begin(self) -> None:
        """Take the first numbers and go on reading in a thread."""
        # The counters first: these are compared with what was sent since this moment.
        self._before = (self._counters(), self._read())
        # Of these the number counts from now on, of threads that start later from 0 on.
        self._switches = {thread: (last, last) for thread, (_, last) in self._switches.items()}
        self._reader.start()

    def end(self) -> ServerSample:
        """Read the final counters; a second call returns the same sample.

        Raises:
            BenchError: the server no longer returns its counters.
        """
        if self.sample is not None:
            return self.sample
        assert self._before is not None, "begin() comes first"
        counters, first = self._before
        self._stop()
        last = self._read()
        usage, seconds = None, None
        if last:
            seconds = (last[0].time - first[0].time) / 1e9
            usage = processes.used(first, last, self._peak())
            usage.voluntary, usage.involuntary = (
                sum(now[kind] - then[kind] for then, now in self._switches.values()) for kind in (0, 1)
            )
        moved = {name: value - counters.get(name, 0) for name, value in self._counters().items()}
        self.sample = ServerSample(usage, {name: moved[name] for name in sorted(moved) if moved[name]}, seconds)
        return self.sample

    def _peak(self) -> int:
        running = self._running.values()
        return sum(max((each.rss for each in self.resources if each.pid == pid), default=0) for pid in running)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.end()
        else:
            self._stop()

    def _stop(self) -> None:
        self._over.set()
        if self._reader.is_alive():
            self._reader.join()

    def _read_each_second(self) -> None:
        while not self._over.wait(SECOND):
            self._read()

    def _read(self) -> list[Resource]:
        now = list(processes.readings(self._running))
        self.resources.extend([*now, machine.reading()])
        for pid in self._running.values():
            # A thread of a connection is gone before the end: what it had at the last reading counts.
            for thread, last in processes.switches(pid).items():
                self._switches[thread] = (self._switches.get(thread, (NONE, NONE))[0], last)
        return now
