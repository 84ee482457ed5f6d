"""Expired rows are removed in the background, from tables with an index on the expiry column."""

from __future__ import annotations

import re
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from helpers.database import database_or_skip, sql
from helpers.serving import Served, ask, serving
from helpers.waiting import until_equal

from kvref import profiles
from kvref.storage.sqlite.store import SQLiteStore

EVERY = ("--set", "expired_rows_purge_interval=1")
ROWS = 450  # more than two batches


def cache(path: Path) -> Path:
    store = SQLiteStore(path, profiles.load("kvref"))
    store.initialise(demo=False)
    store.add_cache("cache")
    store.close()
    return path


def reclaimed(served: Served, number: int) -> None:
    """Wait until so many rows are removed."""
    with served.connect() as client:
        until_equal(lambda: re.findall(rb"crawler_reclaimed (\d+)", ask(client, b"stats\r\n")), [b"%d" % number])


@pytest.mark.parametrize("options", [(), ("--workers", "2"), ("--set", "daemon_memcached_w_batch_size=10")])
def test_only_expired_rows_are_removed(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = cache(tmp_path / "c.sqlite")
    over = ", ".join(f"(CAST('k{n}' AS BLOB), x'00', 0, 1, {n + 1})" for n in range(ROWS))
    later = int(time.time()) + 10_000
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute(f"INSERT INTO cache VALUES {over}")
        file.execute(
            f"INSERT INTO cache VALUES (x'61', x'00', 0, 1, 0), (x'62', x'00', 0, 1, {later}), (x'63', x'00', 0, 1, NULL), (x'64', x'00', 0, 1, -1)"
        )
        with serving(path, *EVERY, *options) as served:
            reclaimed(served, ROWS)
            assert file.execute("SELECT CAST(cache_key AS TEXT) FROM cache ORDER BY 1").fetchall() == [
                ("a",),
                ("b",),
                ("c",),
                ("d",),
            ]


def test_a_table_without_the_index_keeps_its_rows_and_is_logged_once(tmp_path: Path) -> None:
    path = cache(tmp_path / "c.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("DROP INDEX cache_expires")
        file.execute("INSERT INTO cache VALUES (x'61', x'00', 0, 1, 1)")
        with serving(path, *EVERY) as served:
            served.wait_for("expired rows of cache stay: no index begins with its column expires")
            assert file.execute("SELECT count(*) FROM cache").fetchall() == [(1,)]
            file.execute("CREATE INDEX again ON cache (expires)")
            reclaimed(served, 1)


def test_off_by_default_and_on_after_a_reload(tmp_path: Path) -> None:
    path = cache(tmp_path / "c.sqlite")
    settings = tmp_path / "kvref.toml"
    settings.write_text("[settings]\n")
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("INSERT INTO cache VALUES (x'61', x'00', 0, 1, 1)")
        with serving(path, "--config", str(settings)) as served, served.connect() as client:
            assert b"crawler_reclaimed" not in ask(client, b"stats\r\n")
            settings.write_text("[settings]\nexpired_rows_purge_interval = 1\n")
            served.process.send_signal(signal.SIGHUP)
            served.wait_for("configuration reloaded")
            reclaimed(served, 1)
            assert file.execute("SELECT count(*) FROM cache").fetchall() == [(0,)]


@pytest.mark.live
def test_over_a_database() -> None:
    with database_or_skip("mariadb") as server:
        sql(server, "DELETE FROM innodb_memcache.containers")
        from kvref.storage.stores import open_store  # noqa: PLC0415 - an extra

        store = open_store(server.dsn, profiles.load("kvref"), 5.0)
        assert (store.initialise(demo=False), store.add_cache("pages"), store.add_cache("pages")) == (
            False,
            True,
            False,
        )
        over = ", ".join(f"('k{n}', 'x', 0, 1, {n + 1})" for n in range(ROWS))
        sql(server, f"INSERT INTO kvref.pages VALUES {over}, ('a', 'x', 0, 1, 0)")
        with serving(server.dsn, *EVERY) as served, served.connect() as client:
            reclaimed(served, ROWS)
            assert ask(client, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        assert sql(server, "SELECT cache_key FROM kvref.pages") == [(b"a",)]
