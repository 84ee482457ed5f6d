# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]", "pyperf>=2.9,<3"]
# ///
"""CPU time of one exchange inside kvref over SQLite, without a socket; pyperf measures.

    python bench/micro.py -o micro.json                                  # all cases
    python bench/micro.py --fast --cases "get hit, text"
    python bench/micro.py --profile set.prof --cases "set, text"         # functions by their own time, by cProfile
    python -m pyperf compare_to before.json after.json --table

Measured is `Connection.data_received` of 32 connections in each turn of the loop, up to the last byte of their replies.
Times are CPU times of the process; each row was read or written once before. `--profile` has the functions.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pyperf
import uvloop

from kvref import profiles
from kvref.addresses import Address
from kvref.errors import KvrefError
from kvref.server.connection import Connection
from kvref.server.executors import executor_for
from kvref.server.listeners.listener import Listener
from kvref.server.server import Server, lock_wait
from kvref.server.settings import parse
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.stores import open_store
from kvref_bench.load.work import Keys, Values
from kvref_bench.peers.sqlite_tables import SQLiteTables
from kvref_bench.scenario.records import Table
from kvref_bench.workload.binary import HEADER, REQUEST, Binary, frame
from kvref_bench.workload.commands import Item
from kvref_bench.workload.keys import key
from kvref_bench.workload.text import Text
from kvref_bench.workload.values import value
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    import argparse

TURN: Final = 32  # connections whose requests arrive in one turn of the loop
PATIENCE: Final = 60.0  # seconds for all replies of a measurement
NOWHERE: Final = Listener(Address("127.0.0.1", 0))


MANY: Final = 100  # keys of a multi-get
VALUES: Final = Values((100, 100))
LENGTH: Final = 17  # bytes of a key
SETQ: Final = 0x11
NOOP: Final = 0x0A


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of exchange.

    commands: in one request. keys: in one request. reply_size: bytes of its whole answer. requests: in turn.
    """

    name: str
    keys: int
    commands: int
    reply_size: int
    requests: tuple[bytes, ...]


def table(keys: int) -> Table:
    """Return the table of the requests; its mapping is the default one."""
    return Table("demo", "default", Keys(keys, length=LENGTH), VALUES)


def cases(keys: int) -> tuple[Case, ...]:
    """Return all cases for a table with this number of rows, at least MANY."""
    names = [key(table(2 * keys).keys, number) for number in range(2 * keys)]
    there = [Item(name, value(VALUES, name), True) for name in names[:keys]]  # noqa: FBT003 - a field of the tuple
    missing = [Item(name, b"", False) for name in names[keys:]]  # noqa: FBT003 - as above
    many = [there[first : first + MANY] for first in range(0, keys - MANY + 1, MANY)]
    measured = {
        "get hit": ("get", [[each] for each in there]),
        "get miss": ("get", [[each] for each in missing]),
        f"get of {MANY}": ("get", many),
        "set": ("set", [[each] for each in there]),
    }
    found = []
    for name, (verb, items) in measured.items():
        for protocol, codec in (("text", Text()), ("binary", Binary())):
            both = [codec.encode(verb, each) for each in items]
            several = len(items[0]) > 1 and protocol == "binary"  # quiet gets and a noop
            commands = MANY + 1 if several else 1
            requests, size = tuple(each for each, _ in both), len(both[0][1])
            found.append(Case(f"{name}, {protocol}", len(items[0]), commands, size, requests))
    odd = [[_any_bytes(each.name) for each in some] for some in many]
    for words, items in (("", many), (", any bytes", odd)):
        quiet = tuple(
            b"".join([frame(REQUEST, SETQ, each.name, bytes(8), each.value) for each in some]) + frame(REQUEST, NOOP)
            for some in items
        )
        found.append(Case(f"set of {MANY}, quiet binary{words}", MANY, MANY + 1, HEADER.size, quiet))
    return tuple(found)


def _any_bytes(name: bytes) -> Item:
    """Return a key that no line of text has; the rest is pseudo-random ASCII, which every column takes."""
    odd = b"\0 \n" + bytes([byte & 0x7F for byte in sha256(name).digest()[: LENGTH - 3]])
    return Item(odd, value(VALUES, odd), True)  # noqa: FBT003 - a field of the tuple


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
        self.server.executor = executor_for(store, self.server.isolation, lock_wait(profile, self.server.settings))
        self._case = case
        self._requests = cycle(case.requests)
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


def seconds(turns: int, case: Case, keys: int) -> float:
    """Return the CPU seconds of so many turns."""
    runner, inside = warm(case, keys)
    inside.prepare(turns)
    return runner.run(inside.whole())


def main() -> None:
    """Measure the chosen cases."""
    runner = pyperf.Runner(add_cmdline_args=_passed_on)
    options = runner.argparser.add_argument_group("kvref")
    options.add_argument("--cases", action="append", metavar="NAME", help="may be repeated; default: all")
    options.add_argument("--keys", type=int, default=10_000, help=f"rows of the table, at least {MANY}")
    given = runner.parse_args()
    known = {case.name: case for case in cases(given.keys)}
    unknown = set(given.cases or ()) - known.keys()
    if unknown:
        raise KvrefError(f"no case {', '.join(sorted(unknown))}: choose among {'; '.join(known)}")
    for name in given.cases or known:
        runner.bench_time_func(name, seconds, known[name], given.keys, inner_loops=TURN)


def _passed_on(command: list[str], given: argparse.Namespace) -> None:
    """Give the options of this program to the processes that measure."""
    for name in given.cases or ():
        command += ["--cases", name]
    command += ["--keys", str(given.keys)]


if __name__ == "__main__":
    try:
        main()
    except KvrefError as error:
        sys.exit(f"micro: {error}")
