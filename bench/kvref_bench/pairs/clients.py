"""The three generators of the pairs, each run once for a measurement: this package's own, memcaslap, sysbench."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kvref_bench.ceiling import Ceilings
from kvref_bench.errors import BenchError
from kvref_bench.load import coordinator
from kvref_bench.load.drivers import memcaslap, sysbench
from kvref_bench.load.work import Clock
from kvref_bench.pairs import cpus
from kvref_bench.pairs.readings import Onlooker, Readings, Timed
from kvref_bench.pairs.rows import VALUE, Generated, Memcaslap
from kvref_bench.runs.merge import Merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_bench.load.coordinator import Engine
    from kvref_bench.load.result import WorkerResult
    from kvref_bench.load.work import Keys, Work
    from kvref_bench.pairs.cpus import Split
    from kvref_bench.pairs.rows import Load
    from kvref_bench.pairs.servers import Server

WINDOW: Final = 1024  # keys: what memcaslap counts in
SWEEP: Final = 100  # keys in each get of a sweep
SWEEP_SECONDS: Final = 600.0  # at most
FINE: Final = {("get", "hit"), ("set", "stored")}


@dataclass(frozen=True, slots=True)
class Done:
    """One measurement.

    generator: which one measured it. per_second: operations, or keys where a get names many.
    seconds: the measured time. client: processors that the generator kept busy.
    server: CPU microseconds for each operation, by process. load: the load average when it was over.
    """

    generator: str
    per_second: float
    seconds: float
    client: float
    server: dict[str, float]
    load: float


@dataclass(frozen=True, slots=True)
class Clients:
    """The generators on their processors.

    engine: runs the workers of this package's own. where: who runs on which processor.
    keys: of the table. warmup, seconds: of each measurement.
    """

    engine: Engine
    where: Split
    keys: Keys
    warmup: float
    seconds: float

    def measure(self, server: Server, load: Load) -> Done:
        """Measure once.

        Raises:
            BenchError: an answer was wrong or missing. MissingError: the generator is not installed.
        """
        if isinstance(load, Generated):
            return self._generated(server, load.work)
        if isinstance(load, Memcaslap):
            return self._memcaslap(server, load)
        return self._sysbench(server, load.connections, load.statement)

    def sweep(self, server: Server, load: Load) -> None:
        """Get every key once and compare its value, so that all are cached and known to be there.

        Nothing is done where keys are asked for over SQL, or are made by memcaslap. Raises BenchError.
        """
        if not isinstance(load, Generated) or server.address is None:
            return
        count = -(-self.keys.count // SWEEP)
        work = replace(
            load.work, keys=replace(self.keys, distribution="sequential"), verbs={"get": 1.0}, sessions=1, depth=1,
            multiget=SWEEP, operations=count, pool=count * SWEEP,
        )  # fmt: skip
        results = coordinator.measure(server.address, work, Clock(0, SWEEP_SECONDS), self.engine, Onlooker())
        _refuse(server, results)

    def ceiling(self, load: Load) -> float | None:
        """Give the operations a second against a server that does nothing; None where that is not known."""
        if not isinstance(load, Generated) or load.work.protocol == "mysql":
            return None
        work = replace(load.work, keys=self.keys)
        ceilings = Ceilings(self.engine, Onlooker(), self.seconds)
        # The null responder goes where this thread may run: to a processor of the servers'.
        with cpus.on(self.where.servers):
            ceilings.measure([work])
        return ceilings.of(work)

    def _generated(self, server: Server, work: Work) -> Done:
        address = server.dsn if work.protocol == "mysql" else server.address
        assert address is not None, "a server without an address is measured over SQL"
        readings = Readings(server.pids)
        watch = Timed(readings, self.warmup, self.seconds)
        asked, clock = replace(work, keys=self.keys), Clock(self.warmup, self.seconds)
        with watch:
            results = coordinator.measure(address, asked, clock, self.engine, watch)
            merged = _refuse(server, results)
        cpu = sum(each.usage.user + each.usage.system for each in results)
        return _done("kvref_bench", merged.ops, merged.seconds, cpu, readings)

    def _memcaslap(self, server: Server, load: Memcaslap) -> Done:
        assert server.address is not None, "memcaslap uses memcached"
        # As many keys as the table has: so many on each connection, of which it sets and gets some.
        window = f"{max(1, self.keys.count // load.connections // WINDOW)}k"
        given = (server.address, load.connections, load.gets, VALUE)
        # It takes CPU time before its clock runs: one operation for each connection tells how much.
        start = memcaslap.run(*given, ["-w", window, "-x", str(load.connections)]).cpu
        memcaslap.run(*given, ["-w", window, "-t", f"{max(1, round(self.warmup))}s"])
        readings = Readings(server.pids)
        readings.begin()
        done = memcaslap.run(*given, ["-w", window, "-t", f"{max(1, round(self.seconds))}s"])
        readings.end()
        return _done("memcaslap", done.operations, done.operations / done.per_second, done.cpu - start, readings)

    def _sysbench(self, server: Server, connections: int, statement: str) -> Done:
        assert server.sql is not None, "sysbench uses SQL"
        sysbench.select(server.sql, statement, self.keys, connections, self.warmup)
        readings = Readings(server.pids)
        readings.begin()
        done = sysbench.select(server.sql, statement, self.keys, connections, self.seconds)
        readings.end()
        return _done("sysbench", done.operations, done.seconds, done.cpu, readings)


def _done(generator: str, operations: int, seconds: float, cpu: float, readings: Readings) -> Done:
    server = {name: used / operations * 1e6 for name, used in readings.used().items()}
    return Done(generator, operations / seconds, seconds, cpu / seconds, server, os.getloadavg()[0])


def _refuse(server: Server, results: Sequence[WorkerResult]) -> Merged:
    """Merge what was measured. Raises BenchError where not each answer is the one that must come."""
    merged = Merged.of(results)
    for each in results:
        if each.errors:
            request, reply = each.unexpected[0]
            raise BenchError(
                f"{server.name}: {each.errors} wrong answers, the first to {request[:80]!r}: {reply[:80]!r}"
            )
        if each.stopped:
            raise BenchError(f"{server.name}: the measurement ended early: {each.stopped}")
    strange = {
        f"{verb} {outcome}": count for (verb, outcome), count in merged.outcomes.items() if (verb, outcome) not in FINE
    }
    if strange or not merged.ops:
        raise BenchError(f"{server.name}: answers that should not be: {strange or 'none at all'}")
    return merged
