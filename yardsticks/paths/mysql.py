"""Generated conversations with two servers in this process over one MySQL or MariaDB server: one plans, one does not.

    python -m yardsticks.paths.mysql DSN [--conversations N] [--seed S] [--profile P]... [--set NAME=VALUE]...
        [--batches]

With `--batches`, connections have batches of the sizes and levels of BATCHES, idle connections are committed, and after
that a program empties the table now and then.

A conversation runs on one server after the other, over the same tables: on one of them commands run by steps, each with
statements of its own (`coalesce=0`). Compared is what `inside` compares.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import re
import struct
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

from kvref import profiles
from kvref.server.connection import Connection
from kvref.server.executors import executor_for
from kvref.server.server import Server
from kvref.server.settings import parse
from kvref.storage.mysql.store import MySQLStore
from kvref.storage.stores import open_store
from yardsticks.paths.inside import (
    _UNEQUAL,
    END_OF_TABLE,
    FIRST_CAS,
    HERE,
    MAX_SHOWN,
    META_ARGUMENTS,
    NOW,
    PROFILES,
    Event,
    Numbers,
    Transport,
    _short,
    batch_settings,
    conversation,
    filled,
    last_number,
)  # fmt: skip

# Numbers that a server has taken: a command that is carried out again takes more than one.
_TAKEN: Final = re.compile(rb"(VALUE \S+ \d+ \d+ |\bc(?:as=)?)1\d\d\d\b")
# By steps, an mg that stores an item whose time is over is rolled back and counted twice.
META_ARGUMENTS[b"N"] = [b"0", b"100"]
# Counters that only timing decides, or that steps add to again if a command is carried out again.
RECOUNTED: Final = ("bytes_read", "cmd_touch", "touch_hits", "touch_misses")
PATIENCE: Final = 60.0  # seconds until a server counts as stuck
# Batches of reads and of writes, the isolation level, and that writes wait for rows that others have written.
BATCHES: Final = (
    (1, 3, 1, True), (32, 1, 1, True), (1, 32, 0, True), (2, 4, 1, True), (32, 32, 0, True), (1, 4, 2, True),
    (1, 3, 3, True), (4, 5, 2, True), (3, 2, 3, True), (1, 2, 1, True),
)  # fmt: skip
# A lock is awaited for a second at least: most conversations with batches have one connection.
SHARED: Final = 0.15
# Which gaps a write locks depends on rows that InnoDB has not purged yet, those of the other server included: such a
# conversation must differ as often, in alternating order.
TRIES: Final = 3
# By title: columns of a table `test.t` with key `k`, and its value columns; the options are f, c and e.
_NUMBERS: Final = "f INT, c BIGINT UNSIGNED, e INT"
TABLES: Final = {
    "demo": (f"k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(1024), {_NUMBERS}", "v", ""),
    "integer key": (f"k INT NOT NULL PRIMARY KEY, v VARCHAR(1024), {_NUMBERS}", "v", ""),
    "binary key": (f"k VARBINARY(32) NOT NULL PRIMARY KEY, v BLOB, {_NUMBERS}", "v", ""),
    "latin1 CHAR": (f"k CHAR(20) CHARACTER SET latin1 NOT NULL PRIMARY KEY, v CHAR(60), {_NUMBERS}", "v", ""),
    "two values": (f"k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(20), w VARCHAR(100), {_NUMBERS}", "v|w", ""),
    "three values": (
        "k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(20), w INT(5) UNSIGNED ZEROFILL, x TEXT CHARACTER SET latin1,"
        f" {_NUMBERS}",
        "v|w|x",
        "",
    ),
    "integer value": (f"k VARCHAR(32) NOT NULL PRIMARY KEY, v BIGINT, {_NUMBERS}", "v", ""),
    "only a value": ("k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(1024) NOT NULL", "v", ""),
    "unique value and CHECK": (
        f"k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(100) UNIQUE, {_NUMBERS}, CHECK (f < 900)", "v", "",
    ),
    "key of a secondary index": (
        f"id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(32) NOT NULL UNIQUE, v VARCHAR(99), {_NUMBERS}, x INT DEFAULT 7",
        "v", "",
    ),
    "trigger": (
        f"k VARCHAR(32) NOT NULL PRIMARY KEY, v VARCHAR(1024), {_NUMBERS}, n INT DEFAULT 0", "v",
        "CREATE TRIGGER test.counts BEFORE UPDATE ON test.t FOR EACH ROW SET NEW.n = OLD.n + 1, NEW.v = LOWER(NEW.v)",
    ),
}  # fmt: skip
ROWS: Final = ("a", "b", "7", "n")


class MySQLSide:
    """A server in this process, see `inside.Side`.

    Args:
        path: `steps` or `plan`.
        profile: of the server.
        dsn: of the database.
        settings: of the server, as NAME=VALUE.
    """

    def __init__(self, path: str, profile: str, dsn: str, settings: Sequence[str]) -> None:
        facts = profiles.load(profile)
        together = "" if path == "plan" else ("&" if "?" in dsn else "?") + "coalesce=0"
        store = open_store(dsn + together, facts, 2.0)
        assert isinstance(store, MySQLStore), "a DSN of mysql://"
        self.path = path
        self._store = store
        self.server = Server(store, facts, lambda: parse(list(settings), None, facts), [HERE])
        self.numbers = Numbers()
        self.server.shared.cas = self.numbers
        self.server.executor = executor_for(store, self.server.isolation, 2)
        self._sql = store.login.connect(2)
        self.connections: list[tuple[Connection, Transport]] = []

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement from outside."""
        with self._sql.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    async def settle(self) -> None:
        """Wait until every command that has arrived is answered; raises TimeoutError if that does not happen."""
        until = asyncio.get_running_loop().time() + PATIENCE
        while any(connection._busy for connection, transport in self.connections if not transport.closed):
            if asyncio.get_running_loop().time() > until:
                raise TimeoutError(f"{self.path}: a command is not answered")
            await asyncio.sleep(0.0002)

    async def commit(self) -> None:
        """Commit the batches of all connections; raises as `settle`."""
        for connection, _ in self.connections:
            connection.commit_idle()
        await self.settle()
        while any(connection._commit.running for connection, _ in self.connections):
            await asyncio.sleep(0.001)

    def begin(self, count: int, columns: str) -> None:
        """Fill the table again, and connect clients."""
        self.run("DELETE FROM test.t")
        self.run("DELETE FROM test.demo_test")
        options = ", ".join(["5, 17, 0"] if " f INT" in columns else [])
        for number, key in enumerate(ROWS):
            if " INT NOT NULL PRIMARY" not in columns or key.isdigit():
                names = f"k, v{', f, c, e' if options else ''}"
                value = f"'{number}'"
                self.run(f"INSERT INTO test.t ({names}) VALUES ('{key}', {value}{f', {options}' if options else ''})")  # noqa: S608
        self.connections = [(Connection(self.server, HERE), Transport()) for _ in range(count)]
        for connection, transport in self.connections:
            connection.connection_made(cast(asyncio.Transport, transport))
        self.numbers.last = FIRST_CAS
        self.server.shared.counters.reset()
        self.server.shared.counters.prefixes.counting = False
        marks = self.server.shared.marks  # cas numbers come again, and with them what is known of items
        marks.request()
        marks.settle()
        marks._marks.clear()
        marks._accesses.clear()

    async def converse(self, count: int, columns: str, events: Sequence[Event]) -> list[object]:
        """Run a conversation; return what is compared."""
        self.begin(count, columns)
        last, seen = 1, list[object]()
        try:
            for event in events:
                connection, transport = self.connections[event.number]
                if event.data == END_OF_TABLE:
                    await self.commit()
                    self.run("DELETE FROM test.t")
                elif not event.data:
                    connection.commit_idle()
                elif not transport.closed:
                    connection.data_received(filled(event.data, last))
                if event.settles:
                    await self.settle()
                    last = last_number(transport.written) or last
            await self.settle()
            if self.server.isolation.batches:
                await self.commit()
        except TimeoutError as error:
            return [str(error)]
        for number, (connection, transport) in enumerate(self.connections):
            seen += [
                f"connection {number}",
                _comparable(transport.written),
                transport.closed,
            ]
            if not transport.closed:
                connection.connection_lost(None)
        # The number of an AUTO_INCREMENT column depends on failed inserts. The trigger counts in n how often a row is
        # written: by steps an ma with a time writes it twice.
        names = [name for (name,) in self.run(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'test' AND table_name = 't'"
            " AND column_name NOT IN ('id', 'n') ORDER BY ordinal_position"
        )]  # fmt: skip
        shown = [f"CAST({'IF(c > 1000, 1000, c)' if name == 'c' else name} AS CHAR)" for name in names]
        seen.append(self.run(f"SELECT {', '.join(shown)} FROM test.t ORDER BY k"))  # noqa: S608
        counters = self.server.shared.counters
        seen.append({k: v for k, v in counters.totals().items() if k not in RECOUNTED})
        seen.append(str(counters.prefixes.all()))
        return seen

    async def close(self) -> None:
        """End."""
        await self.server.executor.close()
        self._store.close()
        self._sql.close()


def _comparable(replies: bytes) -> bytes:
    """Return replies without the numbers that a server has taken."""
    if not replies.startswith(b"\x81"):
        return _TAKEN.sub(rb"\1#", _UNEQUAL.sub(b"", replies))
    frames, at = bytearray(replies), 0
    while at + 24 <= len(frames):
        length, _, cas = struct.unpack_from(">IIQ", frames, at + 8)
        if cas > FIRST_CAS:
            frames[at + 16 : at + 24] = b"{number}"
        at += 24 + length
    return bytes(frames)


def _differ(steps: list[object], planned: list[object]) -> str:
    for one, other in zip(steps, planned, strict=False):
        if one != other and isinstance(one, bytes) and isinstance(other, bytes):
            at = next(
                (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
            )
            first = max(0, at - 60)
            return f"at {at}:\n steps {one[first : at + 100]!r}\n plan  {other[first : at + 100]!r}"
        if one != other and isinstance(one, dict) and isinstance(other, dict):
            return f"counters: { {name: (one[name], other[name]) for name in one if one[name] != other[name]} }"
        if one != other:
            return f"\n steps {one}\n plan  {other}"
    return "" if steps == planned else f"{steps} {planned}"


async def run(
    dsn: str, profile: str, conversations: int, seed: int, settings: Sequence[str], titles: Sequence[str],
    *, batches: bool = False,
) -> int:  # fmt: skip
    """Run conversations; print those that differ and return their number."""
    differ = 0
    for title in titles:
        columns, values, more = TABLES[title]
        setup = MySQLSide("steps", "kvref", dsn, ())
        options = "'f', 'c', 'e'" if " f INT" in columns else "'0', '', ''"
        index = "'k'" if "id INT" in columns else "'PRIMARY'"
        for statement in (
            "DROP TABLE IF EXISTS test.t", f"CREATE TABLE test.t ({columns})", more,
            "DELETE FROM innodb_memcache.containers",
            f"INSERT INTO innodb_memcache.containers VALUES ('aaa', 'test', 't', 'k', '{values}', {options}, {index})",  # noqa: S608
            "INSERT INTO innodb_memcache.containers VALUES"
            " ('other', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')",
        ):  # fmt: skip
            if statement:
                setup.run(statement)
        await setup.close()
        sides = [MySQLSide(path, profile, dsn, settings) for path in ("steps", "plan")]
        for number in range(max(1, conversations // len(titles))):
            count, events = _conversation(random.Random(f"{seed}:{title}:{number}"), batches=batches)  # noqa: S311
            found = await _compared(sides, count, columns, events)
            if found:
                differ += 1
                print(f"first: {found}")
                events, found = await _shrunk(sides, count, columns, events, found)
                print(f"--- {profile}, {title}, seed {seed}, conversation {number}")
                for event in events:
                    print(_short(f"{event.number}{'.' if event.settles else ' '} {event.data!r}"))
                print(found, flush=True)
                if differ >= MAX_SHOWN:
                    break
        for side in sides:
            await side.close()
        print(f"{profile}, {title}, seed {seed}: {differ} differ so far", flush=True)
        if differ >= MAX_SHOWN:
            break
    return differ


def _conversation(draw: random.Random, *, batches: bool) -> tuple[int, list[Event]]:
    """Return the number of connections, and what they send."""
    count, events = conversation(draw, batches=batches)
    if batches and draw.random() > SHARED:
        count, events = 1, [replace(each, number=0) for each in events]
    if count > 1:  # commands of several connections in flight have no order that both must have
        events = [replace(each, settles=True) for each in events]
    return count, events


async def _compared(sides: list[MySQLSide], count: int, columns: str, events: list[Event]) -> str:
    """Return how both sides differ in a conversation, empty if they do not."""
    for number in range(TRIES if count > 1 and sides[0].server.isolation.batches else 1):
        turns = sides[:: -1 if number % 2 else 1]
        seen = {side.path: await side.converse(count, columns, events) for side in turns}
        found = _differ(seen["steps"], seen["plan"])
        if not found:
            break
    return found


async def _shrunk(
    sides: list[MySQLSide], count: int, columns: str, events: list[Event], found: str
) -> tuple[list[Event], str]:
    size = len(events) // 2
    while size:
        at = 0
        while at < len(events):
            fewer = events[:at] + events[at + size :]
            if differs := await _compared(sides, count, columns, fewer):
                events, found = fewer, differs
            else:
                at += size
        size //= 2
    return events, found


def main() -> int:
    """Run the command; return 1 if anything differs."""
    logging.getLogger("kvref").setLevel(logging.CRITICAL)
    time.time = lambda: NOW
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dsn")
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="append", choices=PROFILES)
    parser.add_argument("--table", action="append", choices=list(TABLES))
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--batches", action="store_true")
    given = parser.parse_args()
    differ = 0
    for profile in given.profile or PROFILES:
        for more in [batch_settings(*each) for each in BATCHES] if given.batches else [()]:
            settings, titles = [*given.settings, *more], given.table or [*TABLES]
            print(*settings)
            differ += asyncio.run(
                run(given.dsn, profile, given.conversations, given.seed, settings, titles, batches=given.batches)
            )
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
