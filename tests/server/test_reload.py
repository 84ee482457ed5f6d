"""SIGHUP over SQLite: rows of memory outlive it where commands mean what they meant before."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from helpers.serving import ask, serving
from server.in_process import Client, InProcess, turns_until

from kvref.engine.mapping import Directory
from kvref.errors import ConfigError, StoreError

ITEM = b"VALUE k 0 1\r\nv\r\n"
REQUESTS = (b"get k\r\n", b"get none\r\n", b"get @@aaa#k\r\n", b"get @@aaa.k\r\n")
CHANGES = {
    "nothing": "",
    "delimiter": "UPDATE config_options SET value = '#' WHERE name = 'table_map_delimiter'",
    "policies": "UPDATE cache_policies SET get_policy = 'disabled'",
    "table": "ALTER TABLE demo_test ADD COLUMN more INT",
    "row": "UPDATE demo_test SET c2 = 'other' WHERE c1 = 'k'",
    "mapping": "UPDATE containers SET flags = '0' WHERE name = 'aaa'",
}


async def _reload(served: InProcess) -> None:
    before = served.server.shared.directory.generation
    served.server.reload()
    await turns_until(lambda: served.server.shared.directory.generation > before)


async def _cached(served: InProcess, client: Client) -> int:
    """Return the bytes that are kept of three keys, two of them with rows, after they were read once."""
    await client.ask(b"set k 0 0 1\r\nv\r\n")
    for _ in range(2):
        assert await client.ask(b"get k\r\n", 3) == ITEM + b"END\r\n"
        assert await client.ask(b"get none\r\nget AA\r\n", 4)
    assert served.store.cache.size
    return served.store.cache.size


def test_rows_stay_in_memory_where_nothing_changed(tmp_path: Path) -> None:
    async def run() -> None:
        served = InProcess(tmp_path / "s.sqlite")
        async with served.clients(2) as (client, other):
            kept = await _cached(served, client)
            for _ in range(3):
                await _reload(served)
                assert served.store.cache.size == kept
                for each in (client, other):
                    assert (
                        await each.ask(b"get k\r\nget none\r\nget k\r\n", 7)
                        == ITEM + b"END\r\nEND\r\n" + ITEM + b"END\r\n"
                    )
                assert served.store.cache.size == kept

    asyncio.run(run())


@pytest.mark.parametrize("setting", ["row_cache_bytes=100000", "reply_size_max=2000000"])
def test_rows_leave_memory_where_a_setting_changed(tmp_path: Path, setting: str) -> None:
    async def run() -> None:
        served = InProcess(tmp_path / "s.sqlite")
        async with served.clients(1) as (client,):
            kept = await _cached(served, client)
            served.settings = [setting]
            await _reload(served)
            assert served.store.cache.size == 0
            assert await _cached(served, client) == kept
            await _reload(served)
            assert served.store.cache.size == kept

    asyncio.run(run())


def test_a_refused_configuration_leaves_everything_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        served = InProcess(tmp_path / "s.sqlite")
        async with served.clients(1) as (client,):
            kept = await _cached(served, client)
            read = served.server.executor.read_directory
            for error in (ConfigError("no"), StoreError("no")):

                async def refused(error: Exception = error) -> Directory:
                    await read()
                    raise error

                served.server.executor.read_directory = refused  # type: ignore[method-assign]
                caplog.clear()
                served.server.reload()
                await turns_until(lambda: "the previous one stays active" in caplog.text)
            assert served.store.cache.size == kept
            assert await client.ask(b"get k\r\n", 3) == ITEM + b"END\r\n"

    asyncio.run(run())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_answers_behind_a_reload_as_one_that_starts_then(tmp_path: Path, change: str, workers: str) -> None:
    file = tmp_path / "s.sqlite"
    with serving(file, "--workers", workers) as served, served.connect() as one, served.connect() as other:
        assert ask(one, b"set k 7 0 1\r\nv\r\n") == b"STORED\r\n"
        before = [ask(each, request) for _ in range(2) for each in (one, other) for request in REQUESTS]
        with closing(sqlite3.connect(file, isolation_level=None, timeout=60)) as sql:
            sql.execute(CHANGES[change] or "SELECT 1")
        served.reload()
        after = [ask(each, request) for _ in range(2) for each in (one, other) for request in REQUESTS]
    with serving(file) as served, served.connect() as one:
        assert [ask(one, request) for request in REQUESTS] * 4 == after
    assert (before == after) == (change in {"nothing", "table"})
