# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]", "pyperf>=2.9,<3"]
# ///
"""CPU time of one exchange inside kvref over SQLite, as a whole and by stage, without a socket; pyperf measures.

    python bench/micro.py -o micro.json                                  # all cases
    python bench/micro.py --fast --cases "get hit, text" --stages
    python bench/micro.py --profile set.prof --cases "set, text"         # functions by their own time, by cProfile
    python -m pyperf compare_to before.json after.json --table

The whole is `Connection.data_received` of 32 connections in each turn of the loop, up to the last byte of their
replies. A stage goes through a public entry of the server: `protocol.codec.parser` (parse), `executor.run` and commit
of `engine.dispatch.execute` (run), `protocol.codec.encode` (reply). The whole can take less than its stages, because a
connection has fast paths around them. Times are CPU times of the process; each row was read or written once before.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pyperf
import uvloop

from kvref import profiles
from kvref.addresses import Address
from kvref.engine.dispatch import execute
from kvref.engine.session import Session
from kvref.errors import KvrefError
from kvref.protocol.codec import encode, parser
from kvref.server.connection import Connection
from kvref.server.executors import executor_for
from kvref.server.listeners.listener import Listener
from kvref.server.server import Server, lock_wait
from kvref.server.settings import parse
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.stores import open_store
from kvref_bench.peers.sqlite_tables import SQLiteTables
from kvref_testbed.targets import QUIET
from micro_cases import MANY, Case, cases, table

if TYPE_CHECKING:
    import argparse

TURN: Final = 32  # connections whose requests arrive in one turn of the loop
PATIENCE: Final = 60.0  # seconds for all replies of a measurement
WHILE_THE_DISK_WORKS: Final = 0.0002  # seconds between two looks whether a commit is done
# A measurement of a server; returns CPU seconds.
Measure = Callable[["Inside"], Coroutine[Any, Any, float]]
NOWHERE: Final = Listener(Address("127.0.0.1", 0))


class Sink(asyncio.Transport):
    """A transport that counts what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def write(self, data: Any) -> None:
        self.size += len(data)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        raise KvrefError("the server closes the connection: its requests are wrong")


class Inside:
    """A server over a filled file, in the running loop, without a listener, and the exchanges of one case."""

    def __init__(self, store: SQLiteStore, case: Case) -> None:
        profile = profiles.load("kvref")
        self.server = Server(store, profile, partial(parse, [], None, profile), [NOWHERE])
        self.server.executor = executor_for(
            store, self.server.isolation, lock_wait(profile, self.server.settings)
        )  # fmt: skip
        self._case = case
        self._requests = case.make()
        self._turns: list[list[bytes]] = []

    def prepare(self, turns: int) -> None:
        """Choose the requests of the next measurement."""
        self._turns = [list(islice(self._requests, TURN)) for _ in range(turns)]

    async def whole(self) -> float:
        """Return the CPU seconds of all turns. Raises KvrefError if replies are missing."""
        sinks = [Sink() for _ in range(TURN)]
        connections = [Connection(self.server, NOWHERE) for _ in sinks]
        for connection, sink in zip(connections, sinks, strict=True):
            connection.connection_made(sink)
        began, late, due = time.process_time(), time.monotonic() + PATIENCE, 0
        for requests in self._turns:
            due += self._case.reply_size
            for connection, data in zip(connections, requests, strict=True):
                connection.data_received(data)
            await asyncio.sleep(0)
            # A connection whose turn is over has the rest of its replies later.
            while any(sink.size < due for sink in sinks) and time.monotonic() < late:
                await asyncio.sleep(0)
        used = time.process_time() - began
        if {sink.size for sink in sinks} != {due}:
            raise KvrefError(f"{self._case.name}: not {due} bytes of replies on each connection")
        return used

    async def parse(self) -> float:
        """Return the CPU seconds of parsing."""
        return self._parse()[0]

    async def run(self) -> float:
        """Return the CPU seconds of dispatch, storage and commit."""
        return (await self._run())[0]

    async def reply(self) -> float:
        """Return the CPU seconds of encoding the replies."""
        _, exchanges = await self._run()
        began = time.process_time()
        for command, reply in exchanges:
            encode(command, reply, 1)
        return time.process_time() - began

    def _parse(self) -> tuple[float, list[list[list[Any]]]]:
        one = parser(self._turns[0][0], self.server.wire_rules)
        turns: list[list[list[Any]]] = []
        began = time.process_time()
        for requests in self._turns:
            turns.append([])
            for data in requests:
                one.feed(data)
                found = []
                while (command := one.next_command()) is not None:
                    found.append(command)
                turns[-1].append(found)
        used = time.process_time() - began
        if {len(each) for turn in turns for each in turn} != {self._case.commands}:
            raise KvrefError(f"{self._case.name}: not {self._case.commands} commands in each request")
        return used, turns

    async def _run(self) -> tuple[float, list[tuple[Any, Any]]]:
        executor, now = self.server.executor, int(time.time())
        sessions = [(Session(self.server.shared), executor.begin()) for _ in range(TURN)]
        commits = executor.commits_of(sessions[0][1])
        exchanges: list[tuple[Any, Any]] = []
        turns = self._parse()[1]
        began = time.process_time()
        for turn in turns:
            for (session, transaction), several in zip(sessions, turn, strict=True):
                for command in several:
                    reply = executor.run(transaction, partial(execute, session, command, now), _late)
                    exchanges.append((command, reply))
            if commits.unsettled is not None:
                executor.commit()
            while commits.unsettled is not None:
                await asyncio.sleep(WHILE_THE_DISK_WORKS)
            await asyncio.sleep(0)  # the executor's turn is over
        used = time.process_time() - began
        if any(reply is None for _, reply in exchanges):
            raise KvrefError("a command waits: its stages cannot be separated")
        return used, exchanges


def _late(reply: Any) -> None:
    raise KvrefError(f"a command had to wait and was answered with {reply!r}: its stages cannot be separated")


STAGES: Final[dict[str, Measure]] = {"parse": Inside.parse, "run": Inside.run, "reply": Inside.reply}


def store(keys: int) -> SQLiteStore:
    """Return a store with the table of the cases; it is removed when the process ends."""
    folder = tempfile.TemporaryDirectory()
    dsn = f"sqlite:///{Path(folder.name) / 'micro.sqlite'}"
    made = cast(SQLiteStore, open_store(dsn, profiles.load("kvref"), 50.0))
    atexit.register(folder.cleanup)
    atexit.register(made.close)
    made.initialise()
    rows, tables = table(keys), SQLiteTables(dsn)
    tables.create(rows)
    tables.map(rows)
    tables.fill(rows, QUIET)
    return made


@cache
def warm(case: Case, keys: int) -> tuple[asyncio.Runner, Inside]:
    """Return a loop and a server in it that has processed each request of a case."""
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)

    async def start() -> Inside:
        inside = Inside(store(keys), case)
        inside.prepare(-(-keys // case.keys // TURN))
        await inside.whole()
        return inside

    atexit.register(runner.close)
    return runner, runner.run(start())


def seconds(turns: int, case: Case, keys: int, measure: Measure) -> float:
    """Return the CPU seconds of so many turns."""
    runner, inside = warm(case, keys)
    inside.prepare(turns)
    return runner.run(measure(inside))


def main() -> None:
    """Measure the chosen cases."""
    runner = pyperf.Runner(add_cmdline_args=_passed_on)
    options = runner.argparser.add_argument_group("kvref")
    options.add_argument("--cases", action="append", metavar="NAME", help="may be repeated; default: all")
    options.add_argument("--stages", action="store_true", help="measure parse, run and reply of each case too")
    options.add_argument("--keys", type=int, default=10_000, help=f"rows of the table, at least {MANY}")
    given = runner.parse_args()
    known = {case.name: case for case in cases(given.keys)}
    unknown = set(given.cases or ()) - known.keys()
    if unknown:
        raise KvrefError(f"no case {', '.join(sorted(unknown))}: choose among {'; '.join(known)}")
    for name in given.cases or known:
        measured: dict[str, Measure] = {name: Inside.whole}
        if given.stages:
            measured |= {f"{name}: {stage}": each for stage, each in STAGES.items()}
        for title, each in measured.items():
            runner.bench_time_func(title, seconds, known[name], given.keys, each, inner_loops=TURN)


def _passed_on(command: list[str], given: argparse.Namespace) -> None:
    """Give the options of this program to the processes that measure."""
    for name in given.cases or ():
        command += ["--cases", name]
    command += ["--keys", str(given.keys), *(["--stages"] if given.stages else [])]


if __name__ == "__main__":
    try:
        main()
    except KvrefError as error:
        sys.exit(f"micro: {error}")
