"""Sets of ordinary rows over a database server, in groups: each has the reply and the row of a set by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, map_table, sql, stopped
from helpers.live import MYSQL_8, MYSQL_9
from helpers.serving import serving
from server.at_once import Crowd, crowd_of_readers, got, put

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
STORED = b"STORED\r\n"
CLIENTS = 24
KEYS = [f"k{number:02d}" for number in range(CLIENTS)]


@pytest.fixture(scope="module", params=[MYSQL_8, MYSQL_9, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        yield server


@pytest.fixture
def crowd(database: SQLServer) -> Iterator[Crowd]:
    with crowd_of_readers(database, CLIENTS) as found:
        yield found


def bound(crowd: Crowd, database: SQLServer, name: str, *columns: str) -> None:
    """Map a table and bind every client to it."""
    map_table(database, name, "v", *columns)
    crowd.bind(name)


def rows(database: SQLServer, name: str) -> dict[str, str]:
    return {key: value for key, value, *_ in sql(database, f"SELECT k, v FROM test.{name}")}


def test_new_rows_and_old_ones_together(database: SQLServer, crowd: Crowd) -> None:
    sql(database, "INSERT INTO test.demo_test VALUES " + ", ".join(f"('{key}', 'old', 7, 3, 0)" for key in KEYS[::2]))
    sql(database, "SET GLOBAL general_log = ON")
    requests = [b"set %b %d 0 3\r\nnew\r\n" % (key.encode(), number % 3) for number, key in enumerate(KEYS)]
    assert crowd.ask(requests) == [STORED] * CLIENTS
    sql(database, "SET GLOBAL general_log = OFF")
    logged = sql(database, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'SELECT%%IN (%%,%%NOWAIT'")
    assert logged[0][0] >= 1
    found = sql(database, "SELECT c1, c2, c3, c4, c5 FROM test.demo_test WHERE c1 LIKE 'k__' ORDER BY c1")
    assert [row[:3] for row in found] == [(key, "new", number % 3) for number, key in enumerate(KEYS)]
    numbers = [row[3] for row in found]
    assert len(set(numbers)) == CLIENTS
    assert min(numbers) > 3
    assert {row[4] for row in found} == {0}
    assert crowd.ask([b"get %b\r\n" % key.encode() for key in KEYS])[0] == got(KEYS[0], "new")
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'", "TRUNCATE TABLE mysql.general_log")


def test_columns_that_are_not_mapped_stay(database: SQLServer, crowd: Crowd) -> None:
    bound(crowd, database, "beside", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)", "other INT DEFAULT 5")
    sql(database, "INSERT INTO test.beside VALUES ('k00', 'old', 9)")
    assert crowd.ask([put(key, "new") for key in KEYS]) == [STORED] * CLIENTS
    found = sql(database, "SELECT k, v, other FROM test.beside ORDER BY k")
    assert found == [(key, "new", 9 if key == "k00" else 5) for key in KEYS]


def test_the_plugins_profile_clears_them(database: SQLServer) -> None:
    map_table(database, "cleared", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)", "other INT DEFAULT 5")
    sql(database, "INSERT INTO test.cleared VALUES ('k00', 'old', 9)")
    with serving(database.dsn, "--profile", "mysql-8.0") as served, Crowd(served, CLIENTS) as crowd:
        crowd.bind("cleared")
        assert crowd.ask([put(key, "new") for key in KEYS]) == [STORED] * CLIENTS
    assert set(sql(database, "SELECT v, other FROM test.cleared")) == {("new", None)}


def test_spellings_of_one_row_do_not_rewrite_its_key(database: SQLServer, crowd: Crowd) -> None:
    bound(
        crowd, database, "spelling", "k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY",
        "v VARCHAR(9)",
    )  # fmt: skip
    sql(database, "INSERT INTO test.spelling VALUES ('Row', 'old')")
    words = ["row", "ROW", "new", "NEW", "Row"]
    assert crowd.ask([put(word, word) for word in words]) == [STORED] * len(words)
    found = {key.lower(): (key, value) for key, value in rows(database, "spelling").items()}
    assert found["row"][0] == "Row"
    assert found["row"][1] in ("row", "ROW", "Row")
    assert found["new"][0] in ("new", "NEW")
    assert found["new"][1] in ("new", "NEW")


def test_all_that_wait_are_reported_at_once_that_the_database_hangs(database: SQLServer) -> None:
    # It counts as hanging after two seconds; another attempt would wait for two more.
    with (
        serving(f"{database.dsn}?timeout=1", "--set", "innodb_lock_wait_timeout=1") as served,
        Crowd(served, CLIENTS) as crowd,
    ):
        crowd.ask([b"get AA\r\n"] * CLIENTS)
        crowd.ask([put(key, "old") for key in KEYS])
        with stopped(database):
            begun = time.monotonic()
            crowd.send([put(KEYS[number // 2], "new") for number in range(CLIENTS)])
            for client in crowd.clients:
                client.settimeout(max(0.1, begun + 3.5 - time.monotonic()))
                assert client.recv(200).startswith(b"SERVER_ERROR no answer from the database within 2 s")


def test_what_is_not_plain_is_answered_separately(database: SQLServer, crowd: Crowd) -> None:
    bound(crowd, database, "narrow", "k VARCHAR(5) PRIMARY KEY", "v VARCHAR(9) CHARACTER SET utf8mb4")
    requests = {
        put("short", "fits"): STORED,
        put("longer", "key"): b"CLIENT_ERROR key too long for column k (5)\r\n",
        put("wide", "0123456789"): b"SERVER_ERROR object too large for cache: column v takes 9 characters\r\n",
        "set text 0 0 5\r\ngrön\r\n".encode(): STORED,
        b"set bytes 0 0 2\r\n\xff\xfe\r\n": b"SERVER_ERROR column v holds utf8mb4 text, byte 0 of the data is none\r\n",
        b"set flags 4294967296 0 1\r\nx\r\n": b"CLIENT_ERROR bad command line format\r\n",
        b"set over 0 -1 1\r\nx\r\n": STORED,
        b"set later 0 1000 1\r\nx\r\n": STORED,
    }
    assert dict(zip(requests, crowd.ask(list(requests)), strict=False)) == requests
    assert rows(database, "narrow") == {"short": "fits", "text": "grön", "later": "x"}


def test_a_statement_is_no_longer_than_the_server_takes(database: SQLServer) -> None:
    ((before,),) = sql(database, "SELECT @@GLOBAL.max_allowed_packet")
    map_table(database, "large", "v", "k VARCHAR(20) PRIMARY KEY", "v LONGTEXT")
    aborted = sql(database, "SHOW GLOBAL STATUS LIKE 'Aborted_clients'")
    sql(database, "SET GLOBAL max_allowed_packet = 262144")
    try:
        with serving(database.dsn) as served, Crowd(served, CLIENTS) as crowd:
            crowd.ask([b"bind large\r\n"] * CLIENTS)
            crowd.ask([b"get nothing\r\n"] * CLIENTS)
            value = "x" * 60_000  # two of them are too much, as hexadecimal digits
            assert crowd.ask([put(key, value) for key in KEYS]) == [STORED] * CLIENTS
            assert crowd.ask([put(key, value[::-1]) for key in KEYS]) == [STORED] * CLIENTS
            # The server ends a connection that says more.
            assert sql(database, "SHOW GLOBAL STATUS LIKE 'Aborted_clients'") == aborted
    finally:
        sql(database, f"SET GLOBAL max_allowed_packet = {before}")
    assert {len(value) for (value,) in sql(database, "SELECT v FROM test.large")} == {60_000}
