"""Real servers with three mappings, and both clients on them under one set of calls."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql
import pytest
from helpers.live import missing_skips, nightly

from kvref.client import AsyncMappedClient, MappedClient
from kvref_testbed import targets
from kvref_testbed.targets import Private

SERVERS = ("kvref-sqlite", nightly("mysql-8.0-plugin"), nightly("mysql-5.6-plugin"))
# In addition to the plugin's own `aaa`: another table with the same columns, and three value columns.
TABLES = (
    "CREATE TABLE {test}second (c1 VARCHAR(32) NOT NULL PRIMARY KEY, c2 VARCHAR(1024), c3 INT, c4 BIGINT UNSIGNED, c5 INT){utf8}",
    "CREATE TABLE {test}shop (id VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(40), price INT, note VARCHAR(40), f INT, c BIGINT UNSIGNED, e INT){utf8}",
    "INSERT INTO {innodb_memcache}containers VALUES ('bbb', 'test', 'second', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')",
    "INSERT INTO {innodb_memcache}containers VALUES ('shop', 'test', 'shop', 'id', 'name|price|note', 'f', 'c', 'e', 'PRIMARY')",
)


@dataclass
class Served:
    """A server with its tables; made by `served`."""

    name: str
    instance: Private

    @property
    def address(self) -> str:
        return self.instance.target.memcached()

    @property
    def has_ranges(self) -> bool:
        return self.name != "mysql-5.6-plugin"

    @property
    def is_plugin(self) -> bool:
        return self.name.endswith("plugin")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let a write of the demo row wait for the end of the block."""
        target = self.instance.target
        if target.sql is None:
            assert target.store is not None
            with closing(sqlite3.connect(target.store.removeprefix("sqlite:///"), isolation_level=None)) as file:
                file.execute("BEGIN IMMEDIATE")
                yield
                file.execute("ROLLBACK")
            return
        link = pymysql.connect(unix_socket=str(target.socket), user="root")
        with closing(link), link.cursor() as cursor:
            cursor.execute("SELECT * FROM test.demo_test WHERE c1 = 'AA' FOR UPDATE")
            yield
            link.rollback()

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQL; {test}, {innodb_memcache} and {utf8} stand for what SQLite has not."""
        target = self.instance.target
        if target.sql is None:
            assert target.store is not None
            with closing(sqlite3.connect(target.store.removeprefix("sqlite:///"), isolation_level=None)) as file:
                return file.execute(statement.format(test="", innodb_memcache="", utf8="")).fetchall()
        statement = statement.format(test="test.", innodb_memcache="innodb_memcache.", utf8=" CHARACTER SET utf8mb4")
        link = pymysql.connect(unix_socket=str(target.socket), user="root", autocommit=True)
        with closing(link), link.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


@pytest.fixture(scope="package", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with missing_skips():
        # Thousands of writes need not reach the disk one by one here; they outlive the server's process.
        lazy = ["--innodb-flush-log-at-trx-commit=2"] if request.param.endswith("plugin") else []
        block = targets.private(request.param, lazy)
        instance = block.__enter__()
    try:
        server = Served(request.param, instance)
        for statement in TABLES:
            server.execute(statement)
        yield server
    finally:
        block.__exit__(None, None, None)


@pytest.fixture(scope="package")
def another() -> Iterator[Served]:
    """Return one more server of ours with the same mappings."""
    with targets.private("kvref-sqlite") as instance:
        server = Served("kvref-sqlite", instance)
        for statement in TABLES:
            server.execute(statement)
        yield server


class Waited:
    """The asyncio client's calls, each run to its end on its own loop."""

    def __init__(self, runner: asyncio.Runner, calls: Any) -> None:
        self._runner = runner
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*arguments: Any, **named: Any) -> Any:
            return await getattr(self._calls, name)(*arguments, **named)

        return lambda *arguments, **named: self._runner.run(call(*arguments, **named))

    def at(self, *arguments: Any) -> Waited:
        return Waited(self._runner, self._calls.at(*arguments))


KINDS = ("plain", "pooled", "asyncio")
Make = Callable[..., Any]


@contextmanager
def clients(kind: str) -> Iterator[Make]:
    """Yield a maker of clients of a kind; all kinds have the same calls."""
    made: list[Any] = []
    with asyncio.Runner() as runner:

        def make(address: str, **options: Any) -> Any:
            if kind == "asyncio":
                made.append(Waited(runner, AsyncMappedClient(address, **options)))
            else:
                pool = {"pool_size": 4} if kind == "pooled" else {}
                made.append(MappedClient(address, **pool, **options))
            return made[-1]

        yield make
        for client in made:
            client.close()


@pytest.fixture(params=KINDS)
def connect(request: pytest.FixtureRequest) -> Iterator[Make]:
    with clients(request.param) as make:
        yield make


@pytest.fixture
def one_of_each() -> Iterator[list[Make]]:
    with ExitStack() as stack:
        yield [stack.enter_context(clients(kind)) for kind in KINDS]


@pytest.fixture
def empty(served: Served) -> Served:
    """Return a server whose tables hold the demo row and nothing else."""
    for table in ("demo_test", "second", "shop"):
        served.execute(f"DELETE FROM {{test}}{table}")
    served.execute("INSERT INTO {test}demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0)")
    return served
