"""SQL and memcached clients on the same rows at once: no write is lost, and every lock is respected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pymysql
import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import Served, ask
from pymysql.constants import ER

from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
ROUNDS = 30


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


def all_at_once(*tasks: Callable[[], int]) -> list[int]:
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [each.result() for each in [pool.submit(task) for task in tasks]]


def by_sql(database: SQLServer, change: Callable[[Any], None]) -> Callable[[], int]:
    """Return a task: transactions of two statements, tried again after a deadlock, as applications do."""

    def task() -> int:
        done = 0
        with closing(database.connect(60)) as connection, connection.cursor() as cursor:
            while done < ROUNDS:
                try:
                    cursor.execute("BEGIN")
                    change(cursor)
                    cursor.execute("COMMIT")
                except pymysql.err.OperationalError as error:
                    if error.args[0] != ER.LOCK_DEADLOCK:
                        raise
                    continue
                done += 1
        return done

    return task


def add_one(cursor: Any) -> None:
    cursor.execute("UPDATE test.demo_test SET c2 = c2 + 1 WHERE c1 = 'n'")
    cursor.execute("SELECT c2 FROM test.demo_test WHERE c1 = 'n'")


def test_both_count_on_one_row(database: SQLServer, served: Served) -> None:
    def by_incr() -> int:
        with served.connect() as client:
            return sum(ask(client, b"incr n 1\r\n").strip().isdigit() for _ in range(ROUNDS))

    with served.connect() as client:
        assert ask(client, b"set n 0 0 1\r\n0\r\n") == b"STORED\r\n"
        counts = all_at_once(*[by_incr] * 4, *[by_sql(database, add_one)] * 2)
        assert counts == [ROUNDS] * 6
        assert ask(client, b"get n\r\n") == b"VALUE n 0 3\r\n%d\r\nEND\r\n" % (6 * ROUNDS)


def test_cas_against_sql_that_takes_a_number_too(database: SQLServer, served: Served) -> None:
    def by_cas() -> int:
        stored = 0
        with served.connect() as client:
            while stored < ROUNDS // 3:
                _, _, _, _, cas, value, _ = ask(client, b"gets n\r\n").split()
                new = b"%d" % (int(value) + 1)
                answer = ask(client, b"cas n 0 0 %d %s\r\n%s\r\n" % (len(new), cas, new))
                assert answer in (b"STORED\r\n", b"EXISTS\r\n")
                stored += answer == b"STORED\r\n"
        return stored

    # A number that kvref never takes: with c4 + 1 the next write through kvref could make it the same again.
    def add_one_and_a_number(cursor: Any) -> None:
        cursor.execute("UPDATE test.demo_test SET c2 = c2 + 1, c4 = UUID_SHORT() WHERE c1 = 'n'")

    with served.connect() as client:
        assert ask(client, b"set n 0 0 1\r\n0\r\n") == b"STORED\r\n"
    counts = all_at_once(by_cas, by_cas, by_cas, by_sql(database, add_one_and_a_number))
    assert sql(database, "SELECT c2 FROM test.demo_test WHERE c1 = 'n'") == [(str(sum(counts)),)]


def test_one_add_of_many_is_stored(database: SQLServer, served: Served) -> None:
    def by_add() -> int:
        with served.connect() as client:
            answers = [ask(client, b"add new%d 0 0 1\r\nx\r\n" % number) for number in range(ROUNDS)]
        assert set(answers) <= {b"STORED\r\n", b"NOT_STORED\r\n"}
        return answers.count(b"STORED\r\n")

    def by_insert() -> int:
        stored = 0
        with closing(database.connect(60)) as connection, connection.cursor() as cursor:
            for number in range(ROUNDS):
                stored += cursor.execute(
                    "INSERT IGNORE INTO test.demo_test (c1, c2) VALUES (%s, 'y')", (f"new{number}",)
                )
        return stored

    assert sum(all_at_once(*[by_add] * 5, by_insert)) == ROUNDS
    assert sql(database, "SELECT COUNT(*) FROM test.demo_test WHERE c1 LIKE 'new%'") == [(ROUNDS,)]


def test_a_key_that_comes_and_goes(database: SQLServer, served: Served) -> None:
    """Every stored add and every acknowledged delete of one key alternate."""

    def adding() -> int:
        with served.connect() as client:
            answers = [ask(client, b"add k 0 0 1\r\nx\r\n") for _ in range(ROUNDS)]
        assert set(answers) <= {b"STORED\r\n", b"NOT_STORED\r\n"}
        return answers.count(b"STORED\r\n")

    def deleting() -> int:
        with served.connect() as client:
            answers = [ask(client, b"delete k\r\n") for _ in range(ROUNDS)]
        assert set(answers) <= {b"DELETED\r\n", b"NOT_FOUND\r\n"}
        return -answers.count(b"DELETED\r\n")

    left = sum(all_at_once(*[adding] * 3, *[deleting] * 3))
    assert sql(database, "SELECT COUNT(*) FROM test.demo_test WHERE c1 = 'k'") == [(left,)]
