"""What several files of tests over a database server begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8, MYSQL_9
from helpers.serving import Served, serving

from kvref_testbed.targets import SQLServer


@pytest.fixture(scope="module", params=[MYSQL_8, MYSQL_9, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    """Start each database server, whose general log is a table; a module may have its own fixture `database`."""
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        yield server


@pytest.fixture(scope="module")
def shared_server(database: SQLServer) -> Iterator[Served]:
    """Serve the tables of the fixture `database` to all tests of the module."""
    with serving(database.dsn) as running:
        yield running


@pytest.fixture
def served(database: SQLServer, shared_server: Served) -> Iterator[Served]:
    """Give the server of the module; the demo table then has its first row only."""
    yield shared_server
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")
