"""Two servers over one database, and SQL clients: what gets show of a row is one order of its committed writes."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing

import pymysql
import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import Served, serving
from helpers.waiting import until_risen

from kvref_conformance.stateful.concurrency.linearizability import Operation, longest_order
from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
ROUNDS = 6
SHOWN_TWICE = 2  # gets of each reader in front of an end: the second began after the statement
LEVEL = "innodb_api_trx_level"

# A command, or what SQL has committed: its word, its argument and its reply.
Done = tuple[bytes, bytes, bytes]
History = dict[bytes, list[Operation[Done]]]


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


def after(value: bytes, done: Done) -> bytes | None:
    """Return what a row has after a command, None if its reply is wrong; b"": there is no row."""
    match done:
        case b"get", _, shown:
            return value if shown == value else None
        case b"set", new, _:
            return new
        case b"add", new, b"STORED\r\n":
            return None if value else new
        case b"add", _, _:
            return value or None
        case b"delete", _, reply:
            return b"" if (reply == b"DELETED\r\n") == bool(value) else None
    raise AssertionError(done)


class Round:
    """Readers and writers of two servers, and two SQL clients, on two new rows.

    Args:
        keys: of the rows.
        history: takes what they do.
    """

    def __init__(self, keys: Sequence[bytes], history: History) -> None:
        self.keys = keys
        self.history = history
        self.writing = True
        self.shown = [0, 0]  # gets that each reader has a reply to

    def note(self, key: bytes, done: Done, called: int) -> None:
        self.history[key].append(Operation(done, called, time.monotonic_ns()))

    def read(self, number: int, served: Served) -> None:
        """Get rows alone, one behind the other and together, until nothing is written any more."""
        one, other = self.keys
        with served.connect() as client:
            for keys in itertools.cycle(((one,), (other,), (one, other), (other, one))):
                if not self.writing:
                    return
                apart = self.shown[number] % 3 == 0
                called = time.monotonic_ns()
                if apart:
                    client.sendall(b"".join(b"get %b\r\n" % key for key in keys))
                else:
                    client.sendall(b"get %b\r\n" % b" ".join(keys))
                received = lines(client, b"END\r\n", len(keys) if apart else 1)
                for key in keys:
                    _, found, rest = received.partition(b"VALUE %b 0 " % key)
                    self.note(key, (b"get", b"", rest.split(b"\r\n")[1] if found else b""), called)
                self.shown[number] += 1

    def write(self, number: int, served: Served) -> None:
        """Set, add and delete rows."""
        with served.connect() as client:
            for turn, (key, verb) in enumerate(itertools.product(self.keys, (b"set", b"delete", b"add", b"set"))):
                value = b"m%d.%d" % (number, turn)
                body = b"" if verb == b"delete" else b" 0 0 %d\r\n%b" % (len(value), value)
                called = time.monotonic_ns()
                client.sendall(b"%b %b%b\r\n" % (verb, key, body))
                reply = lines(client, b"\r\n", 1)
                if not reply.startswith(b"SERVER_ERROR"):  # nothing was written
                    self.note(key, (verb, value, reply), called)

    def write_by_sql(self, number: int, database: SQLServer) -> None:
        """Write rows in transactions that both readers see, of which every other one is rolled back."""
        with closing(database.connect(60)) as connection, connection.cursor() as cursor:
            for turn, (key, commits) in enumerate(itertools.product(self.keys[:: 1 - 2 * number], (False, True))):
                value = b"s%d.%d" % (number, turn)
                called = time.monotonic_ns()
                try:
                    cursor.execute("BEGIN")
                    cursor.execute("REPLACE INTO test.demo_test VALUES (%s, %s, 0, UUID_SHORT(), 0)", (key, value))
                    until_risen(lambda: [shown // SHOWN_TWICE for shown in self.shown])
                    connection.commit() if commits else connection.rollback()
                except pymysql.err.OperationalError:
                    connection.rollback()  # a deadlock
                else:
                    if commits:
                        self.note(key, (b"set", value, b""), called)


def lines(client: socket.socket, end: bytes, count: int) -> bytes:
    """Return bytes up to so many ends of lines."""
    received = b""
    while received.count(end) < count:
        received += client.recv(1 << 16)
    return received


def played(database: SQLServer, *options: str) -> History:
    """Return what was done to the rows of all rounds."""
    history: History = {}
    with ExitStack() as stack:
        both = [stack.enter_context(serving(database.dsn, *options)) for _ in range(2)]
        pool = stack.enter_context(ThreadPoolExecutor(6))
        for number in range(ROUNDS):
            keys = [b"k%d.%d" % (number, each) for each in range(2)]
            history |= {key: [] for key in keys}
            each = Round(keys, history)
            readers = [pool.submit(each.read, *numbered) for numbered in enumerate(both)]
            tasks: list[tuple[Callable[..., None], object]] = [
                *((each.write, served) for served in both),
                *((each.write_by_sql, database) for _ in range(2)),
            ]
            writers = [pool.submit(task, at % 2, where) for at, (task, where) in enumerate(tasks)]
            finish(each, writers, readers)
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")
    return history


def finish(round_: Round, writers: Sequence[Future[None]], readers: Sequence[Future[None]]) -> None:
    try:
        for writer in writers:
            writer.result()
    finally:
        round_.writing = False
    for reader in readers:
        reader.result()


def wrong(history: History) -> list[bytes]:
    """Return the keys whose commands have no order that keeps real time and has their replies."""
    return [key for key, done in history.items() if len(longest_order(done, b"", after)) < len(done)]


@pytest.mark.parametrize("options", [(), ("--set", f"{LEVEL}=2")])
def test_gets_show_one_order_of_the_committed_writes(database: SQLServer, options: tuple[str, ...]) -> None:
    history = played(database, *options)
    assert {done.what[0] for each in history.values() for done in each} == {b"get", b"set", b"add", b"delete"}
    assert wrong(history) == []


def test_gets_that_show_what_is_rolled_back_have_no_order(database: SQLServer) -> None:
    assert wrong(played(database, "--set", f"{LEVEL}=0"))
