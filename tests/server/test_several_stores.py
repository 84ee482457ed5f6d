"""One server with tables of several stores: `[[store]]` and `[[mapping]]` of its configuration file."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import kvref
from helpers.database import database_or_skip, sql
from helpers.http_client import fetch
from helpers.live import nightly
from helpers.serving import Served, ask, running, workers
from helpers.waiting import until, until_equal
from server.in_process import HERE, InProcess

from kvref import profiles
from kvref.server.server import Server
from kvref.server.settings import parse
from kvref.storage.memory import SCHEME as MEMORY
from kvref.storage.several import Placement, SeveralStores
from kvref.storage.sqlite.store import SQLiteStore

HELLO = b"12\r\nHELLO, HELLO\r\n"
# Names of the mapping of the demo table in the second store; the first one has `aaa`.
RENAME = "UPDATE containers SET name = 'second'"
COPY = "INSERT INTO containers SELECT '{}', db_schema, db_table, key_columns, value_columns, flags, cas_column, expire_time_column, unique_idx_name_on_key FROM containers WHERE name = '{}'"


@dataclass
class Database:
    """The database of a store: its DSN, and how SQL reads and writes it; None for memory://."""

    dsn: str
    sql: Callable[..., list[tuple[Any, ...]]] | None = None


def sqlite_database(path: Path, *statements: str, demo: bool = True) -> Database:
    """Return a SQLite file with the plugin's demo table, or else a cache table."""
    store = SQLiteStore(path, profiles.load("kvref"))
    store.initialise(demo=demo)
    if not demo:
        store.add_cache("cache")
    store.close()

    def run(*statements: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as file:
            return [file.execute(each).fetchall() for each in statements][-1]

    if statements:
        run(*statements)
    return Database(f"sqlite:///{path}", run)


@contextmanager
def serving(folder: Path, first: Database, second: Database, *options: str, name: str = "second") -> Iterator[Served]:
    """Serve two stores; the mapping with a name is in the second one."""
    file = folder / "kvref.toml"
    file.write_text(
        f"""[[store]]
name = "first"
dsn = "{first.dsn}"
[[store]]
name = "other"
dsn = "{second.dsn}"
[[mapping]]
name = "{name}"
store = "other"
"""
    )
    words = [sys.executable, "-m", "kvref", "serve", "--config", str(file), "--listen", "127.0.0.1:0", *options]
    with running(words, str(file)) as served:
        yield served


@pytest.fixture(scope="module", params=["sqlite", "memory", "mariadb", nightly("mysql-9.7"), nightly("mysql-8.0")])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give the database of one of the stores; the other one is SQLite."""
    if request.param == "sqlite":
        yield sqlite_database(tmp_path_factory.mktemp("one") / "file")
    elif request.param == "memory":
        yield Database(MEMORY)
    else:
        with database_or_skip(request.param) as server:
            yield Database(server.dsn, lambda *statements: sql(server, *statements))


TABLES = {True: ("containers", "demo_test"), False: ("innodb_memcache.containers", "test.demo_test")}


def table_of(store: Database) -> str:
    """Return the name of the demo table in SQL."""
    return TABLES[store.dsn.startswith("sqlite")][1]


def rename(store: Database, name: str) -> None:
    """Give the mapping of the demo table a name."""
    assert store.sql is not None
    store.sql(f"UPDATE {TABLES[store.dsn.startswith('sqlite')][0]} SET name = '{name}'")


def keys(store: Database) -> list[str]:
    """Return the keys of the demo table."""
    assert store.sql is not None
    return [key for (key,) in store.sql(f"SELECT c1 FROM {table_of(store)} ORDER BY c1")]


@pytest.fixture(params=[False, True], ids=["first", "second"])
def pair(request: pytest.FixtureRequest, tmp_path: Path, database: Database) -> Iterator[tuple[Database, Database]]:
    """Give two databases, of which the one of the fixture is the first or the second."""
    if request.param and database.sql is None:
        pytest.skip("the rows of memory:// have one name")
    pair = [database, sqlite_database(tmp_path / "file")]
    first, second = reversed(pair) if request.param else pair
    rename(second, "second")
    if first.sql is not None:
        rename(first, "aaa")
    yield first, second
    if database.sql is not None:
        database.sql(f"DELETE FROM {table_of(database)} WHERE c1 <> 'AA'")


def test_each_mapping_is_in_its_store(tmp_path: Path, pair: tuple[Database, Database]) -> None:
    first, second = pair
    with serving(tmp_path, *pair) as served, served.connect() as client:
        assert ask(client, b"set one 0 0 1\r\n1\r\n") == b"STORED\r\n"
        assert ask(client, b"set @@second.two 0 0 1\r\n2\r\nadd three 0 0 1\r\n3\r\n") == b"STORED\r\n" * 2
        assert (
            ask(client, b"get one\r\nincr two 5\r\ndelete three\r\nadd four 0 0 1\r\n4\r\n")
            == b"END\r\n7\r\nDELETED\r\nSTORED\r\n"
        )
        assert (
            ask(client, b"set @@aaa.five 0 0 1\r\n5\r\nget two\r\nget five\r\n")
            == b"STORED\r\nEND\r\nVALUE five 0 1\r\n5\r\nEND\r\n"
        )
        assert ask(client, b"get @@second\r\n") == b"VALUE @@second 0 14\r\ntest/demo_test\r\nEND\r\n"
        served.wait_for("in store other")
    assert keys(second) == ["AA", "four", "two"]
    if first.sql is not None:
        assert keys(first) == ["AA", "five", "one"]


def test_a_get_of_keys_in_both_stores_has_their_order(tmp_path: Path, pair: tuple[Database, Database]) -> None:
    with serving(tmp_path, *pair) as served, served.connect() as client:
        ask(client, b"set one 0 0 1\r\n1\r\nset @@second.two 0 0 1\r\n2\r\n")
        words = [b"@@second.two", b"@@aaa.one", b"@@second.one", b"AA", b"@@nowhere.x", b"@@aaa.AA", b"AA", b"one"]
        reply = b"".join(
            b"VALUE %b %b" % each
            for each in [
                (b"@@second.two", b"0 1\r\n2\r\n"), (b"@@aaa.one", b"0 1\r\n1\r\n"), (b"AA", b"8 " + HELLO),
                (b"@@aaa.AA", b"8 " + HELLO), (b"AA", b"8 " + HELLO), (b"one", b"0 1\r\n1\r\n"),
            ]
        )  # fmt: skip
        assert ask(client, b"get %b\r\n" % b" ".join(words)) == reply + b"END\r\n"
        assert ask(client, b"get two\r\nget one\r\n") == b"END\r\nVALUE one 0 1\r\n1\r\nEND\r\n"
        many = [b"@@aaa.one @@second.two"] * 200
        assert ask(client, b"get %b\r\n" % b" ".join(many)).count(b"VALUE") == 400
        assert ask(client, b"gat 0 @@second.two @@aaa.one\r\n").count(b"VALUE") == 2


def test_flush_all_empties_the_table_of_the_mapping_in_force(tmp_path: Path, pair: tuple[Database, Database]) -> None:
    with serving(tmp_path, *pair) as served, served.connect() as client, served.connect() as other:
        assert ask(other, b"get @@second.AA\r\n").startswith(b"VALUE")
        assert ask(client, b"get @@second.AA @@aaa.AA\r\n").count(b"VALUE") == 2
        assert ask(other, b"flush_all\r\nget AA\r\n") == b"OK\r\nEND\r\n"
        assert ask(client, b"get AA\r\nget @@second.AA\r\n") == b"VALUE AA 8 " + HELLO + b"END\r\nEND\r\n"
        ask(client, b"set AA 8 0 12\r\nHELLO, HELLO\r\n")


def test_pipelined_commands_for_both_stores_are_answered_in_order(
    tmp_path: Path, pair: tuple[Database, Database]
) -> None:
    turns = 50
    with serving(tmp_path, *pair) as served, served.connect() as client:
        request = b"".join(
            b"set @@%b.k 0 0 %d\r\n%d\r\nincr k 1\r\nget k\r\nget k k\r\n" % (name, len(b"%d" % n), n)
            for n in range(10, 10 + turns)
            for name in (b"aaa", b"second")
        )
        shown = [b"VALUE k 0 2\r\n%d\r\n" % n for n in range(11, 11 + turns)]
        reply = b"".join(
            (b"STORED\r\n%d\r\n%bEND\r\n%b%bEND\r\n" % (11 + n, each, each, each)) * 2 for n, each in enumerate(shown)
        )
        assert ask(client, request) == reply


BATCHES = ("--set", "daemon_memcached_w_batch_size=10", "--set", "daemon_memcached_r_batch_size=10")


@pytest.mark.parametrize("level", [0, 3])
def test_a_batch_is_committed_before_another_mapping_is_selected(
    tmp_path: Path, pair: tuple[Database, Database], level: int
) -> None:
    first, second = pair
    if first.sql is None:
        pytest.skip("memory:// has no batches")
    with serving(tmp_path, *pair, *BATCHES, "--set", f"innodb_api_trx_level={level}") as served:
        with served.connect() as client:
            assert ask(client, b"set @@second.two 0 0 1\r\n2\r\n") == b"STORED\r\n"
            assert keys(second) == ["AA"]
            assert ask(client, b"set @@aaa.one 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert (keys(first), keys(second)) == (["AA"], ["AA", "two"])
            assert ask(client, b"get @@second.two @@aaa.one\r\n").count(b"VALUE") == 2
            assert keys(first) == ["AA", "one"]
            assert ask(client, b"set @@second.three 0 0 1\r\n2\r\n") == b"STORED\r\n"
            assert keys(second) == ["AA", "two"]
        until_equal(lambda: keys(second), ["AA", "three", "two"])
        with served.connect() as client:
            assert ask(client, b"set @@second.four 0 0 1\r\n2\r\n") == b"STORED\r\n"
            served.process.send_signal(signal.SIGTERM)
            assert served.process.wait(timeout=60) == 0
    assert keys(second) == ["AA", "four", "three", "two"]


def test_only_what_the_file_places_is_served_from_another_store(tmp_path: Path) -> None:
    first = sqlite_database(tmp_path / "1", COPY.format("second", "aaa"))
    second = sqlite_database(tmp_path / "2", RENAME, COPY.format("third", "second"), "UPDATE demo_test SET c2 = 'two'")
    with serving(tmp_path, first, second) as served, served.connect() as client:
        assert ask(client, b"get @@third.AA\r\n") == b"END\r\n"
        assert ask(client, b"get @@SECOND.AA\r\n") == b"VALUE @@SECOND.AA 8 3\r\ntwo\r\nEND\r\n"
        assert ask(client, b"get @@second.AA\r\n") == b"VALUE @@second.AA 8 3\r\ntwo\r\nEND\r\n"


def test_the_demo_table_in_memory_may_be_the_second_store(tmp_path: Path) -> None:
    first = sqlite_database(tmp_path / "1", demo=False)
    with serving(tmp_path, first, Database(MEMORY), name="aaa") as served, served.connect() as client:
        assert (
            ask(client, b"set k 0 0 1\r\nx\r\nget @@aaa.AA\r\nget AA\r\n")
            == b"STORED\r\nVALUE @@aaa.AA 8 " + HELLO + b"END\r\nVALUE AA 8 " + HELLO + b"END\r\n"
        )
        assert ask(client, b"get @@cache.k @@aaa.k @@aaa.AA\r\n").count(b"VALUE") == 2


def test_tables_of_one_name_are_two_tables(tmp_path: Path) -> None:
    """What is kept of rows in memory, and what is removed in the background, does not mix them up."""
    cached = "UPDATE cache_policies SET get_policy = 'caching', set_policy = 'caching', delete_policy = 'caching'"
    first = sqlite_database(tmp_path / "1", cached)
    second = sqlite_database(tmp_path / "2", RENAME)
    with serving(tmp_path, first, second) as served, served.connect() as client:
        assert ask(client, b"set k 0 0 1\r\n1\r\nget k\r\n").startswith(b"STORED\r\nVALUE")
        assert ask(client, b"get @@second.k\r\n") == b"END\r\n"
        assert ask(client, b"set k 0 0 1\r\n2\r\nget @@aaa.k\r\n") == b"STORED\r\nVALUE @@aaa.k 0 1\r\n1\r\nEND\r\n"


def test_expired_rows_are_removed_from_both(tmp_path: Path) -> None:
    over = "INSERT INTO cache VALUES (x'61', x'00', 0, 1, 5), (x'62', x'00', 0, 1, 0)"
    first = sqlite_database(tmp_path / "1", over, demo=False)
    second = sqlite_database(tmp_path / "2", RENAME, over, demo=False)
    with serving(tmp_path, first, second, "--set", "expired_rows_purge_interval=1"):
        for each in (first, second):
            assert each.sql is not None
            until_equal(lambda: each.sql("SELECT COUNT(*) FROM cache"), [(1,)])  # noqa: B023 - used in this turn


def test_the_default_mapping_is_chosen_by_the_first_store_and_may_be_placed_in_another(tmp_path: Path) -> None:
    first = sqlite_database(tmp_path / "1", "UPDATE demo_test SET c2 = 'one'", RENAME)
    second = sqlite_database(tmp_path / "2", RENAME)
    assert first.sql is not None
    assert second.sql is not None
    with serving(tmp_path, first, second) as served, served.connect() as client:
        served.wait_for("default mapping second")
        assert ask(client, b"get AA\r\n") == b"VALUE AA 8 " + HELLO + b"END\r\n"
        second.sql("ALTER TABLE demo_test RENAME COLUMN c2 TO c9")
        assert ask(client, b"get AA\r\n").startswith(b"SERVER_ERROR container 'second': table demo_test has no value")
        second.sql("ALTER TABLE demo_test RENAME COLUMN c9 TO c2", "UPDATE containers SET name = 'x'")
        served.reload()
        served.wait_for("no mapping is usable in its store:")
        second.sql(RENAME)
        first.sql(COPY.format("zzz", "second"))
        served.reload()
        served.wait_for("default mapping second")
        assert ask(client, b"get AA\r\n") == b"VALUE AA 8 " + HELLO + b"END\r\n"
        assert ask(client, b"get @@zzz.AA\r\n") == b"VALUE @@zzz.AA 8 3\r\none\r\nEND\r\n"


def test_a_reload_reads_all_stores_or_changes_nothing(tmp_path: Path) -> None:
    first, second = sqlite_database(tmp_path / "1"), sqlite_database(tmp_path / "2", RENAME)
    assert second.sql is not None
    with serving(tmp_path, first, second) as served, served.connect() as client:
        assert ask(client, b"get @@second.AA\r\n").startswith(b"VALUE")
        second.sql("UPDATE containers SET flags = '0'")
        assert ask(client, b"get AA\r\n") == b"VALUE AA 8 " + HELLO + b"END\r\n"
        served.reload()
        assert (
            ask(client, b"get AA\r\nget @@aaa.AA\r\n")
            == b"VALUE AA 0 " + HELLO + b"END\r\nVALUE @@aaa.AA 8 " + HELLO + b"END\r\n"
        )
        second.sql("ALTER TABLE containers RENAME TO elsewhere")
        served.reload()
        served.wait_for("configuration not reloaded, the previous one stays active: store other: ")
        assert ask(client, b"get @@second.AA\r\n") == b"VALUE @@second.AA 0 " + HELLO + b"END\r\n"
        second.sql("ALTER TABLE elsewhere RENAME TO containers", "UPDATE containers SET name = 'other'")
        served.reload()
        served.wait_for("[[mapping]] 'second': no usable row of containers in store other has this name: add one")
        assert ask(client, b"get AA\r\n") == b"SERVER_ERROR mapping second is no longer in containers: bind another\r\n"
        second.sql(RENAME)
        assert ask(client, b"get @@second.AA\r\n").startswith(b"VALUE")


def test_ddl_in_a_store_is_seen_by_the_command_that_comes_from_another_one(tmp_path: Path) -> None:
    first, second = sqlite_database(tmp_path / "1"), sqlite_database(tmp_path / "2", RENAME)
    assert second.sql is not None
    with serving(tmp_path, first, second) as served, served.connect() as client:
        assert ask(client, b"get @@second.AA\r\nget @@aaa.AA\r\n").count(b"VALUE") == 2
        second.sql("ALTER TABLE demo_test RENAME COLUMN c2 TO text")
        seen = ask(client, b"get @@second.AA\r\n")
        assert seen.startswith(b"SERVER_ERROR container 'second': table demo_test has no value column 'c2'")
        assert ask(client, b"get AA\r\nget @@aaa.AA\r\n") == seen + b"VALUE @@aaa.AA 8 " + HELLO + b"END\r\n"
        second.sql("ALTER TABLE demo_test RENAME COLUMN text TO c2")
        assert ask(client, b"get @@second.AA\r\n") == b"VALUE @@second.AA 8 " + HELLO + b"END\r\n"


def test_a_store_that_is_lost_fails_its_own_commands_and_the_health_check(tmp_path: Path) -> None:
    first, second = sqlite_database(tmp_path / "1"), sqlite_database(tmp_path / "2", RENAME)
    with serving(tmp_path, first, second, "--metrics", "127.0.0.1:0") as served, served.connect() as client:
        assert ask(client, b"get @@second.AA\r\nget @@aaa.AA\r\n").count(b"VALUE") == 2
        until(lambda: fetch(served, "/healthz")[0] == 200)
        assert 'store="sqlite"' in fetch(served, "/metrics")[1]
        (tmp_path / "2").unlink()
        assert ask(client, b"get @@second.AA\r\n").startswith(b"SERVER_ERROR store ")
        assert ask(client, b"set @@aaa.k 0 0 1\r\nx\r\nget k\r\n") == b"STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n"
        until(lambda: fetch(served, "/healthz")[0] == 503)
        assert "store other: " in fetch(served, "/healthz")[1]


class TwoDisks(InProcess):
    """A server in this process of two SQLite files, each with a disk that waits and fails on request."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "1")
        self.second = InProcess(folder / "2")
        profile = self.store.profile
        sqlite3.connect(folder / "2", isolation_level=None).execute(RENAME)
        stores = SeveralStores(
            Placement({"first": "", "other": ""}, {"second": "other"}), [self.store, self.second.store], profile
        )
        self.server = Server(stores, profile, lambda: parse([], None, profile), [HERE])


STORED = b"STORED\r\n"


def test_a_reply_waits_for_the_disks_of_the_stores_that_it_has_used(tmp_path: Path) -> None:
    async def play() -> None:
        process = TwoDisks(tmp_path)
        async with process.clients(3) as (one, other, both):
            for client in (one, other, both):
                await client.ask(b"get AA\r\nget @@second.AA\r\n", 6)
            process.second.disk.clear()
            await other.send(b"set @@second.k 0 0 1\r\nx\r\n")
            await other.nothing()
            assert await one.ask(b"set @@aaa.k 0 0 1\r\nx\r\n") == STORED
            await both.send(b"get @@second.k\r\nset @@aaa.l 0 0 1\r\nx\r\n")
            await both.nothing()
            process.second.disk.set()
            assert await other.heard(1) == STORED
            assert await both.heard(4) == b"VALUE @@second.k 0 1\r\nx\r\nEND\r\n" + STORED
            process.disk.clear()
            await both.send(b"set @@aaa.m 0 0 1\r\nx\r\n")
            await both.nothing()
            assert await other.ask(b"set k 0 0 1\r\ny\r\n") == STORED
            process.disk.set()
            assert await both.heard(1) == STORED
        process.second.store.close()

    asyncio.run(play())


def test_a_disk_that_fails_is_reported_to_the_clients_of_its_store(tmp_path: Path) -> None:
    lost = b"SERVER_ERROR the disk is on fire\r\n"

    async def play() -> None:
        process = TwoDisks(tmp_path)
        async with process.clients(3) as (one, other, both):
            for client in (one, other, both):
                await client.ask(b"get AA\r\nget @@second.AA\r\n", 6)
            process.second.failure = "the disk is on fire"
            process.second.disk.clear()
            process.disk.clear()
            await other.send(b"set @@second.k 0 0 1\r\nx\r\n")
            await both.send(b"set @@second.l 0 0 1\r\nx\r\nset @@aaa.l 0 0 1\r\nx\r\n")
            await one.send(b"set @@aaa.k 0 0 1\r\nx\r\n")
            await other.nothing()
            process.second.disk.set()
            assert await other.heard(1) == lost
            assert await both.heard(1) == lost
            await both.nothing()
            process.disk.set()
            assert await one.heard(1) == STORED
            assert await both.heard(1) == STORED  # it began once the one before it was answered
            process.second.failure = ""
            assert await both.ask(b"set @@second.l 0 0 1\r\nx\r\n") == STORED
        process.second.store.close()

    asyncio.run(play())


TWO = ("--workers", "2")


@contextmanager
def of_each_worker(served: Served) -> Iterator[list[socket.socket]]:
    """Give two connections to each of two workers."""
    with ExitStack() as stack:
        yield [stack.enter_context(served.connect()) for _ in range(4)]


def test_two_workers_serve_the_mappings_of_both_stores(tmp_path: Path, pair: tuple[Database, Database]) -> None:
    first, second = pair
    if first.sql is None:
        pytest.skip("processes cannot share the rows of memory://")
    with serving(tmp_path, *pair, *TWO) as served, of_each_worker(served) as clients:
        for number, client in enumerate(clients):
            words = b"set @@second.k%d 0 0 1\r\n1\r\nset @@aaa.k%d 0 0 1\r\n2\r\n" % (number, number)
            assert ask(client, words) == STORED * 2
        ask(clients[0], b"set @@second.all 0 0 1\r\n0\r\n")
        for number, client in enumerate(clients, 1):
            assert ask(client, b"get @@second.k0 @@aaa.k3 @@aaa.none\r\n") == (
                b"VALUE @@second.k0 0 1\r\n1\r\nVALUE @@aaa.k3 0 1\r\n2\r\nEND\r\n"
            )
            assert ask(client, b"get @@second\r\nincr all 1\r\n").endswith(b"END\r\n%d\r\n" % number)
        replies = [ask(client, b"gets @@second.k%d @@aaa.k%d\r\n" % (n, n)) for n, client in enumerate(clients)]
        assert len({cas for reply in replies for cas in re.findall(rb" 1 (\d+)\r", reply)}) == 8
        served.wait_for("in store other")
    assert keys(second) == ["AA", "all", "k0", "k1", "k2", "k3"]
    assert keys(first) == ["AA", "k0", "k1", "k2", "k3"]


def test_workers_agree_on_the_configuration_of_all_stores_or_keep_the_old_one(tmp_path: Path) -> None:
    first, second = sqlite_database(tmp_path / "1"), sqlite_database(tmp_path / "2", RENAME)
    assert second.sql is not None
    with serving(tmp_path, first, second, *TWO) as served, of_each_worker(served) as clients:
        before = b"VALUE @@second.AA 8 " + HELLO + b"END\r\n"
        assert ask(clients[0], b"get @@second.AA\r\n") == before
        second.sql("UPDATE containers SET flags = '0'")
        assert [ask(client, b"get @@second.AA\r\n") for client in clients] == [before] * 4, "as the first has read it"
        served.reload()
        after = b"VALUE @@second.AA 0 " + HELLO + b"END\r\n"
        assert [ask(client, b"get @@second.AA\r\n") for client in clients] == [after] * 4
        second.sql("ALTER TABLE containers RENAME TO elsewhere")
        served.reload()
        served.wait_for("configuration not reloaded, the previous one stays active: store other: ")
        os.kill(workers(served)[0], signal.SIGKILL)
        served.wait_for("worker 1 restarted")
        with of_each_worker(served) as later:
            assert [ask(client, b"get @@second.AA @@aaa.AA\r\n").count(b"VALUE") for client in later] == [2] * 4
        second.sql("ALTER TABLE elsewhere RENAME TO containers", "UPDATE containers SET flags = 'c3'")
        served.reload()
        with of_each_worker(served) as later:
            assert [ask(client, b"get @@second.AA\r\n") for client in later] == [before] * 4


@pytest.mark.programs
@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--store", "sqlite:///x"), 2, "has [[store]]: name the stores either there or by --store"),
        (
            ("--set", "row_cache_binlog=1"),
            2,
            "row_cache_binlog=1 and the stores first, other: none of them is mysql://",
        ),
    ],
)
def test_what_several_stores_cannot_do_is_rejected(
    tmp_path: Path, options: Sequence[str], code: int, text: str
) -> None:
    first, second = sqlite_database(tmp_path / "1"), sqlite_database(tmp_path / "2", RENAME)
    with serving(tmp_path, first, second):
        pass
    refused = kvref("serve", "--config", tmp_path / "kvref.toml", "--listen", "127.0.0.1:0", *options)
    assert (refused.returncode, text in refused.stderr) == (code, True), refused.stderr
