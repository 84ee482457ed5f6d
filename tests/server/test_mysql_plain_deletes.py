"""Deletes of ordinary rows over a database server, in groups: each has the reply of a delete by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8, MYSQL_9
from helpers.serving import ask
from server.at_once import Crowd, crowd_of_readers

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
DELETED, NOT_FOUND = b"DELETED\r\n", b"NOT_FOUND\r\n"
CLIENTS = 24
KEYS = [f"k{number:02d}" for number in range(CLIENTS)]
# Several rows are removed by one statement.
TOGETHER = "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'DELETE FROM%%IN (%%,%%'"


@pytest.fixture(scope="module", params=[MYSQL_8, MYSQL_9, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        yield server


@pytest.fixture
def logged(database: SQLServer) -> Iterator[None]:
    sql(database, "TRUNCATE TABLE mysql.general_log", "SET GLOBAL general_log = ON")
    yield
    sql(database, "SET GLOBAL general_log = OFF")


@pytest.fixture
def crowd(database: SQLServer) -> Iterator[Crowd]:
    """kvref has written, so that it knows how long a statement may be: the first one has one row."""
    with crowd_of_readers(database, CLIENTS) as found:
        found.ask([b"delete nothing\r\n"])
        yield found


def delete(*keys: str, last: str = "") -> bytes:
    return "".join(f"delete {key}{last}\r\n" for key in keys).encode()


def fill(database: SQLServer, *keys: str, expiry: int = 0) -> None:
    """Insert rows into the demo table."""
    sql(database, "INSERT INTO test.demo_test VALUES " + ", ".join(f"('{key}', 'v', 7, 3, {expiry})" for key in keys))


def bound(crowd: Crowd, database: SQLServer, name: str, *statements: str) -> None:
    """Map a table with a row for each key, run statements, and bind every client to it."""
    map_table(database, name, "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)")
    sql(database, *[f"INSERT INTO test.{name} VALUES ('{key}', 'v')" for key in KEYS], *statements)
    crowd.bind(name)


def left(database: SQLServer, table: str = "demo_test", key: str = "c1") -> set[str]:
    """Return the keys of the rows that are there."""
    return {name for (name,) in sql(database, f"SELECT {key} FROM test.{table}")} - {"AA"}


def counted(crowd: Crowd) -> tuple[int, int]:
    """Return how many deletes have found a row, and how many have not."""
    hits, misses = re.findall(rb"STAT delete_(?:hits|misses) (\d+)", ask(crowd.clients[0], b"stats\r\n"))[::-1]
    return int(hits), int(misses)


@pytest.mark.usefixtures("logged")
def test_rows_that_are_there_and_others_together(database: SQLServer, crowd: Crowd) -> None:
    fill(database, *KEYS[::3], "stays")
    hits, misses = counted(crowd)
    assert crowd.ask([delete(key) for key in KEYS]) == [DELETED, NOT_FOUND, NOT_FOUND] * (CLIENTS // 3)
    assert sql(database, TOGETHER)[0][0] >= 1
    assert left(database) == {"stays"}
    assert counted(crowd) == (hits + CLIENTS // 3, misses + CLIENTS // 3 * 2)


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize("last", ["", " noreply"])
def test_a_pipeline_of_one_connection(database: SQLServer, crowd: Crowd, last: str) -> None:
    fill(database, *KEYS)
    replies = ask(crowd.clients[0], delete(*KEYS, "k03", "nothing", last=last) + b"get k00\r\n")
    assert replies == (b"" if last else DELETED * CLIENTS + NOT_FOUND * 2) + b"END\r\n"
    assert sql(database, TOGETHER)[0][0] >= 1
    assert not left(database)


@pytest.mark.parametrize("words", [("row", "ROW"), ("ROW", "row"), ("Row", "ROW", "other")])
def test_spellings_of_one_row_remove_it_once(database: SQLServer, crowd: Crowd, words: tuple[str, ...]) -> None:
    name = f"spelled_{'_'.join(words).encode().hex()}"
    map_table(
        database, name, "v", "k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY",
        "v VARCHAR(9)",
    )  # fmt: skip
    sql(database, f"INSERT INTO test.{name} VALUES ('row', 'v'), ('other', 'v')")
    client = crowd.clients[0]
    ask(client, f"bind {name}\r\n".encode() + b"get nothing\r\n")
    assert ask(client, delete(*words)) == DELETED + NOT_FOUND + DELETED * (len(words) - 2)
    assert left(database, name, "k") == {"other"} - {*words}


def test_a_row_that_another_one_needs_fails_none_of_the_others(database: SQLServer, crowd: Crowd) -> None:
    bound(
        crowd, database, "needed",
        "CREATE TABLE test.needs (k VARCHAR(20), FOREIGN KEY (k) REFERENCES needed (k)) ENGINE = InnoDB",
        "INSERT INTO test.needs VALUES ('k05')",
    )  # fmt: skip
    replies = dict(zip(KEYS, crowd.ask([delete(key) for key in KEYS]), strict=True))
    assert replies.pop("k05").startswith(b"SERVER_ERROR")
    assert set(replies.values()) == {DELETED}
    assert left(database, "needed", "k") == {"k05"}
    sql(database, "DROP TABLE test.needs")


@pytest.mark.parametrize("keys", [("a", "b"), ("b", "a")])
def test_a_row_that_went_with_another_one_is_not_found(
    database: SQLServer, crowd: Crowd, keys: tuple[str, str]
) -> None:
    parent, child = keys
    name = f"tree_{parent}"
    map_table(
        database, name, "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)", "parent VARCHAR(20)",
        f"FOREIGN KEY (parent) REFERENCES {name} (k) ON DELETE CASCADE",
    )  # fmt: skip
    client = crowd.clients[0]
    ask(client, f"bind {name}\r\n".encode())
    for first, second, replies in ((parent, child, DELETED + NOT_FOUND), (child, parent, DELETED * 2)):
        sql(
            database,
            f"INSERT INTO test.{name} VALUES ('{parent}', 'v', NULL)",
            f"INSERT INTO test.{name} VALUES ('{child}', 'v', '{parent}')",
        )
        ask(client, b"get nothing\r\n")
        assert ask(client, delete(first, second)) == replies
        assert not left(database, name, "k")
