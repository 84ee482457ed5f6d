"""Which processors the servers and the generator have: never the same ones."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Split:
    """Processors by number: of the servers with all their processes and threads, of the generator and this process."""

    servers: frozenset[int]
    clients: frozenset[int]


def split(servers: str, clients: str) -> Split:
    """Read which processors each side has.

    servers, clients: numbers and ranges, `0` or `0,2-3`.

    Raises:
        BenchError: one is not there or not ours, both have the same one, or there is one only.
    """
    there = os.sched_getaffinity(0)
    if len(there) < 2:
        raise BenchError("pairs need two processors, one for the servers and one for the generator; here is one")
    both = Split(_numbers("--server-cpus", servers), _numbers("--client-cpus", clients))
    shared = both.servers & both.clients
    if shared:
        raise BenchError(f"processors {words(shared)} are in --server-cpus and --client-cpus: keep them apart")
    missing = (both.servers | both.clients) - there
    if missing:
        raise BenchError(f"no processors {words(missing)} here: choose among {words(there)}")
    return both


@contextmanager
def on(cpus: frozenset[int]) -> Iterator[None]:
    """Let this thread, and the processes it starts, run on these processors for the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def words(numbers: Iterable[int]) -> str:
    """Return the numbers of processors in words."""
    return ", ".join(map(str, sorted(numbers)))


def _numbers(option: str, text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            numbers = range(int(first), int(last or first) + 1)
        except ValueError:
            numbers = range(0)
        if not numbers:
            raise BenchError(f"{option} {text!r}: write numbers and ranges, for example 0 or 0,2-3")
        found.update(numbers)
    return frozenset(found)
