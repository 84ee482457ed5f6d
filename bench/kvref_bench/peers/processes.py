"""The processes of a server: which they are, where they run, and what they use and count while a point runs."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import psutil

from kvref.addresses import parse_address
from kvref_bench.errors import BenchError
from kvref_bench.load.records import Usage
from kvref_bench.peers.instructions import Counter
from kvref_bench.runs import machine
from kvref_bench.runs.records import Resource, ServerSample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

SERVER: Final = "server"
DATABASE: Final = "database"
ANY: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
PEER_CREDENTIALS: Final = struct.Struct("3i")


def listener(address: str) -> int | None:
    """Return the process that listens at HOST:PORT or unix:PATH; None if it is elsewhere, or is not shown to us.

    Of several that were forked off another, that one.
    """
    place = parse_address(address)
    if place.path:
        return owner(place.path)
    theirs = {str(found[4][0]) for found in socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)}
    ours = {each.address for several in psutil.net_if_addrs().values() for each in several}
    if not theirs & ours:
        return None
    for each in psutil.net_connections("tcp"):
        # A closed one has no address.
        ip, port = each.laddr or ("", 0)
        if each.status == psutil.CONN_LISTEN and port == place.port and ip in (*theirs, *ANY):
            return None if each.pid is None else root(each.pid)
    return None


def listening(**addresses: str) -> dict[str, int]:
    """Return the processes that listen at HOST:PORT or unix:PATH of this machine. Raises BenchError if one is none."""
    found = {name: listener(address) for name, address in addresses.items()}
    missing = [addresses[name] for name, pid in found.items() if pid is None]
    if missing:
        raise BenchError(f"no process listens at {', '.join(missing)}")
    return {name: pid for name, pid in found.items() if pid is not None}


def database(server: int) -> int | None:
    """Return the process of this machine that a server is a client of over TCP; None if there is none, or it is hidden.

    Args:
        server: its process.
    """
    known = psutil.net_connections("tcp")
    ours = {each.address for several in psutil.net_if_addrs().values() for each in several}
    there = {each.laddr.port: each.pid for each in known if each.status == psutil.CONN_LISTEN and each.laddr}
    for each in known:
        if each.pid == server and each.status == psutil.CONN_ESTABLISHED and each.raddr and each.raddr.ip in ours:
            backend = there.get(each.raddr.port)
            if backend not in (None, server):
                return backend
    return None


def owner(path: str) -> int:
    """Return the process that listens at a UNIX socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size)
    return int(PEER_CREDENTIALS.unpack(credentials)[0])


def root(pid: int) -> int:
    """Return the process that others were forked off: several of them may listen at one port."""
    process = psutil.Process(pid)
    while (parent := process.parent()) is not None and parent.cmdline() == process.cmdline():
        process = parent
    return process.pid


def tree(pids: Iterable[int]) -> list[psutil.Process]:
    """Return processes with all their children."""
    roots = [psutil.Process(pid) for pid in pids]
    return [*roots, *(child for root in roots for child in root.children(recursive=True))]


def check_processors(pids: Iterable[int], cpus: frozenset[int]) -> None:
    """Look whether all threads of processes and of their children run on these processors only. Raises BenchError."""
    for process in tree(pids):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            try:
                allowed = os.sched_getaffinity(int(task.name))
            except ProcessLookupError:
                continue  # a thread that ended since
            if not allowed <= cpus:
                where, limit = (", ".join(map(str, sorted(each))) for each in (allowed, cpus))
                raise BenchError(f"a thread of {process.name()} may run on {where}, beyond {limit}")


class Sampling:
    """One sample, which counts during the block of a `with`.

    running: processes of the server by role, each with its children. counters: reads those of the server.
    events: what `perf stat` counts in the processes meanwhile; "": nothing.

    sample: None until the end.
    resources: a reading of each process and of the machine when it begins, and at the end.
    """

    def __init__(
        self, running: Mapping[str, int], counters: Callable[[], dict[str, int]] = dict, events: str = ""
    ) -> None:
        self.sample: ServerSample | None = None
        self.resources: list[Resource] = []
        self._running = running
        self._counters = counters
        self._used: dict[str, float] = {}
        self._events = events
        self._counter: Counter | None = None
        self._counted: dict[str, float] | None = None

    def __enter__(self) -> Self:
        # The counters first: these are compared with what was sent since this moment.
        self._before = (self._counters(), self._read())
        if self._events:
            several = {role: [each.pid for each in tree([pid])] for role, pid in self._running.items()}
            self._counter = Counter(several, self._events)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is not None:
            if self._counter is not None:
                self._counter.kill()
            return
        if self._counter is not None:
            self._counted = self._counter.stop()
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

    def used(self) -> dict[str, float]:
        """Return the CPU seconds in between, by role."""
        return self._used

    def counted(self) -> dict[str, float] | None:
        """Return the events of each second in between, by role; None: they were not counted."""
        return self._counted

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
