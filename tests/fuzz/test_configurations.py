"""For any content of the configuration tables, the server serves it or names the error, and changes no other table."""

from __future__ import annotations

import socket
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pymysql
import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import Served, ask, serving
from hypothesis import HealthCheck, Phase, given, settings

from fuzz.configurations import CONFIGURATIONS, SENTINEL, TABLES, Configuration, Container, frames, words
from fuzz.record import FULL, record
from fuzz.replies import BinaryReplies
from kvref_testbed.targets import SQLServer

EXAMPLES = 2000 if FULL else 30
NOOP = struct.pack(">BBHxxxxIIQ", 0x81, 0x0A, 0, 0, 77, 0)
COLUMNS = (
    "k VARCHAR(100) NOT NULL PRIMARY KEY",
    "v VARCHAR(100)",
    "{} INT NOT NULL DEFAULT 0",
    "{} BIGINT NOT NULL DEFAULT 0",  # cas numbers, for which an INT is refused (KV-CAS-016)
    "{} INT NOT NULL DEFAULT 0",
)
PLAIN = Container("aaa", "test", "plain", "k", "v", "0", "0", "0", "PRIMARY")
SENTINELS = [("1", "kept"), ("2", "as it is")]
EXPECTED = "no row of the configuration tables ends the server, is run as SQL or reaches a table that it does not name"
POLICY = ("cache_policy", "innodb_only", "innodb_only", "innodb_only", "innodb_only")
OPTIONS = {"separator": "|", "table_map_delimiter": "."}


def columns(quote: str) -> str:
    """Return the columns of a table, with odd names, as one kind of SQL has them."""
    odd = [quote + name.replace(quote, quote * 2) + quote for name in ("f'", 'c"', "e`")]
    key, value, *numbers = COLUMNS
    return ", ".join([key, value, *(each.format(name) for each, name in zip(numbers, odd, strict=True))])


def table(name: str, quote: str) -> str:
    return quote + name.replace(quote, quote * 2) + quote


class OverSQLite:
    """Configuration tables of a file."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self.db.execute("PRAGMA ignore_check_constraints = ON")  # any word may stand for a policy
        for name in (*TABLES, "plain", SENTINEL):
            self.db.execute(f"CREATE TABLE {table(name, chr(34))} ({columns(chr(34))})")
        self._fill()

    def _fill(self) -> None:
        self.db.executemany(f"INSERT INTO {SENTINEL} (k, v) VALUES (?, ?)", SENTINELS)

    def write(self, wanted: Configuration) -> bool:
        """Write all three tables."""
        self.db.execute("BEGIN")
        try:
            for name in ("containers", "config_options", "cache_policies"):
                self.db.execute(f"DELETE FROM {name}")
            rows = [each.values_of_row() for each in wanted.containers]
            self.db.executemany(f"INSERT INTO containers VALUES ({', '.join('?' * 9)})", rows)
            self.db.executemany("INSERT INTO config_options VALUES (?, ?)", list(wanted.options.items()))
            self.db.executemany(f"INSERT INTO cache_policies VALUES ({', '.join('?' * 5)})", wanted.policies)
        except (sqlite3.IntegrityError, sqlite3.DataError):
            self.db.execute("ROLLBACK")
            return False
        self.db.execute("COMMIT")
        return True

    def look(self) -> list[object]:
        """Return the existing tables and the rows of the one that no configuration names."""
        names = self.db.execute("SELECT name, sql FROM sqlite_master WHERE tbl_name <> 'kvref_counters' ORDER BY 1, 2")
        return [*names, *self.db.execute(f"SELECT * FROM {SENTINEL} ORDER BY k")]


class OverMySQL:
    """Configuration tables of a database server."""

    def __init__(self, server: SQLServer) -> None:
        self.db = server.connect(60)
        with self.db.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = ''")  # what a column does not take is cut, and not refused
            for name in (*TABLES, "plain", SENTINEL):
                cursor.execute(
                    f"CREATE TABLE test.{table(name, '`')} ({columns('`')}) ENGINE = InnoDB".replace("%", "%%")
                )
            cursor.executemany(f"INSERT INTO test.{SENTINEL} (k, v) VALUES (%s, %s)", SENTINELS)
        self.db.commit()

    def write(self, wanted: Configuration) -> bool:
        """Write all three tables."""
        try:
            with self.db.cursor() as cursor:
                for name in ("containers", "config_options", "cache_policies"):
                    cursor.execute(f"DELETE FROM innodb_memcache.{name}")
                rows = [each.values_of_row() for each in wanted.containers]
                cursor.executemany(f"INSERT INTO innodb_memcache.containers VALUES ({', '.join(['%s'] * 9)})", rows)
                pairs = list(wanted.options.items())
                cursor.executemany("INSERT INTO innodb_memcache.config_options VALUES (%s, %s)", pairs)
                cursor.executemany(
                    f"INSERT INTO innodb_memcache.cache_policies VALUES ({', '.join(['%s'] * 5)})", wanted.policies
                )
        except pymysql.MySQLError:  # the same name as another in its collation, or a NULL
            self.db.rollback()
            return False
        self.db.commit()
        return True

    def look(self) -> list[object]:
        """See `OverSQLite.look`."""
        with self.db.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema, table_name FROM information_schema.tables"
                " WHERE table_schema IN ('test', 'innodb_memcache') ORDER BY 1, 2"
            )
            names = list(cursor.fetchall())
            cursor.execute(f"SELECT * FROM test.{SENTINEL} ORDER BY k")
            found = [*names, *cursor.fetchall()]
        self.db.commit()
        return found


@contextmanager
def world(kind: str, folder: Path) -> Iterator[tuple[Served, OverSQLite | OverMySQL]]:
    """Serve tables with odd names from a file or a database for the block."""
    if kind == "sqlite":
        with serving(folder / "x.sqlite", "--set", "innodb_lock_wait_timeout=2") as served:
            over = OverSQLite(folder / "x.sqlite")
            with closing(over.db):
                yield served, over
        return
    with database_or_skip(kind) as database, serving(database.dsn, "--set", "innodb_lock_wait_timeout=2") as served:
        assert sql(database, "SELECT 1")
        mysql = OverMySQL(database)
        with closing(mysql.db):
            yield served, mysql


def use(served: Served, wanted: Configuration) -> int:
    """Use every mapping in both protocols; return how many except the plain one stored a value."""
    stored = 0
    for row in (*wanted.containers, PLAIN):
        with served.connect() as client:
            _ask_frames(client, frames(row.name))
        if row.name and not set(row.name) & set(" \0\r\n"):
            with served.connect() as client:
                answer = ask(client, words(row.name))
                assert b"internal error" not in answer
                stored += row is not PLAIN and b"STORED\r\n" in answer.replace(b"NOT_STORED", b"")
    return stored


def _ask_frames(client: socket.socket, requests: bytes) -> None:
    client.sendall(requests)
    reader, answer = BinaryReplies(), b""
    while not answer.endswith(NOOP):
        chunk = client.recv(1 << 16)
        if not chunk:
            raise AssertionError(f"the connection was closed at {requests!r} behind {answer!r}")
        reader.feed(chunk)
        answer += chunk
    reader.end()
    assert b"internal error" not in answer


@pytest.mark.live
@pytest.mark.parametrize("kind", ["sqlite", MYSQL_8, "mariadb"])
def test_odd_names_of_tables_and_columns_are_served(kind: str, tmp_path: Path) -> None:
    rows = [
        Container(f"m{number}", "test", name, "k", "v|f'", "0", 'c"', "e`", "PRIMARY")
        for number, name in enumerate(TABLES)
    ]
    with world(kind, tmp_path) as (served, tables):
        before = tables.look()
        assert tables.write(Configuration([PLAIN, *rows], OPTIONS, [POLICY], plain=True))
        served.reload()
        with served.connect() as client:
            for row in rows:
                key = b"@@%b.k'1" % row.name.encode()
                assert ask(client, b"set %b 0 0 3\r\nx|5\r\n" % key) == b"STORED\r\n", row
                assert ask(client, b"get %b\r\n" % key) == b"VALUE %b 0 3\r\nx|5\r\nEND\r\n" % key
                assert ask(client, b"flush_all\r\n") == b"OK\r\n"
                assert ask(client, b"get %b\r\n" % key) == b"END\r\n"
        assert tables.look() == before


@pytest.mark.live
@pytest.mark.timeout(3600 if FULL else 200)
@pytest.mark.parametrize("kind", ["sqlite", MYSQL_8, "mariadb"])
def test_any_configuration(kind: str, tmp_path: Path) -> None:
    began, tried, reloaded, stored = time.monotonic(), 0, 0, 0
    with world(kind, tmp_path) as (served, tables):
        before = tables.look()

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(CONFIGURATIONS)
        def try_one(wanted: Configuration) -> None:
            nonlocal tried, reloaded, stored
            if wanted.plain:
                wanted = Configuration(
                    [PLAIN, *(row for row in wanted.containers if row.name != PLAIN.name)],
                    wanted.options or OPTIONS, wanted.policies, plain=True,
                )  # fmt: skip
            if not tables.write(wanted):
                return
            served.reload()
            tried += 1
            reloaded += any("configuration reloaded" in line for line in served.log)
            stored += use(served, wanted)
            assert served.process.poll() is None
            assert not [line for line in served.log if "Traceback" in line or "a command failed" in line], wanted
            assert tables.look() == before, wanted

        try_one()
        assert tried > EXAMPLES / 2
        assert reloaded > tried / 8
        assert stored > EXAMPLES / 25
        assert tables.write(Configuration([PLAIN], OPTIONS, [POLICY], plain=True))
        served.reload()
        with served.connect() as client:
            assert ask(client, b"set k 0 0 1\r\nx\r\nget k\r\n") == b"STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n"
    record(f"fuzz-configuration-{kind}", EXPECTED, tried, time.monotonic() - began, reloaded=reloaded, stored=stored)
