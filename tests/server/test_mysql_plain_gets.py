"""Gets over a database server, in groups: each has the reply of a get by itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8
from helpers.serving import Served, serving
from helpers.serving import ask as serving_ask
from helpers.waiting import until
from server.at_once import answer

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


def ask(client: socket.socket, request: bytes) -> bytes:
    """Send one request alone."""
    client.sendall(request)
    if request == b"stats\r\n":
        received = b""
        while not received.endswith(b"END\r\n"):
            received += client.recv(65536)
        return received
    return answer(client)


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


def test_a_row_is_over_when_its_second_begins(database: SQLServer, served: Served) -> None:
    with served.connect() as client:
        ask(client, b"get AA\r\n")
        last = int(time.time()) + 2
        sql(database, f"INSERT INTO test.demo_test VALUES ('brief', 'v', 7, 0, {last})")

        def over() -> bool:
            requests = time.time()
            over = ask(client, b"get brief\r\n") == b"END\r\n"
            assert not over or time.time() >= last
            assert over or requests < last
            return over

        until(over, pause=0.001)


def test_what_the_common_statement_cannot_tell_goes_the_long_way(database: SQLServer, served: Served) -> None:
    name = "spelled"
    map_table(database, name, "v", "k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY", "v VARCHAR(9)")
    sql(database, f"INSERT INTO test.{name} (k, v) VALUES ('a', 'v')")
    with served.connect() as client:
        ask(client, b"bind spelled\r\n")
        for _ in range(3):
            assert ask(client, b"get A\r\n") == b"END\r\n"
        sql(
            database,
            f"ALTER TABLE test.{name} MODIFY k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL",
        )
        # The server finds the row by this key now, since a change of the table that kvref has not read yet.
        assert ask(client, b"get A\r\n") == b"VALUE A 0 1\r\nv\r\nEND\r\n"


GETS = [
    b"get a b none a\r\n", b"gets a b over\r\n", b"get over a\r\n", b"get none none2\r\n", b"get a \xc3\xa9 b\r\n",
    b"get @@aaa.AA\r\n", b"gets @@aaa.AA\r\n", b"get a @@several.b a\r\n", b"get @@several.a b\r\n", b"gets a\r\n",
    b"get big a big\r\n", b"get " + b" ".join([b"a", b"b"] * 200) + b"\r\n", b"get a  b\r\n", b"get A a\r\n",
    b"get a b\r\nget b\r\nget none a\r\nset z 0 0 1\r\n1\r\nget z a\r\n",
]  # fmt: skip


def test_gets_of_several_keys_are_those_of_a_server_without_groups(database: SQLServer, served: Served) -> None:
    columns = "f INT", "c BIGINT UNSIGNED", "e INT"
    map_table(database, "several", "v", "k VARCHAR(250) PRIMARY KEY", "v MEDIUMTEXT", *columns)
    sql(
        database,
        "UPDATE innodb_memcache.containers SET flags = 'f', cas_column = 'c', expire_time_column = 'e'"
        " WHERE name = 'several'",
        "INSERT INTO test.several VALUES ('a', '1', 5, 7, 0), ('b', NULL, NULL, NULL, NULL), ('over', 'v', 0, 1, 1),"
        " ('\u00e9', 'v', 1, 2, 0), ('big', REPEAT('x', 600000), 0, 0, 0)",
    )
    with serving(f"{database.dsn}?coalesce=0") as alone:
        for line in GETS:
            found = []
            for each in (served, alone):
                with each.connect() as client:
                    assert serving_ask(client, b"bind several\r\nget AA\r\nstats reset\r\n").endswith(b"RESET\r\n")
                    replies = [serving_ask(client, line)]
                    received = serving_ask(client, b"stats\r\n")
                    names = (b"cmd_get", b"get_hits", b"get_misses", b"get_expired")
                    replies += [received.split(b"STAT " + name + b" ")[1].split()[0] for name in names]
                    found.append(replies)
            assert found[0] == found[1], line
