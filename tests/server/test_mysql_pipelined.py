"""Commands that one connection sends at once are carried out together over a database server, and in their order."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from threading import Thread

import pytest
from helpers.database import database_or_skip, map_table, sql, stopped, until_one_waits
from helpers.live import MYSQL_8
from helpers.serving import Served, serving
from helpers.waiting import until
from server.at_once import common_statements, got, put
from server.conversations import Peer

from kvref.server.executors.mysql.executor import SCHEMA_CHECK_INTERVAL
from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
STORED = b"STORED\r\n"
COUNT = 40
GET, SET, NOOP, GETKQ, SETQ = 0x00, 0x01, 0x0A, 0x0D, 0x11
NO_FLAGS = bytes(8)
KEYS = [f"p{number:02d}" for number in range(COUNT)]


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[socket.socket]:
    """A client whose first commands are those of the test: they are planned as later ones."""
    with served.connect() as found:
        yield found


def ask(client: socket.socket, data: bytes, replies: int) -> bytes:
    """Send bytes at once and return so many replies."""
    client.sendall(data)
    received = b""
    while len(re.findall(rb"(?m)^(STORED|END|SERVER_ERROR.*|CLIENT_ERROR.*)\r$", received)) < replies:
        received += client.recv(1 << 16)
    return received


def test_a_run_of_sets_and_a_run_of_gets_are_few_statements(database: SQLServer, client: socket.socket) -> None:
    sql(database, "SET GLOBAL general_log = ON")
    assert ask(client, b"".join(put(key, "1") for key in KEYS), COUNT) == STORED * COUNT
    assert ask(client, b"".join(b"get %b\r\n" % key.encode() for key in KEYS), COUNT) == b"".join(
        got(key, "1") for key in KEYS
    )
    widths = [width for verb, width in common_statements(database) if verb == "SELECT"]
    assert max(widths) > COUNT / 2
    assert sum(widths) == 2 * COUNT  # the sets lock their rows first


def written(database: SQLServer, columns: str) -> list[tuple[object, ...]]:
    """Return columns of the rows that a run of sets has written."""
    return sql(database, f"SELECT {columns} FROM test.demo_test WHERE c1 LIKE 'p__' ORDER BY c1")


def locked(database: SQLServer) -> int:
    """Return how many statements locked rows, and end the log."""
    return sum(verb == "SELECT" for verb, _ in common_statements(database))


def test_sets_with_a_time_and_without_a_reply_are_few_statements(database: SQLServer, client: socket.socket) -> None:
    before = int(time.time())
    sets = [
        b"set %b %d 100 3%b\r\nnew\r\n" % (key.encode(), number, b" noreply" * (number % 2))
        for number, key in enumerate(KEYS)
    ]
    sql(database, "SET GLOBAL general_log = ON")
    assert ask(client, b"".join(sets) + b"get none\r\n", COUNT // 2 + 1) == STORED * (COUNT // 2) + b"END\r\n"
    assert locked(database) < 4
    found = written(database, "c1, c2, c3, c5")
    assert [row[:3] for row in found] == [(key, "new", number) for number, key in enumerate(KEYS)]
    assert all(before + 100 <= expiry <= time.time() + 100 for *_, expiry in found)


def test_binary_sets_are_few_statements(database: SQLServer, served: Served) -> None:
    times = struct.pack(">II", 7, 0), struct.pack(">II", 7, 100)
    with ExitStack() as stack:
        peer = Peer(served, stack, hides_cas=False)
        peer.exchange_frames([(GET, b"p00", b"", b"")], 0)
        sql(database, "SET GLOBAL general_log = ON")
        sets = [
            ((SET, SETQ)[number % 2], b"@@aaa." * (number % 3 == 1) + key.encode(), times[number % 2], b"new")
            for number, key in enumerate(KEYS)
        ]
        replies = peer.exchange_frames([*sets, (NOOP, b"", b"", b"")], 0)
    assert locked(database) < 4
    found = written(database, "c1, c2, c3, c5 > 0, c4")
    assert [row[:4] for row in found] == [(key, "new", 7, number % 2) for number, key in enumerate(KEYS)]
    assert [reply[:2] for reply in replies] == [(SET, 0)] * (COUNT // 2) + [(NOOP, 0)]
    assert [reply[5] for reply in replies[:-1]] == [row[4] for row in found[::2]]


def test_a_set_that_the_table_refuses_has_its_own_reply_or_none(database: SQLServer) -> None:
    map_table(database, "choosy", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)", "CHECK (v <> 'bad')")
    with serving(database.dsn) as served, served.connect() as client, ExitStack() as stack:
        ask(client, b"get @@choosy.a\r\n", 1)
        bad = put("b", "bad")
        lines = put("a", "1") + bad.replace(b" 3\r", b" 3 noreply\r") + put("c", "1") + bad + put("d", "1")
        replies = ask(client, lines, 4).split(b"\r\n")
        assert [reply.split(b" ")[0] for reply in replies] == [b"STORED", b"STORED", b"SERVER_ERROR", b"STORED", b""]
        peer = Peer(served, stack)
        peer.exchange_frames([(GET, b"@@choosy", b"", b"")], 0)
        sets = [(opcode, key, NO_FLAGS, value) for opcode, key, value in (
            (SET, b"e", b"1"), (SETQ, b"b", b"bad"), (SETQ, b"f", b"1"), (SET, b"g", b"1"),
        )]  # fmt: skip
        assert [reply[:2] for reply in peer.exchange_frames(sets, 0)] == [(SET, 0), (SETQ, 0x84), (SET, 0)]
    assert [key for (key,) in sql(database, "SELECT k FROM test.choosy ORDER BY k")] == [*"acdefg"]


def test_a_set_without_a_reply_has_none_if_the_database_hangs(database: SQLServer) -> None:
    options = "--set", "innodb_lock_wait_timeout=1"
    with serving(f"{database.dsn}?timeout=1", *options) as served, served.connect() as client:
        for request in (b"get AA\r\n", put("p00", "1"), put("p00", "1")):
            ask(client, request, 1)
        with stopped(database):
            client.sendall(put("p00", "2").replace(b" 1\r", b" 1 noreply\r") + put("p01", "2") + b"version\r\n")
            received = b""
            while b"VERSION" not in received:
                received += client.recv(200)
    first, *others = received.split(b"\r\n")
    assert first.startswith(b"SERVER_ERROR no answer from the database within 2 s")
    assert [other.split(b" ")[0] for other in others] == [b"VERSION", b""]


def test_binary_gets_are_few_statements(database: SQLServer, client: socket.socket, served: Served) -> None:
    ask(client, b"".join(put(key, "1") for key in KEYS), COUNT)
    names = [key.encode() for key in [*KEYS[:20], "none", "@@aaa.p01", *KEYS[20:]]]
    with ExitStack() as stack:
        peer = Peer(served, stack)
        peer.exchange_frames([(GET, b"@@aaa", b"", b"")], 0)
        sql(database, "SET GLOBAL general_log = ON")
        replies = peer.exchange_frames([*[(GETKQ, name, b"", b"") for name in names], (NOOP, b"", b"", b"")], 0)
    bodies = [body for *_, body in replies]
    assert bodies == [bytes(4) + name + b"1" for name in names if name != b"none"] + [b""]
    widths = [width for verb, width in common_statements(database) if verb == "SELECT"]
    assert len(widths) < 4
    assert sum(widths) >= COUNT


def test_commands_stay_few_statements_while_the_tables_are_looked_at(
    database: SQLServer, client: socket.socket, served: Served
) -> None:
    """Which is once in a second; they are unchanged."""
    gets = b"".join(b"get %b\r\n" % key.encode() for key in KEYS)
    found = b"".join(got(key, "1") for key in KEYS)
    frames = [*[(GETKQ, key.encode(), b"", b"") for key in KEYS], (NOOP, b"", b"", b"")]
    ask(client, b"".join(put(key, "1") for key in KEYS), COUNT)
    with ExitStack() as stack:
        peer = Peer(served, stack)
        peer.exchange_frames([(GET, b"p00", b"", b"")], 0)
        sql(database, "SET GLOBAL general_log = ON")
        until = time.monotonic() + 2.5 * SCHEMA_CHECK_INTERVAL
        while time.monotonic() < until:
            assert ask(client, gets, COUNT) == found
            assert len(peer.exchange_frames(frames, 0)) == COUNT + 1
            time.sleep(0.01)
    assert {width for verb, width in common_statements(database) if verb == "SELECT"} == {COUNT}


def test_binary_gets_alone_are_answered_alike_whatever_they_find(database: SQLServer) -> None:
    """Values that are too large together, misses, and words that are not plain keys."""
    map_table(database, "wide", "v", "k VARCHAR(9) PRIMARY KEY", "v LONGBLOB")
    gets = [(GET, word, b"", b"") for word in (b"a", b"none", b"b", b"\xc3\xa4", b"a b", b"@@wide.a")]
    with serving(database.dsn) as served, ExitStack() as stack:
        peer = Peer(served, stack)
        peer.exchange_frames([(GET, b"@@wide", b"", b"")], 0)
        for size in (300_000, 600_000):
            sql(database, f"REPLACE INTO test.wide VALUES ('a', REPEAT('x', {size})), ('b', REPEAT('y', {size}))")
            one_by_one = [reply for get in gets for reply in peer.exchange_frames([get], 0)]
            assert [len(body) for *_, body in one_by_one[:3]] == [4 + size, 9, 4 + size]
            assert peer.exchange_frames(gets[:3], 0) == one_by_one[:3]
            assert peer.exchange_frames(gets, 0) == one_by_one


def test_a_binary_get_that_is_too_large_is_refused_in_its_place(database: SQLServer) -> None:
    map_table(database, "large", "v", "k VARCHAR(9) PRIMARY KEY", "v LONGBLOB")
    sql(database, "INSERT INTO test.large VALUES ('small', 's'), ('large', REPEAT('x', 2000000))")
    with serving(database.dsn, "--set", "reply_size_max=1048576") as served, ExitStack() as stack:
        peer = Peer(served, stack)
        replies = peer.exchange_frames(
            [(GET, word, b"", b"") for word in (b"@@large", b"small", b"large", b"small")], 0
        )
    assert [body for *_, body in replies[1::2]] == [bytes(4) + b"s"] * 2
    assert b"out of memory writing get response" in replies[2][-1]


def test_a_get_waits_for_a_write_before_it_also_if_tables_change_meanwhile(database: SQLServer) -> None:
    """It comes in two parts; between them another connection is the first to plan commands after the change."""
    map_table(database, "apart", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)")
    sql(database, "REPLACE INTO test.demo_test VALUES ('p00', 'old', 0, 0, 0)")
    with serving(database.dsn) as served, ExitStack() as stack:
        *_, client, bound, other = clients = [stack.enter_context(served.connect()) for _ in range(4)]
        for each in clients:
            assert ask(each, b"get p00\r\n", 1) == got("p00", "old")
        ask(bound, b"get @@apart.a\r\n", 1)
        ask(bound, b"get a\r\n", 1)
        holder = stack.enter_context(closing(database.connect(60)))
        holder.begin()
        holder.cursor().execute("SELECT c2 FROM test.demo_test WHERE c1 = 'p00' FOR UPDATE")
        client.sendall(put("p00", "new") + b"get p0")
        until_one_waits(database)
        sql(database, "ALTER TABLE test.apart MODIFY v VARCHAR(5)")
        ask(bound, b"get a\r\n", 1)  # meets the change
        ask(other, b"get p00\r\n", 1)
        client.sendall(b"0\r\n")
        for _ in range(3):  # so that a get that does not wait is carried out
            assert ask(other, b"get p00\r\n", 1) == got("p00", "old")
        holder.rollback()
        assert ask(client, b"", 2) == STORED + got("p00", "new")


def test_binary_sets_behind_a_locked_row_are_written_after_it(database: SQLServer, served: Served) -> None:
    keys = [b"p00", b"p01", b"p02"]
    sql(database, *[f"REPLACE INTO test.demo_test VALUES ('{key.decode()}', 'old', 0, 0, 0)" for key in keys])
    with ExitStack() as stack:
        peer = Peer(served, stack)
        peer.exchange_frames([(GET, key, b"", b"") for key in keys], 0)
        holder = stack.enter_context(closing(database.connect(60)))
        holder.begin()
        holder.cursor().execute("SELECT c2 FROM test.demo_test WHERE c1 = 'p01' FOR UPDATE")
        before: list[tuple[object, ...]] = []

        def let_go() -> None:
            """End the lock once the set in front of the locked row is written."""
            until(lambda: written(database, "c2")[0] == ("new",))
            before.extend(written(database, "c2"))
            holder.rollback()

        letting_go = Thread(target=let_go)
        letting_go.start()
        replies = peer.exchange_frames([(SET, key, NO_FLAGS, b"new") for key in keys], 0)
        letting_go.join()
    assert before == [("new",), ("old",), ("old",)]
    assert [reply[:2] for reply in replies] == [(SET, 0)] * 3
    assert written(database, "c2")[:3] == [("new",)] * 3
