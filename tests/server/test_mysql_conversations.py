"""Generated conversations over a database server have the same replies however commands are carried out."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pymysql
import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8, MYSQL_9, nightly
from helpers.row_cache_checker import OPTIONS, SERVE
from helpers.serving import STEPS, serving
from hypothesis import settings
from server.conversations import CLIENTS, Peer, converse

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]
TABLES = {
    "names~": "k VARCHAR(8) COLLATE utf8mb4_general_ci PRIMARY KEY, v VARCHAR(12), f INT, c BIGINT UNSIGNED, e INT",
    "plain~": "k VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY, v BLOB, other VARCHAR(20),"
    " UNIQUE another (other)",
    "numbers~": "k INT PRIMARY KEY, v TEXT, f INT",
    "filled~": "k INT(9) ZEROFILL PRIMARY KEY, v TEXT",
    "sums~": "k VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, v INT(6) ZEROFILL, f INT",
    "ruled~": "k VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, v VARCHAR(20), n INT, CHECK (v <> 'no')",
    "western~": "k VARCHAR(9) COLLATE utf8mb4_unicode_ci PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT UNSIGNED",
    "binary~": "k VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, v BLOB, e INT UNSIGNED",
    "bytes~": "k VARBINARY(20) PRIMARY KEY, v LONGBLOB, f INT UNSIGNED, c BIGINT UNSIGNED, e BIGINT",
    "padded~": "k CHAR(6) CHARACTER SET latin1 PRIMARY KEY, v CHAR(20), f INT UNSIGNED",
}
ROWS = (
    ("names~", "names~", "k", "v", "f", "c", "e", "PRIMARY"),
    ("alike~", "names~", "k", "v", "f", "c", "e", "PRIMARY"),
    ("plain~", "plain~", "k", "v", "0", "0", "0", "PRIMARY"),
    ("other~", "plain~", "other", "v", "0", "0", "0", "another"),
    ("numbers~", "numbers~", "k", "v", "f", "0", "0", "PRIMARY"),
    ("filled~", "filled~", "k", "v", "0", "0", "0", "PRIMARY"),
    ("sums~", "sums~", "k", "v", "f", "0", "0", "PRIMARY"),
    ("western~", "western~", "k", "v", "f", "c", "0", "PRIMARY"),
    ("binary~", "binary~", "k", "v", "0", "0", "e", "PRIMARY"),
    ("bytes~", "bytes~", "k", "v", "f", "c", "e", "PRIMARY"),
    ("padded~", "padded~", "k", "v", "f", "0", "0", "PRIMARY"),
    ("ruled~", "ruled~", "k", "v", "0", "0", "0", "PRIMARY"),
)
SQL = (
    "UPDATE test.names~ SET v = LEFT(CONCAT('sql', v), 12) WHERE k = 'a'",
    "DELETE FROM test.names~ WHERE k = 'b'",
    "REPLACE INTO test.names~ VALUES ('B', 'new', 1, 2, 0)",
    "UPDATE test.plain~ SET v = X'00' WHERE k = 'a'",
    "UPDATE test.numbers~ SET v = 'n'",
    "UPDATE test.names~ SET e = 1",
    "UPDATE test.names~ SET e = 1",
    "UPDATE test.binary~ SET e = 1",
    "UPDATE test.western~ SET v = 'sql', f = NULL",
    "UPDATE test.bytes~ SET v = 'sql', e = 1 WHERE k >= 'b'",
    "UPDATE test.binary~ SET e = NULL, v = NULL WHERE k > 'b'",
    "DELETE FROM test.binary~ WHERE k < 'b'",
    "REPLACE INTO test.padded~ VALUES ('a', 'x ', NULL)",
    "ALTER TABLE test.plain~ ADD COLUMN more TEXT",
    "ALTER TABLE test.plain~ DROP COLUMN more",
)
# But those of cas numbers.
COLUMNS = {"names~": "k, v, f, e", "bytes~": "k, v, f, e", "western~": "k, v, f"}
COUNT = 2 * settings().max_examples
# How each server is started: what runs, and the query of its DSN. The first plans no command, the second shares no statement.
STARTS = ((STEPS, ""), ("kvref", "coalesce=0"), ("kvref", None))


@dataclass(frozen=True)
class Base:
    """A database server, and the query of the DSN and the options of the usual server."""

    server: SQLServer
    query: str = ""
    options: tuple[str, ...] = ()


@pytest.fixture(
    scope="module",
    params=[MYSQL_8, MYSQL_9, "mariadb", nightly("row-cache"), "row-cache-with-log-files"],
)
def database(request: pytest.FixtureRequest) -> Iterator[Base]:
    if request.param.startswith("row-cache"):
        with database_or_skip("mariadb", OPTIONS["mariadb"]) as server:
            query = "" if request.param == "row-cache" else f"unix_socket={server.socket}"
            yield Base(server, query, SERVE)
    else:
        with database_or_skip(request.param) as server:
            yield Base(server)


def prepare(server: SQLServer, own: str) -> None:
    """Make a server's own tables."""
    statements = []
    for name, columns in TABLES.items():
        statements += [f"DROP TABLE IF EXISTS test.{name}", f"CREATE TABLE test.{name} ({columns}) ENGINE = InnoDB"]
    statements.append(
        "CREATE TRIGGER test.twice~ AFTER UPDATE ON test.ruled~ FOR EACH ROW"
        " UPDATE test.plain~ SET v = 'by trigger' WHERE k = NEW.k"
    )
    statements += [
        f"INSERT INTO innodb_memcache.containers VALUES ({', '.join(map(repr, (name, 'test', *row)))})"
        for name, *row in ROWS
    ]
    sql(server, *[each.replace("~", own) for each in statements])


def rows(server: SQLServer, own: str, name: str) -> str:
    """Return the rows of a table; times relative to the second of a request are replaced."""
    requests = f"SELECT {COLUMNS.get(name, '*')} FROM test.{name} ORDER BY k"
    return re.sub(r"\b1[789]\d{8}\b", "later", repr(sql(server, requests.replace("~", own))).replace(own, "~"))


@pytest.mark.parametrize("profile", ["kvref", nightly("mysql-8.0"), nightly("mysql-5.6")])
def test_planned_common_and_single_statements_have_the_same_replies(database: Base, profile: str) -> None:
    """The same conversation with a server that plans no command, one without common statements, and a usual one."""
    server, chance = database.server, random.Random(profile)
    sql(server, "DELETE FROM innodb_memcache.containers WHERE name <> 'aaa'")
    owns = ("_p_", "_q_", "_r_")
    for own in owns:
        prepare(server, own)

    def compare(name: str) -> None:
        assert len({rows(server, own, name) for own in owns}) == 1, name

    def by_sql() -> bytes:
        statement = chance.choice(SQL)
        table = next(name for name in TABLES if f"test.{name} " in statement)
        compare(table)
        assert len({_said(server, statement.replace("~", own)) for own in owns}) == 1, statement
        return table.encode()

    with ExitStack() as stack:
        peers = []
        for own, (program, query) in zip(owns, STARTS, strict=True):
            options = database.options if query is None else ()
            dsn = f"{server.dsn}?{database.query if query is None else query}"
            served = stack.enter_context(serving(dsn, "--profile", profile, *options, program=program))
            peers.append(Peer(served, stack, own.encode()))
            for number in range(CLIENTS):
                peers[-1].ask(number, b"bind names~\r\n")  # the default mapping is of all servers
            peers[-1].exchange_frames([(0x00, b"@@names~", b"", b"")], 0)
        converse(chance, peers, [name.encode() for name, *_ in ROWS], COUNT, by_sql)
        for name in TABLES:
            compare(name)
        if database.options and profile == "kvref":
            assert re.search(rb"STAT row_cache_hits [1-9]", peers[-1].ask(0, b"stats\r\n"))
        counters, *others = [peer.counters() for peer in peers]
        assert others == [counters] * 2


def _said(server: SQLServer, statement: str) -> str:
    try:
        return repr(sql(server, statement))
    except pymysql.MySQLError as error:
        return str(error.args[0])
