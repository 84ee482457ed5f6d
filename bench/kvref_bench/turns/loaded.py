"""One measurement of a server by this package's generator: rate, latencies, and CPU time of the server."""

from __future__ import annotations

import math
import os
import resource
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator
from kvref_bench.load.engine import local
from kvref_bench.load.work import Clock
from kvref_bench.peers import instructions
from kvref_bench.peers.processes import Sampling
from kvref_bench.runs.records import Merged, percentile
from kvref_bench.turns import cpus
from kvref_bench.watch import Watch
from kvref_bench.workload.commands import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvref_bench.load.engine import Engine
    from kvref_bench.load.records import WorkerResult
    from kvref_bench.load.work import Work

_T = TypeVar("_T")
SWEEP: Final = 100  # keys in each get of a sweep, of no more than SWEEP_BYTES
SWEEP_BYTES: Final = 1 << 18
SWEEP_SECONDS: Final = 600.0  # at most
FINE: Final = {(verb, outcomes[0]) for verb, outcomes in OUTCOMES.items()}
SPARE: Final = 100  # descriptors of a process that are not connections


@dataclass(frozen=True, slots=True)
class Done:
    """One measurement.

    generator: which one measured it. per_second: operations, or keys where a get names many.
    seconds: the measured time. client: processors that the generator kept busy.
    server: CPU microseconds for each operation, by process. load: the load average when it was over.
    p99: microseconds until the reply; None: the generator does not say.
    instructions: of the server for each operation, by process; None: this machine does not count them.
    """

    generator: str
    per_second: float
    seconds: float
    client: float
    server: dict[str, float]
    load: float
    p99: float | None = None
    instructions: dict[str, float] | None = None

    @classmethod
    def of(
        cls,
        generator: str,
        operations: int,
        seconds: float,
        cpu: float,
        used: Mapping[str, float],
        p99: float | None = None,
        counted: Mapping[str, float] | None = None,
    ) -> Done:
        """Relate what was counted to seconds and operations.

        cpu: seconds of the generator. used: CPU seconds of the server by process.
        counted: its instructions in each second, by process; None: not known.
        """
        rate = operations / seconds
        each_operation = None if counted is None else {name: each / rate for name, each in counted.items()}
        server = {name: each / operations * 1e6 for name, each in used.items()}
        return cls(generator, rate, seconds, cpu / seconds, server, os.getloadavg()[0], p99, each_operation)


def measure(name: str, address: str, work: Work, clock: Clock, engine: Engine, pids: Mapping[str, int]) -> Done:
    """Measure a server once.

    name, address: of the server, for errors and for the generator. pids: its processes by name.

    Raises:
        BenchError: an answer was wrong or missing.
    """
    sampling, watch = sample(pids), Watch()
    with watch.sampling(sampling, clock.warmup):
        results = coordinator.measure(address, work, clock, engine, watch)
    merged = answered(name, results)
    scale = sampling.sample.scale(merged.seconds) if sampling.sample else 1.0
    used = {process: each * scale for process, each in sampling.used().items()}
    p99 = (percentile(merged.bins("service"), 0.99) or math.nan) / 1e3
    return Done.of("kvref_bench", merged.ops, merged.seconds, merged.usage.cpu, used, p99, sampling.counted())


def sample(pids: Mapping[str, int]) -> Sampling:
    """Return a sample of processes by name, with their instructions where this machine counts them."""
    return Sampling(pids, events=instructions.EVENT if instructions.available() else "")


def sweep(name: str, address: str, work: Work, engine: Engine) -> None:
    """Get every key of a work once and compare its value, so that all exist and are cached. Raises BenchError."""
    each = max(1, min(SWEEP, SWEEP_BYTES // max(work.values.sizes[1], 1)))
    times = -(-work.keys.count // each)
    keys = replace(work.keys, distribution="sequential", apart=False)
    gets = replace(
        work, keys=keys, verbs={"get": 1.0}, sessions=1, depth=1, multiget=each, operations=times, pool=times * each
    )
    answered(name, coordinator.measure(address, gets, Clock(0, SWEEP_SECONDS), engine, Watch()))


def answered(server: str, results: Sequence[WorkerResult]) -> Merged:
    """Merge what was measured on a server with that name. Raises BenchError for an answer that must not come."""
    merged = Merged.of(results)
    for each in results:
        if each.errors:
            request, reply = each.unexpected[0]
            raise BenchError(f"{server}: {each.errors} wrong answers, the first to {request[:80]!r}: {reply[:80]!r}")
        if each.stopped:
            raise BenchError(f"{server}: the measurement ended early: {each.stopped}")
    strange = {
        f"{verb} {outcome}": count for (verb, outcome), count in merged.outcomes.items() if (verb, outcome) not in FINE
    }
    if strange or not merged.ops:
        raise BenchError(f"{server}: answers that should not be: {strange or 'none at all'}")
    return merged


@contextmanager
def generator(where: cpus.Split) -> Iterator[Engine]:
    """Run this process and the generator's workers on their processors during the block."""
    with cpus.on(where.clients), local(len(where.clients), sorted(where.clients)) as engine:
        yield engine


def in_turn(servers: Sequence[_T], turn: int) -> list[_T]:
    """Return the servers in the order of a turn: forth and back."""
    return list(servers[:: 1 if turn % 2 == 0 else -1])


def allow_connections(count: int | None = None) -> None:
    """Let this process and the servers that it starts have so many connections; None: as many as possible.

    Raises:
        BenchError: the limit of the user is lower.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = most if count is None else count + SPARE
    if most != resource.RLIM_INFINITY and most < needed:
        raise BenchError(f"{needed} descriptors are needed and `ulimit -Hn` is {most}: raise it")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, needed), most))
