"""Generated conversations of one to three connections with two servers in this process, of which one plans nothing.

    python -m yardsticks.paths.inside [--conversations N] [--seed S] [--profile P]... [--batches]

Half of them have the SETTINGS of a careful operator. With `--batches`, connections have batches of the sizes and levels
of BATCHES, idle connections are committed, and a program empties the table meanwhile.

Input is split at random bytes, and connections send before earlier replies are there. Compared are the bytes of the
replies, the rows of the table and the counters of `stats`. Values of COUNTERS that only timing decides are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import re
import shutil
import sqlite3
import struct
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from kvref import collations, profiles
from kvref.addresses import Address
from kvref.engine.operations import Clear
from kvref.server.connection import Connection
from kvref.server.executors import executor_for
from kvref.server.listeners.listener import Listener
from kvref.server.server import Server
from kvref.server.settings import parse
from kvref.storage.memory import MemoryStore
from kvref.storage.sqlite.store import SQLiteStore
from kvref_testbed.steps import without_plans
from yardsticks.paths.tables import MEMORY, TABLES, Table

# Batches of reads and of writes, the isolation level, and whether writes wait for rows that others have written.
BATCHES: Final = (
    (1, 2, 1, True), (1, 32, 1, True), (2, 3, 1, True), (7, 3, 0, True), (32, 32, 0, True), (1, 3, 3, True),
    (3, 1, 1, True), (1, 3, 2, True), (2, 4, 2, True), (5, 4, 0, False),
)  # fmt: skip
# Settings without batches: the usual ones, and names that bind nothing with limits that some commands exceed.
SETTINGS: Final = ((), ("sticky_mapping=0", "key_size_max=39", "line_size_max=2048"))
LOCK_WAIT: Final = 0.001  # seconds, with batches
PROFILES: Final = ("kvref", "mysql-8.0", "mysql-5.6")
HERE: Final = Listener(Address("127.0.0.1", 0))
EVENTS: Final = 25
STEPS: Final = "steps"
PLAN: Final = "plan"
FIRST_CAS: Final = 1000
NOW: Final = 1_795_000_000.5  # UNIX time of all conversations
MAX_SHOWN: Final = 5  # conversations that differ
QUIET: Final = 4  # turns of the loop without work, after which a side is settled
QUICK_TURNS: Final = 2_000  # of these, after which only a lock is awaited
TURNS: Final = 200_000  # of the loop, until a side counts as stuck
_UNEQUAL: Final = re.compile(rb"STAT (pid|uptime|time|rusage_\w+|\w*connections?\w*) [^\r]*\r\n|(?<=h[01] )l\d+")

END_OF_TABLE: Final = b"\0"  # in place of what a connection sends
# In place of a cas number: the one that the server has shown last.
LAST: Final = b"{last}"
KEYS: Final = [b"a", b"A", b"b", b"c:1", b"c:2", b"12", b"012", b"7", "\u00e4".encode(), b"k" * 40, b"\xff", b"n"]
VALUES: Final = [
    b"", b"1", b"41", b"18446744073709551615", b"x|y", b"p|q|r", b"text", b"-5", b" 7", b"7x", b"0", b"v" * 70,
    b"w" * 1000, b"\xc3\xa4\xc3\xb6", b"\xff\xfe",
]  # fmt: skip
DETAIL_FRAME: Final = b"\x80\x10\0\x09" + bytes(7) + b"\x09" + bytes(12) + b"detail on"  # `stat`
LAST_CAS: Final = b"{lstcas}"  # the same in a frame
# Opcodes of the binary protocol.
SETS: Final = [0x01, 0x11, 0x02, 0x12, 0x03, 0x13]
JOINS: Final = [0x0E, 0x19, 0x0F, 0x1A]
SUMS: Final = [0x05, 0x15, 0x06, 0x16]
TOUCHES: Final = [0x1C, 0x1D, 0x1E, 0x23, 0x24]
KEYLESS: Final = [0x0A, 0x0B]
OPCODES: Final = (
    [0x00, 0x09, 0x0C, 0x0D] * 6 + SETS * 2 + [0x01, 0x11] * 4 + JOINS + SUMS * 2 + [0x04, 0x14] * 2 + TOUCHES
    + [0x0A] * 3 + [0x0B, 0x08, 0x50]
)  # fmt: skip
# Flags of meta commands, and what may follow them.
META_FLAGS: Final = {
    b"mg": b"v v v s t c f h l k q u b O T N R".split(),
    b"ms": b"c k q O T F M I C C b".split(),
    b"md": b"k q O I I T C C".split(),
    b"ma": b"v t c k q O M D N J T C".split(),
    b"me": b"b v k t s".split(),
}
_CAS: Final = [LAST, LAST, b"0", b"1", b"99999"]
META_ARGUMENTS: Final = {
    b"O": [b"opaque", b"7"], b"T": [b"0", b"0", b"30", b"1000000000", b"1900000000", b"-1"],
    b"N": [b"0", b"100", b"1000000000"], b"R": [b"30", b"2000000000"], b"F": [b"0", b"5", b"4294967295"],
    b"M": [b"S", b"E", b"A", b"P", b"R", b"I", b"D", b"x"], b"C": _CAS, b"D": [b"1", b"7"], b"J": [b"0", b"13"],
}  # fmt: skip
FLAGS: Final = [b"0", b"1", b"5", b"4294967295", b"999999999", b"2147483648", b"-1", b"x"]
TIMES: Final = [b"0", b"0", b"0", b"1000000000", b"100", b"2592001", b"-1", b"4000000000", b"x"]
VERBS: Final = [b"set"] * 6 + [b"add", b"replace", b"append", b"prepend", b"cas", b"cas"]
ODD: Final = [
    b"", b"bogus", b"get", b"get  a", b"set a 0 0", b"get " + b"k" * 251, b"delete a 0", b"delete a 1", b"incr a x",
    b"touch a", b"version", b"gets a b a", b"bget a", b"get @>=a", b"get @>a@<c", b"get @@aaa", b"get @@other.a",
    b"get @@nope.a", b"mg a v f t c", b"mg b v h l", b"ms a 1\r\nz", b"md a", b"ma n", b"mn", b"flush_all",
    b"verbosity 1", b"get a b c 12 7 @@aaa.a n", b"stats reset", b"stats detail on", b"stats detail off",
    b"stats detail dump", b"set a 0 0 -1", b"set a 0 0 3 x\r\nabc", b"gat 0 a b", b"gats 100 a", b"gat x a",
    b"delete a noreply", b"get a\0b", b"get a\rb", b"set a 0 0 2000000",
]  # fmt: skip


class Transport:
    """What a connection needs of a transport: it keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        """Keep what is sent."""
        self.written += data

    def close(self) -> None:
        """Note the end."""
        self.closed = True

    write_eof = abort = close

    def is_closing(self) -> bool:
        """Return whether it was closed."""
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        """Return what a socket of this machine has."""
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else None

    def pause_reading(self) -> None:
        """Do nothing: input is fed by the duel."""

    resume_reading = pause_reading


class Numbers:
    """Cas numbers, the same for each conversation, so that one that takes a number too many is found."""

    def __init__(self) -> None:
        self.last = FIRST_CAS

    def __iter__(self) -> Numbers:
        """Return itself."""
        return self

    def __next__(self) -> int:
        """Return the next number."""
        self.last += 1
        return self.last


class Side:
    """A server in this process.

    Args:
        path: `steps`, where nothing is planned, or `plan`.
        profile: of the server.
        table: which one it serves.
        folder: of its file.
        settings: of the server, as NAME=VALUE.
    """

    def __init__(self, path: str, profile: str, table: Table, folder: Path, settings: Sequence[str] = ()) -> None:
        facts = profiles.load(profile)
        self.table, self._path = table, path
        self._store: SQLiteStore | MemoryStore
        if table is MEMORY:
            self._store = MemoryStore("memory://", facts)
        else:
            self._store = self._of_file(folder / f"{path}.sqlite", facts)
        self.server = Server(self._store, facts, lambda: parse(list(settings), None, facts), [HERE])
        self.numbers = Numbers()
        self.server.shared.cas = self.numbers
        self.batches = self.server.isolation.batches
        self.server.executor = executor_for(self._store, self.server.isolation, LOCK_WAIT if self.batches else 1)
        if path == STEPS:
            without_plans(self.server.executor)
        self.connections: list[tuple[Connection, Transport]] = []

    def _of_file(self, file: Path, facts: profiles.Profile) -> SQLiteStore:
        store = SQLiteStore(file, facts)
        store.initialise()
        store.sync = lambda: None  # type: ignore[method-assign]  # nothing needs to reach the disk
        self._sql = sqlite3.connect(file, isolation_level=None)
        collations.register(self._sql)
        for statement in self.table.statements:
            self._sql.execute(statement)
        return store

    def connect(self, count: int) -> None:
        """Connect clients in place of those that there are."""
        for connection, transport in self.connections:
            if not transport.closed:
                connection.connection_lost(None)
        self.connections = [(Connection(self.server, HERE), Transport()) for _ in range(count)]
        for connection, transport in self.connections:
            connection.connection_made(cast(asyncio.Transport, transport))

    def feed(self, number: int, data: bytes) -> None:
        """Let a connection receive bytes; none: it is idle, and END_OF_TABLE: a program empties the table."""
        connection, transport = self.connections[number]
        if data == END_OF_TABLE:
            self.clear()
        elif not data:
            connection.commit_idle()
        elif not transport.closed:
            connection.data_received(data)

    async def settle(self) -> None:
        """Wait until every command that has arrived is answered; raises TimeoutError if that does not happen."""
        quiet = 0
        for turn in range(TURNS):
            behind = any(connection._busy for connection, transport in self.connections if not transport.closed)
            dirty = isinstance(self._store, SQLiteStore) and self._store.dirty
            quiet = 0 if behind or dirty else quiet + 1
            if quiet == QUIET:
                return
            await asyncio.sleep(LOCK_WAIT if self.batches and turn > QUICK_TURNS else 0)
        raise TimeoutError(f"{self._path}: a command is not answered")

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of the table."""
        if isinstance(self._store, MemoryStore):
            found = [(row.key, row.values, row.flags, row.cas, row.expiry) for row in self._store._rows.values()]
            return sorted(found, key=repr)
        return self._sql.execute(f"SELECT * FROM {self.table.name} ORDER BY 1").fetchall()  # noqa: S608

    def clear(self) -> None:
        """Empty the table, from outside, and fill it again."""
        if isinstance(self._store, MemoryStore):
            self._store.execute(Clear(self.server.shared.directory.default, "rows-kept"))
            return
        self._sql.execute("BEGIN")
        self._sql.execute(f"DELETE FROM {self.table.name}")  # noqa: S608
        self._sql.execute("DELETE FROM demo_test")  # the mapping `other`
        for statement in self.table.rows:
            self._sql.execute(statement)
        self._sql.execute("COMMIT")

    async def close(self) -> None:
        """End."""
        self.connect(0)
        await asyncio.sleep(0.01)
        await self.server.executor.close()
        self._store.close()
        if isinstance(self._store, SQLiteStore):
            self._sql.close()


def command(draw: random.Random, meta: float) -> bytes:
    """Return a command with its data; `meta`: the share of meta commands."""
    key = draw.choice(KEYS)
    if draw.random() < 0.08:
        key = b"@@" + draw.choice([b"aaa.", b"other.", b"aaa:"]) + key
    if draw.random() < meta:
        return meta_command(draw, key)
    quiet = b" noreply" if draw.random() < 0.1 else b""
    kind = draw.random()
    if kind < 0.3:
        words = [draw.choice(KEYS) for _ in range(draw.choice([1, 1, 1, 2, 5]))]
        return draw.choice([b"get", b"get", b"gets"]) + b" " + b" ".join([key, *words[1:]]) + b"\r\n"
    if kind < 0.65:
        verb, value = draw.choice(VERBS), draw.choice(VALUES)
        flags, time = (b"0", b"0") if draw.random() < 0.8 else (draw.choice(FLAGS), draw.choice(TIMES))
        cas = b" " + draw.choice([LAST, LAST, b"1"]) if verb == b"cas" else b""
        end = b"\r\n" if draw.random() < 0.98 else b"xx"
        return b"%b %b %b %b %d%b%b\r\n%b%b" % (verb, key, flags, time, len(value), cas, quiet, value, end)
    if kind < 0.75:
        delta = draw.choice([b"1", b"5", b"18446744073709551615", b"-1"])
        return b"%b %b %b%b\r\n" % (draw.choice([b"incr", b"decr"]), key, delta, quiet)
    if kind < 0.83:
        return b"delete %b%b\r\n" % (key, quiet)
    if kind < 0.9:
        return b"touch %b %b%b\r\n" % (key, draw.choice(TIMES), quiet)
    if kind < 0.93:
        words = [draw.choice(KEYS) for _ in range(draw.choice([0, 0, 1, 4]))]
        return b"%b %b %b\r\n" % (draw.choice([b"gat", b"gats"]), draw.choice(TIMES), b" ".join([key, *words]))
    return draw.choice(ODD) + b"\r\n"


def meta_command(draw: random.Random, key: bytes) -> bytes:
    """Return a meta command with its data."""
    verb = draw.choice([b"mg", b"mg", b"mg", b"ms", b"ms", b"md", b"ma", b"mn", b"me"])
    if verb == b"mn":
        return b"mn\r\n"
    value = draw.choice(VALUES)
    words = [verb, key] + ([b"%d" % len(value)] if verb == b"ms" else [])
    for flag in draw.sample(META_FLAGS[verb], draw.choice([0, 1, 2, 2, 4])):
        argument = META_ARGUMENTS.get(flag, [b""])
        words.append(flag + draw.choice(argument))
    if draw.random() < 0.03:
        words.append(draw.choice([b"x", b"v", b"T", b"F-1", b"b"]))
    return b" ".join(words) + b"\r\n" + (value + b"\r\n" if verb == b"ms" else b"")


def frame(draw: random.Random) -> bytes:
    """Return a binary command."""
    opcode = draw.choice(OPCODES)
    key = draw.choice(KEYS)
    if draw.random() < 0.08:
        key = b"@@" + draw.choice([b"aaa.", b"other.", b"aaa:"]) + key
    value, extras = b"", b""
    times = [0, 0, 0, 100, 1_000_000_000, 2_592_001, 0xFFFFFFFF, 4_000_000_000]
    if opcode in SETS:
        flags = draw.choice([0, 0, 5, 0x80000000, 0xFFFFFFFF])
        extras, value = struct.pack(">II", flags, draw.choice(times)), draw.choice(VALUES)
    elif opcode in JOINS:
        value = draw.choice(VALUES)
    elif opcode in SUMS:
        extras = struct.pack(">QQI", draw.choice([1, 5, (1 << 64) - 1]), draw.choice([0, 13]), draw.choice(times))
    elif opcode in TOUCHES:
        extras = struct.pack(">I", draw.choice(times))
    elif opcode in KEYLESS:
        key = b""
    if draw.random() < 0.01:
        value += b"x"  # too much, but for those with a value
    vbucket = draw.random() < 0.01
    cas = draw.choice([bytes(8)] * 6 + [LAST_CAS, LAST_CAS, struct.pack(">Q", 5)])
    body = extras + key + value
    head = struct.pack(">BBHBBHI4s", 0x80, opcode, len(key), len(extras), 0, vbucket, len(body), draw.randbytes(4))
    return head + cas + body


@dataclass(frozen=True, slots=True)
class Event:
    """Bytes that a connection sends.

    Args:
        number: of the connection.
        data: what it sends.
        settles: all replies are awaited before the next event.
    """

    number: int
    data: bytes
    settles: bool


def conversation(draw: random.Random, *, batches: bool = False) -> tuple[int, list[Event]]:
    """Return the number of connections, and what they send; with `batches`, some are idle, and a program writes."""
    count = draw.choice([1, 2, 3, 3] if batches else [1, 1, 2, 3])
    meta, binary = draw.choice([0.03, 0.6]), draw.random() < 0.3
    events: list[Event] = []
    if draw.random() < 0.25:
        events.append(Event(0, DETAIL_FRAME if binary else b"stats detail on\r\n", settles=True))
    for _ in range(EVENTS):
        number = draw.randrange(count)
        if batches and (special := draw.random()) < 0.08:
            events[-1:] = [replace(each, settles=True) for each in events[-1:]]
            events.append(Event(number, b"" if special < 0.06 else END_OF_TABLE, settles=True))
            continue
        data = b"".join(frame(draw) if binary else command(draw, meta) for _ in range(draw.choice([1, 1, 2, 4, 20])))
        events += [Event(number, chunk, draw.random() < 0.3) for chunk in chunks(draw, data)]
        # What the parser's path does for another connection meanwhile has no order that both must have.
        if events and (count > 1 or draw.random() < 0.5):
            events[-1] = replace(events[-1], settles=True)
    return count, events


def chunks(draw: random.Random, data: bytes) -> list[bytes]:
    """Return input as it arrives."""
    if draw.random() < 0.6:
        return [data]
    cuts = sorted({draw.randrange(len(data) + 1) for _ in range(draw.choice([1, 2, 6]))})
    return [each for each in (data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)) if each]


def filled(data: bytes, last: int) -> bytes:
    """Return input with a cas number in place of `LAST` and `LAST_CAS`."""
    return data.replace(LAST, b"%d" % last).replace(LAST_CAS, struct.pack(">Q", last))


def last_number(replies: bytes) -> int:
    """Return the last cas number in some replies, 0 if there is none."""
    if not replies.startswith(b"\x81"):
        numbers = re.findall(rb"(?:VALUE \S+ \d+ \d+ |\bc)(\d+)", replies)
        return int(numbers[-1]) if numbers else 0
    at, last = 0, 0
    while at + 24 <= len(replies):
        length, _, cas = struct.unpack_from(">IIQ", replies, at + 8)
        at, last = at + 24 + length, cas or last
    return last


async def begin(side: Side, count: int) -> None:
    """Begin a conversation of so many connections: with the rows of the table alone, and no command in hand."""
    with suppress(TimeoutError):
        if side.batches:
            side.connect(0)
        await side.settle()  # what a conversation that differs has left
    side.clear()
    side.connect(count)
    side.numbers.last = FIRST_CAS
    side.server.shared.counters.reset()
    side.server.shared.counters.prefixes.counting = False


async def end(side: Side) -> None:
    """End a conversation: all is answered, and batches are committed."""
    await side.settle()
    for number in range(len(side.connections) if side.batches else 0):
        side.feed(number, b"")
        await side.settle()


async def converse(sides: tuple[Side, Side], count: int, events: Sequence[Event]) -> str:
    """Run a conversation on both sides; return what differs, empty if nothing does."""
    for side in sides:
        await begin(side, count)
    last = 1
    try:
        for event in events:
            for side in sides:
                if event.data == END_OF_TABLE:
                    await side.settle()  # it waits for no lock
                side.feed(event.number, filled(event.data, last))
            if event.settles:
                for side in sides:
                    await side.settle()
            if found := _difference(sides):
                return found
            last = last_number(sides[0].connections[event.number][1].written) or last
        for side in sides:
            await end(side)
    except TimeoutError as error:
        return str(error)
    return _difference(sides) or _state_difference(sides)


async def shrunk(sides: tuple[Side, Side], count: int, events: list[Event]) -> list[Event]:
    """Return fewer events that differ too."""
    size = len(events) // 2
    while size:
        at = 0
        while at < len(events):
            fewer = events[:at] + events[at + size :]
            if await converse(sides, count, fewer):
                events = fewer
            else:
                at += size
        size //= 2
    return events


def _difference(sides: tuple[Side, Side]) -> str:
    """Return how the replies that both have sent differ."""
    for number, ends in enumerate(zip(*(side.connections for side in sides), strict=True)):
        old, new = (_UNEQUAL.sub(b"", transport.written) for _, transport in ends)
        length = min(len(old), len(new)) if any(connection._busy for connection, _ in ends) else None
        if old[:length] != new[:length] or (length is None and ends[0][1].closed != ends[1][1].closed):
            at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
            first = max(0, at - 60)
            return f"connection {number} at {at}:\n steps {old[first : at + 80]!r}\n plan  {new[first : at + 80]!r}"
    return ""


def _state_difference(sides: tuple[Side, Side]) -> str:
    old, new = (side.rows() for side in sides)
    if old != new:
        return f"rows:\n steps {old}\n plan  {new}"
    before, after = (side.server.shared.counters.totals() for side in sides)
    unequal = {
        name: (before[name], after[name]) for name in before if before[name] != after[name] and name != "bytes_read"
    }
    if unequal:
        return f"counters: {unequal}"
    ours, theirs = (side.server.shared.counters.prefixes.all() for side in sides)
    return "" if ours == theirs else f"prefixes:\n steps {ours}\n plan  {theirs}"


def _short(text: str) -> str:
    """Return a conversation with its long values cut."""
    return re.sub(r"(.)\1{20,}", r"\1\1...", text)


async def run(
    profile: str,
    conversations: int,
    seed: int,
    tables: Sequence[Table] = TABLES,
    settings: Sequence[str] = (),
    *,
    batches: bool = False,
) -> int:
    """Run conversations; print those that differ and return their number."""
    differ = 0
    if batches:
        tables = [table for table in tables if table is not MEMORY]  # it has no batches
    each = max(1, conversations // len(tables))
    for table in tables:
        folder = Path(tempfile.mkdtemp(prefix="kvref-paths-"))
        sides = Side(STEPS, profile, table, folder, settings), Side(PLAN, profile, table, folder, settings)
        for number in range(each):
            count, events = conversation(
                random.Random(f"{seed}:{table.title}:{number}"),  # noqa: S311
                batches=batches,
            )
            found = await converse(sides, count, events)
            if not found:
                continue
            differ += 1
            print(f"first: {found}")
            events = await shrunk(sides, count, events)
            print(f"--- {profile} {' '.join(settings)}, {table.title}, seed {seed}, conversation {number}")
            for event in events:
                print(_short(f"{event.number}{'.' if event.settles else ' '} {event.data!r}"))
            print(await converse(sides, count, events), flush=True)
            if differ >= MAX_SHOWN:
                return differ
        for side in sides:
            with suppress(Exception):
                await side.close()
        shutil.rmtree(folder)
    print(
        f"{' '.join([profile, *settings])}, seed {seed}: {each * len(tables)} conversations, {differ} differ",
        flush=True,
    )
    return differ


def batch_settings(reads: int, writes: int, level: int, locks: bool) -> tuple[str, ...]:
    """Return settings of a server, see BATCHES."""
    return (
        f"daemon_memcached_r_batch_size={reads}",
        f"daemon_memcached_w_batch_size={writes}",
        f"innodb_api_trx_level={level}",
        f"innodb_api_disable_rowlock={int(not locks)}",
    )


def main() -> int:
    """Run the command; return 1 if anything differs."""
    logging.getLogger("kvref").setLevel(logging.CRITICAL)
    time.time = lambda: NOW  # both sides write the same times
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="append", choices=PROFILES)
    parser.add_argument("--table", action="append", choices=[table.title for table in TABLES])
    parser.add_argument("--batches", action="store_true")
    given = parser.parse_args()
    tables = [table for table in TABLES if given.table is None or table.title in given.table]
    differ = 0
    for profile in given.profile or PROFILES:
        of_all = [batch_settings(*each) for each in BATCHES] if given.batches else SETTINGS
        each = given.conversations if given.batches else given.conversations // len(SETTINGS)
        for settings in of_all:
            differ += asyncio.run(run(profile, each, given.seed, tables, settings, batches=given.batches))
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
