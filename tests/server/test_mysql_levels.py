"""Gets outside batches at each isolation level over a database server: which share a statement, and what they show."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import ask as serving_ask
from helpers.serving import ask_gets
from server.at_once import common_statements, got, put, serving_without_pauses
from server.conversations import Peer

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
GET, NOOP, GETKQ = 0x00, 0x0A, 0x0D
FENCE = (NOOP, b"", b"", b"")
COUNT = 40
KEYS = [f"p{number:02d}" for number in range(COUNT)]
LOCKED = b"SERVER_ERROR lock wait timeout\r\n"


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        yield server


def ask(client: socket.socket, data: bytes, replies: int) -> bytes:
    """Send bytes at once and return so many replies."""
    client.sendall(data)
    reply = b""
    while len(re.findall(rb"(?m)^(?:STORED|END|SERVER_ERROR.*)\r$", reply)) < replies:
        reply += client.recv(1 << 16)
    return reply


def options(level: int, profile: str) -> list[str]:
    given = {"innodb_api_trx_level": level, "innodb_lock_wait_timeout": 1}
    return ["--profile", profile, *[word for pair in given.items() for word in ("--set", "{}={}".format(*pair))]]


@pytest.mark.parametrize(
    ("level", "profile", "together"),
    [
        *((level, "kvref", level < 3) for level in range(4)),
        (2, "mysql-5.6", True),
        (0, "mysql-8.0", True),
        (1, "mysql-8.0", False),  # a row that others have deleted is missing at once
    ],
)
def test_gets_share_a_statement_where_no_read_locks_rows(
    database: SQLServer, level: int, profile: str, together: bool
) -> None:
    names = [key.encode() for key in KEYS]
    gets: dict[str, Callable[[socket.socket, Peer], object]] = {
        "get": lambda client, _: ask(client, b"".join(b"get %b\r\n" % name for name in names), COUNT),
        "gets": lambda client, _: ask(client, b"".join(b"gets %b\r\n" % name for name in names), COUNT),
        "of ten keys": lambda client, _: ask(
            client, b"".join(b"get %b\r\n" % b" ".join(names[at : at + 10]) for at in range(0, COUNT, 10)), COUNT // 10
        ),
        "binary": lambda _, peer: peer.exchange_frames([*[(GETKQ, name, b"", b"") for name in names], FENCE], 0),
    }
    with ExitStack() as stack:
        served = stack.enter_context(serving_without_pauses(database, *options(level, profile)))
        client, peer = stack.enter_context(served.connect()), Peer(served, stack)
        ask(client, b"".join(put(key, "1") for key in KEYS), COUNT)
        peer.exchange_frames([(GET, b"p00", b"", b""), FENCE], 0)
        for name, get in gets.items():
            sql(database, "SET GLOBAL general_log = ON")
            get(client, peer)
            widths = [width for verb, width in common_statements(database) if verb == "SELECT"]
            # Planned gets that lock do so without waiting, and look again for rows that others have deleted.
            assert max(widths, default=0) > COUNT / 2, name
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def seen(client: socket.socket, peer: Peer) -> list[bytes]:
    """Return the replies to gets of a row that SQL has updated, inserted and deleted, in each form that they have."""
    old, new, gone = b"get old\r\n", b"get new\r\n", b"get gone\r\n"
    forms = [old, new, gone, old + new + gone, b"get old new gone\r\n", b"gets old\r\n"]
    reply = [*[ask_gets(client, form) for form in forms], serving_ask(client, b"mg old v\r\n")]
    found = peer.exchange_frames([*[(GETKQ, name, b"", b"") for name in (b"old", b"new", b"gone")], FENCE], 0)
    return [*reply, b"|".join(body[4:] for *_, body in found)]


@pytest.mark.parametrize("level", range(4))
def test_rows_that_sql_has_not_committed_show_at_level_0_alone(database: SQLServer, level: int) -> None:
    first = "REPLACE INTO test.demo_test VALUES ('old', '1', 0, 5, 0), ('gone', '1', 0, 6, 0)"
    sql(database, "DELETE FROM test.demo_test WHERE c1 = 'new'", first)
    with ExitStack() as stack:
        served = stack.enter_context(serving_without_pauses(database, *options(level, "kvref")))
        client, peer = stack.enter_context(served.connect()), Peer(served, stack)
        serving_ask(client, b"get AA\r\n")
        before, meanwhile = seen(client, peer), []
        assert before[4] == got("old", "1")[:-5] + got("gone", "1")
        with closing(database.connect(30)) as other, other.cursor() as cursor:
            for end in (other.rollback, other.commit):
                cursor.execute("BEGIN")
                cursor.execute("UPDATE test.demo_test SET c2 = '2', c4 = 7 WHERE c1 = 'old'")
                cursor.execute("INSERT INTO test.demo_test VALUES ('new', '2', 0, 8, 0)")
                cursor.execute("DELETE FROM test.demo_test WHERE c1 = 'gone'")
                if level == 3:  # only the get of a locked row waits
                    assert serving_ask(client, b"get old\r\n") == LOCKED
                    assert serving_ask(client, b"get AA\r\n").startswith(b"VALUE AA")
                else:
                    meanwhile.append(seen(client, peer))
                end()
                after = seen(client, peer)
                assert end == other.commit or after == before
        assert after[4] == got("old", "2")[:-5] + got("new", "2")
        assert [each == (before if level else after) for each in meanwhile] == [True] * len(meanwhile)
        # A connection sees what it has written, in every form of a get.
        assert ask(client, put("old", "3") + b"get old\r\nget new old\r\n", 3) == (
            b"STORED\r\n" + got("old", "3") + got("new", "2")[:-5] + got("old", "3")
        )
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")
