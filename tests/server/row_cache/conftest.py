"""Databases with a binary log, and a server that caches their rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip
from helpers.live import MYSQL_8, MYSQL_9
from helpers.row_cache_checker import OPTIONS, SERVE, create_tables, local_dsn
from helpers.serving import Served, serving

from kvref_testbed.targets import SQLServer


@pytest.fixture(scope="module", params=[MYSQL_8, MYSQL_9, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param, OPTIONS[request.param]) as server:
        create_tables(server)
        yield server


@pytest.fixture(params=["address", "socket"])
def dsn(request: pytest.FixtureRequest, database: SQLServer) -> str:
    """Where kvref queries the position of the server, or reads it from the files of the log."""
    return local_dsn(database) if request.param == "socket" else database.dsn


@pytest.fixture
def cached(dsn: str) -> Iterator[Served]:
    with serving(dsn, *SERVE) as served:
        served.wait_for("following the binary log")
        yield served
