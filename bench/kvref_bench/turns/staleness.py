"""Gets of kvref over a database that changes meanwhile: CPU time, where they are answered, and how many are stale.

`row_cache`: one server and four processes of kvref over it: `off` without a row cache, `strong`, `local`, which is
strong too, but connects by the Unix socket, so that it reads the end of the log instead of a query, and `fast` with
`row_cache_staleness=10`. Threads update rows by SQL. A get is stale if it returns a value that an update, acknowledged
before the get was sent, had replaced; its staleness is the time since that acknowledgement.

`replica_reads`: a replication group of MySQL 9.7 and three processes of kvref over it: `reads=primary`, `replica` and
`session`. Each session sets its own rows and gets them. A get is stale if it does not return what its session has
set last.

CPU time is that of the processes, so that it counts also while others use the machine.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Final

from kvref_bench.errors import BenchError
from kvref_bench.peers import processes, wire
from kvref_bench.peers.processes import Sampling
from kvref_bench.turns.report import Column
from kvref_testbed.targets import Group, SQLServer, kvref_server, mysql_group, sql_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvref_bench.turns.report import Point

LOGGED: Final = ("--server-id=1", "--log-bin=binlog")
GTID: Final = (*LOGGED, "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
OPTIONS: Final = {
    "mariadb": (*LOGGED, "--binlog-format=ROW", "--log-slave-updates=ON"), "mysql-8.0": GTID, "mysql-9.7": GTID,
}  # fmt: skip
CACHED: Final = ("--set", "row_cache_binlog=1")
LOCAL: Final = "local"
MODES: Final = {
    "off": (), "strong": CACHED, LOCAL: CACHED, "fast": (*CACHED, "--set", "row_cache_staleness=10"),
}  # fmt: skip
READS: Final = ("primary", "replica", "session")
WRITERS: Final = 4
PADDING: Final = "x" * 90
AHEAD: Final = 64  # updates that may be due before gets wait
KEYS: Final = 20  # of each session of `replica_reads`
WARMUP: Final = 1.0  # seconds of the turn that is not counted

ROW_CACHE: Final = (
    Column("mode", "mode"), Column("share", "SQL writes", ".0%"), Column("gets", "gets", of=sum),
    Column("kvref", "kvref, µs", ".1f", statistics.median),
    Column("database", "database, µs", ".1f", statistics.median),
    Column("hits", "hits", ".1%", statistics.median), Column("stale", "stale", of=sum),
    Column("stale_p99", "p99, ms", ".1f", max), Column("stale_max", "longest, ms", ".1f", max),
)  # fmt: skip
REPLICA_READS: Final = (
    Column("reads", "reads"), Column("share", "sets", ".0%"), Column("operations", "operations", of=sum),
    Column("kvref", "kvref, µs", ".1f", statistics.median), Column("primary", "primary, µs", ".1f", statistics.median),
    Column("secondaries", "secondaries, µs", ".1f", statistics.median),
    Column("from_secondary", "from a secondary", ".1%", statistics.median),
    Column("stale", "stale gets", ".2%", statistics.median),
)  # fmt: skip


class Rows:
    """The rows of `row_cache` and when each of their updates was acknowledged.

    count: of rows.
    """

    def __init__(self, count: int) -> None:
        self.times = [[0.0] for _ in range(count)]
        self.due = 0.0
        self.written = 0
        self.over = threading.Event()

    def write(self, server: SQLServer, number: int) -> None:
        """Update rows whenever updates are due, until it is over."""
        with closing(server.connect(60)) as connection, connection.cursor() as cursor:
            while not self.over.is_set():
                if self.due < number + 1:
                    time.sleep(0.0002)
                    continue
                self.due -= 1
                key = random.randrange(number, len(self.times), WRITERS)  # noqa: S311 - no secret
                value = f"{len(self.times[key])} {PADDING}"
                cursor.execute(f"UPDATE test.cached SET v = '{value}' WHERE k = 'key{key}'")  # noqa: S608 - constants
                self.times[key].append(time.monotonic())
                self.written += 1


class MeasuredConnection:
    """One connection to kvref.

    deadline: monotonic time. mapping: to which it switches first; b"": to none.

    gets, sets: how many. stale: seconds for each stale get since what it missed.
    """

    def __init__(self, deadline: float, mapping: bytes) -> None:
        self.deadline = deadline
        self.mapping = mapping
        self.gets = self.sets = 0
        self.stale: list[float] = []

    async def run(self, address: tuple[str, int], step: Callable[[MeasuredConnection], Any]) -> None:
        """Take steps until the deadline; raises BenchError for a reply that must not come."""
        self.reader, self.writer = await asyncio.open_connection(*address)
        if self.mapping:
            await self.get(b"@@" + self.mapping)
        while time.monotonic() < self.deadline:
            await step(self)
        self.writer.close()

    async def get(self, word: bytes) -> bytes:
        """Return the reply to a get."""
        self.writer.write(b"get %b\r\n" % word)
        reply = await self.reader.readuntil(b"END\r\n")
        if not reply.startswith((b"VALUE ", b"END")):
            raise BenchError(f"kvref replies {reply!r}")
        return reply


def _run(
    address: tuple[str, int], seconds: float, steps: Sequence[Callable[[MeasuredConnection], Any]], mapping: bytes = b""
) -> list[MeasuredConnection]:
    """Run a session for each step function, all at once."""
    sessions = [MeasuredConnection(time.monotonic() + seconds, mapping) for _ in steps]

    async def all_of_them() -> None:
        await asyncio.gather(*[each.run(address, step) for each, step in zip(sessions, steps, strict=True)])

    asyncio.run(all_of_them())
    return sessions


def _stats(address: tuple[str, int], name: str) -> int:
    return int(wire.stats("{}:{}".format(*address)).get(name, 0))


def _sampling(ports: Mapping[str, int]) -> Sampling:
    return Sampling(processes.listening(**{name: f"127.0.0.1:{port}" for name, port in ports.items()}))


def _in_turns(
    shares: Sequence[float], servers: Mapping[str, Any], turns: int, seconds: float,
    measure: Callable[[str, float, Any, float], Point],
) -> list[Point]:  # fmt: skip
    points = []
    for turn in range(-1, turns):
        for share in shares:
            for name, kvref in servers.items():
                point = measure(name, share, kvref, seconds if turn >= 0 else WARMUP)
                points += [point] if turn >= 0 else []
    return points


def _init(dsn: str) -> None:
    subprocess.run([sys.executable, "-m", "kvref", "init", "--demo", "--store", dsn], check=True)


def row_cache(
    server: str, shares: Sequence[float], turns: int, seconds: float, sessions: int, keys: int
) -> tuple[str, list[Point]]:
    """Measure the row cache over a database of OPTIONS; shares: of SQL updates, below 1. Returns its version too."""
    with ExitStack() as stack:
        database = stack.enter_context(sql_server(server, OPTIONS[server]))
        dsns = dict.fromkeys(MODES, database.dsn) | {LOCAL: f"mysql://root@localhost/?unix_socket={database.socket}"}
        started = {
            mode: stack.enter_context(kvref_server("kvref", options, dsns[mode])) for mode, options in MODES.items()
        }
        _init(database.dsn)
        _fill(database, keys)
        for each in started.values():
            each.start()
        rows = Rows(keys)

        def measure(mode: str, share: float, kvref: Any, length: float) -> Point:
            return _cached(mode, share, database, kvref, rows, sessions, length)

        return database.version, _in_turns(shares, started, turns, seconds, measure)


def _cached(mode: str, share: float, server: SQLServer, kvref: Any, rows: Rows, sessions: int, seconds: float) -> Point:
    times, each_due = rows.times, share / (1 - share)

    async def step(session: MeasuredConnection) -> None:
        if rows.due > AHEAD:
            await asyncio.sleep(0.001)
            return
        key = random.randrange(len(times))  # noqa: S311 - no secret
        began, known = time.monotonic(), len(times[key]) - 1
        reply = await session.get(b"key%d" % key)
        if not reply.startswith(b"VALUE "):
            raise BenchError(f"kvref replies {reply!r}")
        version = int(reply.split(b"\r\n")[1].split(b" ")[0])
        if version < known:
            session.stale.append(began - times[key][version + 1])
        rows.due += each_due
        session.gets += 1

    rows.due, rows.written = 0.0, 0
    rows.over.clear()
    threads = [threading.Thread(target=rows.write, args=(server, number)) for number in range(WRITERS)]
    for each in threads:
        each.start()
    hits = _stats(kvref.address, "row_cache_hits")
    try:
        with _sampling({"kvref": kvref.address[1], "database": server.port}) as cpu:
            running = _run(kvref.address, seconds, [step] * sessions, b"cached")
    finally:
        rows.over.set()
        for each in threads:
            each.join()
    gets = sum(each.gets for each in running)
    stale = sorted(1000 * each for session in running for each in session.stale)
    figures = {name: 1e6 * used / gets for name, used in cpu.used().items()} | {
        "gets": gets,
        "writes": rows.written,
        "hits": (_stats(kvref.address, "row_cache_hits") - hits) / gets,
        "stale": len(stale),
        "stale_p99": stale[int(len(stale) * 0.99)] if stale else 0.0,
        "stale_max": stale[-1] if stale else 0.0,
    }
    return {"mode": mode, "share": share, **figures}


def _fill(server: SQLServer, count: int) -> None:
    with closing(server.connect(60)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE test.cached (k VARCHAR(30) PRIMARY KEY, v VARCHAR(200)) ENGINE = InnoDB")
        row = "'cached', 'test', 'cached', 'k', 'v', '0', '0', '0', 'PRIMARY'"
        cursor.execute(f"INSERT INTO innodb_memcache.containers VALUES ({row})")  # noqa: S608 - a constant
        values = ", ".join(f"('key{key}', '0 {PADDING}')" for key in range(count))
        cursor.execute(f"INSERT INTO test.cached VALUES {values}")  # noqa: S608 - constants


def replica_reads(shares: Sequence[float], turns: int, seconds: float, sessions: int) -> list[Point]:
    """Measure gets from the secondaries of a replication group; shares: of sets."""
    with ExitStack() as stack:
        group = stack.enter_context(mysql_group())
        _init(group.dsn)
        started = {
            reads: stack.enter_context(kvref_server("kvref", (), f"{group.dsn}?reads={reads}")) for reads in READS
        }
        for each in started.values():
            each.start()

        def measure(reads: str, share: float, kvref: Any, length: float) -> Point:
            return _replicated(reads, share, group, kvref, sessions, length)

        return _in_turns(shares, started, turns, seconds, measure)


def _replicated(reads: str, share: float, group: Group, kvref: Any, sessions: int, seconds: float) -> Point:
    def stepping(number: int) -> Callable[[MeasuredConnection], Any]:
        known: dict[int, bytes] = {}

        async def step(session: MeasuredConnection) -> None:
            key = random.randrange(KEYS)  # noqa: S311 - no secret
            name = b"s%d.%d" % (number, key)
            if random.random() < share:  # noqa: S311 - no secret
                value = b"%032d" % random.randrange(1 << 32)  # noqa: S311 - no secret
                session.writer.write(b"set %b 0 0 32\r\n%b\r\n" % (name, value))
                if (reply := await session.reader.readline()) != b"STORED\r\n":
                    raise BenchError(f"kvref replies {reply!r}")
                known[key] = value
                session.sets += 1
                return
            reply = await session.get(name)
            session.gets += 1
            if key in known and known[key] not in reply:
                session.stale.append(0.0)

        return step

    primary = group.primary().name
    before = _stats(kvref.address, "replica_gets")
    with _sampling({"kvref": kvref.address[1], **{each.name: each.port for each in group.members}}) as cpu:
        running = _run(kvref.address, seconds, [stepping(number) for number in range(sessions)])
    gets = sum(each.gets for each in running)
    operations = gets + sum(each.sets for each in running)
    used = {name: 1e6 * used / operations for name, used in cpu.used().items()}
    figures = {
        "operations": operations,
        "kvref": used.pop("kvref"),
        "primary": used.pop(primary),
        "secondaries": sum(used.values()),
        "from_secondary": (_stats(kvref.address, "replica_gets") - before) / max(gets, 1),
        "stale": sum(len(each.stale) for each in running) / max(gets, 1),
    }
    return {"reads": reads, "share": share, **figures}
