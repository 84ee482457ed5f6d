"""kvref over a server that still has the plugin: what the migration guide says of the time in which both serve the same tables."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pymysql
import pytest
from helpers.live import target_or_skip
from helpers.serving import Served, ask, serving

from kvref_testbed.targets import Target

pytestmark = [pytest.mark.live, pytest.mark.nightly]
TIMES = 150


@dataclass
class Old:
    """A MySQL 8.0 with the plugin, and the connections to it that are closed at the end."""

    target: Target
    opened: list[socket.socket] = field(default_factory=list)

    def connect(self) -> socket.socket:
        self.opened.append(socket.create_connection((self.target.host, self.target.port), timeout=20))
        return self.opened[-1]

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        made = pymysql.connect(unix_socket=str(self.target.socket), user="root", autocommit=True)
        with closing(made), made.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def serving(self, *options: str) -> Iterator[Served]:
        assert self.target.sql is not None
        with serving(self.target.sql, *options) as served:
            yield served


def old(*options: str) -> Iterator[Old]:
    with target_or_skip("mysql-8.0-plugin", options) as target:
        made = Old(target)
        yield made
        for each in made.opened:
            each.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[Old]:
    yield from old()


@pytest.fixture(scope="module")
def batching() -> Iterator[Old]:
    # The plugin commits an idle batch after this interval, which no test is to reach.
    yield from old(
        "--daemon_memcached_w_batch_size=8", "--innodb_lock_wait_timeout=2", "--innodb_api_bk_commit_interval=1000000"
    )


@pytest.fixture
def kvref(plain: Old) -> Iterator[Served]:
    yield from plain.serving()


def both(plain: Old, kvref: Served, work: Callable[[socket.socket], object]) -> list[object]:
    """Do the same through two connections to each, at once."""
    came: list[object] = []
    connections = [plain.connect(), kvref.connect(), plain.connect(), kvref.connect()]
    threads = [threading.Thread(target=lambda each=each: came.append(work(each))) for each in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in connections[1::2]:
        each.close()
    assert len(came) == len(connections)
    return came


def test_each_sees_what_the_other_wrote(plain: Old, kvref: Served) -> None:
    theirs = plain.connect()
    with kvref.connect() as ours:
        for number, (writer, reader) in enumerate([(theirs, ours), (ours, theirs)] * 20):
            assert ask(writer, b"set k 7 0 4\r\n%04d\r\n" % number) == b"STORED\r\n"
            assert ask(reader, b"get k\r\n") == b"VALUE k 7 4\r\n%04d\r\nEND\r\n" % number


def test_incr_of_both_at_once_loses_no_step(plain: Old, kvref: Served) -> None:
    ask(plain.connect(), b"set n 0 0 1\r\n0\r\n")
    both(plain, kvref, lambda connection: [ask(connection, b"incr n 1\r\n") for _ in range(TIMES)])
    assert ask(plain.connect(), b"get n\r\n") == b"VALUE n 0 3\r\n%d\r\nEND\r\n" % (4 * TIMES)


def test_add_of_both_at_once_has_one_winner(plain: Old, kvref: Served) -> None:
    def work(connection: socket.socket) -> int:
        return sum(ask(connection, b"add a%d 0 0 1\r\n1\r\n" % number) == b"STORED\r\n" for number in range(TIMES))

    wins = both(plain, kvref, work)
    assert sum(count for count in wins if isinstance(count, int)) == TIMES


def test_a_flush_of_either_empties_for_both(plain: Old, kvref: Served) -> None:
    theirs = plain.connect()
    with kvref.connect() as ours:
        for one, other in ((theirs, ours), (ours, theirs)):
            ask(one, b"set k 0 0 1\r\n1\r\n")
            assert ask(other, b"flush_all\r\n") == b"OK\r\n"
            assert ask(one, b"get k\r\n") == ask(other, b"get k\r\n") == b"END\r\n"


@pytest.mark.parametrize(("profile", "second"), [("kvref", b"EXISTS\r\n"), ("mysql-8.0", b"STORED\r\n")])
def test_a_cas_number_fits_twice_where_both_count_from_one(plain: Old, profile: str, second: bytes) -> None:
    for served in plain.serving("--profile", profile):
        theirs = plain.connect()
        plain.sql("DELETE FROM test.demo_test")
        with served.connect() as ours:
            ask(theirs, b"set k 0 0 1\r\n1\r\n")
            reached = int(ask(theirs, b"gets k\r\n").split()[4])
            number = b"0"
            while int(number) <= reached:
                ask(ours, b"set k 0 0 1\r\n2\r\n")
                number = ask(ours, b"gets k\r\n").split()[4]
            # The plugin writes with its next number, which equals the row's number here if both count alike.
            assert ask(theirs, b"cas k 0 0 1 %s\r\n3\r\n" % number) == b"STORED\r\n"
            assert ask(ours, b"cas k 0 0 1 %s\r\n4\r\n" % number) == second


def test_a_batch_of_the_plugin(batching: Old) -> None:
    theirs = batching.connect()
    for served in batching.serving("--set", "innodb_lock_wait_timeout=1"):
        with served.connect() as ours:
            assert ask(theirs, b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert ask(ours, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            assert batching.sql("SELECT c2 FROM test.demo_test WHERE c1 = 'k'") == []
            assert ask(ours, b"set k 0 0 1\r\n2\r\n") == b"SERVER_ERROR lock wait timeout\r\n"
            assert ask(ours, b"set other 0 0 1\r\n2\r\n") == b"STORED\r\n"
    theirs.close()


def test_a_batch_of_kvref(batching: Old) -> None:
    theirs = batching.connect()
    for served in batching.serving("--set", "daemon_memcached_w_batch_size=8"):
        with served.connect() as ours:
            assert ask(ours, b"set b 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert ask(theirs, b"get b\r\n") == b"VALUE b 0 1\r\n1\r\nEND\r\n"
            assert ask(theirs, b"set b 0 0 1\r\n2\r\n") == b"NOT_STORED\r\n"
    theirs.close()


def test_the_plugin_goes_with_what_was_pending_written_and_leaves_connections_open(batching: Old) -> None:
    theirs = batching.connect()
    assert ask(theirs, b"set last 0 0 1\r\n1\r\n") == b"STORED\r\n"
    batching.sql("UNINSTALL PLUGIN daemon_memcached")
    assert batching.sql("SELECT c2 FROM test.demo_test WHERE c1 = 'last'") == [("1",)]
    with pytest.raises(ConnectionRefusedError):
        batching.connect()
    theirs.settimeout(1)
    with pytest.raises(TimeoutError):  # neither an answer nor an end
        ask(theirs, b"get last\r\n")
    # The port is free all the same.
    for served in batching.serving("--listen", batching.target.memcached()):
        assert served.port == batching.target.port
        with served.connect() as ours:
            assert ask(ours, b"get last\r\n") == b"VALUE last 0 1\r\n1\r\nEND\r\n"
