"""`curr_items` over a database server: counted, estimated, and shown while the database does not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, sql, stopped
from helpers.live import MYSQL_8
from helpers.serving import Served, ask, serving

from kvref.storage.rows import EXACT
from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


@pytest.fixture
def served(database: SQLServer) -> Iterator[Served]:
    sql(database, "DELETE FROM test.demo_test")
    with serving(database.dsn) as running:
        yield running


def items(served: Served) -> int | None:
    with served.connect() as client:
        found = re.search(rb"STAT curr_items (\d+)\r\n", ask(client, b"stats\r\n"))
    return None if found is None else int(found[1])


def test_few_rows_are_counted(served: Served) -> None:
    assert items(served) == 0
    with served.connect() as client:
        ask(client, b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\n")
    assert items(served) == 2


def test_many_rows_are_estimated(database: SQLServer, served: Served) -> None:
    rows = ", ".join(f"('k{number}', 'v', 0, 0, 0)" for number in range(5000))
    sql(database, f"INSERT INTO test.demo_test VALUES {rows}", "ANALYZE TABLE test.demo_test")
    found = items(served)
    assert found is not None
    assert EXACT < found < 10_000


def test_stats_shows_the_last_number_while_the_database_does_not_answer(database: SQLServer, served: Served) -> None:
    with served.connect() as client:
        ask(client, b"set a 0 0 1\r\nx\r\n")
    assert items(served) == 1
    with stopped(database):
        assert items(served) == 1


def test_stats_has_no_number_of_a_database_that_never_answered(database: SQLServer, served: Served) -> None:
    with stopped(database):
        assert items(served) is None
    assert items(served) == 0
