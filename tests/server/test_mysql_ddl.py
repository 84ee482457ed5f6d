"""Tables that are altered, renamed, emptied of room: what the next command answers, and the one after the repair."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from threading import Event

import pytest
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8
from helpers.serving import ask, serving, stats
from helpers.waiting import until

from kvref import profiles
from kvref.engine.operations import LoadMapping
from kvref.server.executors.mysql.executor import MAX_SCHEMA_AGE
from kvref.storage.mysql.login import parse
from kvref.storage.mysql.store import MySQLStore
from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
# No more room than the tables of the system have taken, and a little.
SMALL = ("--innodb-data-file-path=ibdata1:12M:autoextend:max:20M",)
STORED = b"STORED\r\n"


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        yield server


@pytest.fixture
def shop(database: SQLServer) -> Iterator[None]:
    """Map test.shop, which has two more columns than the mapped ones."""
    map_table(database, "shop", "v", "k VARCHAR(9) NOT NULL", "v VARCHAR(9)", "w INT DEFAULT 7", "PRIMARY KEY (k)")
    yield
    sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'shop'", "DROP TABLE IF EXISTS test.shop")


@pytest.mark.usefixtures("shop")
def test_a_table_that_no_longer_fits_and_fits_again(database: SQLServer) -> None:
    with serving(database.dsn) as served, served.connect() as client:
        assert ask(client, b"set @@shop.a 0 0 3\r\nabc\r\n") == STORED
        for broken, cause, mended in (
            ("RENAME COLUMN v TO u", "has no value column 'v': its columns are k, u, w", "RENAME COLUMN u TO v"),
            ("RENAME COLUMN k TO u", "has no key column 'k'", "RENAME COLUMN u TO k"),
            ("DROP COLUMN v", "has no value column 'v'", "ADD COLUMN v VARCHAR(9) DEFAULT 'abc' AFTER k"),
            ("DROP PRIMARY KEY", "'PRIMARY' is not a unique index of table `test`.`shop`", "ADD PRIMARY KEY (k)"),
            ("RENAME TO test.away", "there is no table test.shop: create it or correct the row", ""),
        ):
            sql(database, f"ALTER TABLE test.shop {broken}")
            for command in (
                b"get a\r\n",
                b"set a 0 0 3\r\nabc\r\n",
                b"incr a 1\r\n",
                b"delete a\r\n",
                b"flush_all\r\n",
            ):
                answer = ask(client, command).decode()
                assert answer.startswith("SERVER_ERROR container 'shop': "), (broken, command, answer)
                assert cause in answer
            sql(database, f"ALTER TABLE test.shop {mended}" if mended else "RENAME TABLE test.away TO test.shop")
            assert ask(client, b"get a\r\n") == b"VALUE a 0 3\r\nabc\r\nEND\r\n", broken


@pytest.mark.usefixtures("shop")
def test_a_narrower_column_refuses_what_it_would_cut(database: SQLServer) -> None:
    with serving(database.dsn, "--set", "oversized_set_removes=0") as served, served.connect() as client:
        assert ask(client, b"set @@shop.a 0 0 3\r\nabc\r\n") == STORED
        sql(database, "ALTER TABLE test.shop MODIFY v VARCHAR(3)")
        refused = b"SERVER_ERROR object too large for cache: column v takes 3 characters\r\n"
        assert ask(client, b"set a 0 0 4\r\nabcd\r\n") == refused
        assert ask(client, b"get a\r\n") == b"VALUE a 0 3\r\nabc\r\nEND\r\n"


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("profile", "left"), [("mysql-8.0", None), ("mysql-5.6", None), ("kvref", 5)])
def test_a_column_added_that_is_not_mapped_counts_at_once(database: SQLServer, profile: str, left: int | None) -> None:
    # The plugin writes NULL into every column that it does not map (columns:type-180).
    with serving(database.dsn, "--profile", profile) as served, served.connect() as client:
        assert ask(client, b"set @@shop.a 0 0 1\r\n1\r\n") == STORED
        for number, write in enumerate((b"set a 0 0 1\r\n1\r\n", b"incr a 1\r\n", b"set b 0 0 1\r\n1\r\n")):
            sql(database, f"ALTER TABLE test.shop ADD COLUMN x{number} INT DEFAULT 5")
            assert ask(client, write) in (STORED, b"2\r\n")
            key = write.split()[1].decode()
            assert sql(database, f"SELECT x{number} FROM test.shop WHERE k = '{key}'") == [(left,)]


@pytest.mark.usefixtures("shop")
def test_a_column_dropped_that_is_not_mapped_counts_at_once(database: SQLServer) -> None:
    # Where NULL may not go the plugin writes nothing (columns:type-185).
    sql(database, "ALTER TABLE test.shop ADD COLUMN x INT NOT NULL DEFAULT 5")
    with serving(database.dsn, "--profile", "mysql-8.0") as served, served.connect() as client:
        assert ask(client, b"set @@shop.a 0 0 1\r\n1\r\n") == b"NOT_STORED\r\n"
        sql(database, "ALTER TABLE test.shop DROP COLUMN x")
        assert ask(client, b"set a 0 0 1\r\n1\r\n") == STORED


@pytest.mark.usefixtures("shop")
def test_what_changed_in_a_pause_counts_at_once(database: SQLServer) -> None:
    sql(database, "ALTER TABLE test.shop ADD COLUMN x INT NOT NULL DEFAULT 5")
    with serving(database.dsn, "--profile", "mysql-8.0") as served, served.connect() as client:
        assert ask(client, b"set @@shop.a 0 0 1\r\n1\r\n") == b"NOT_STORED\r\n"
        sql(database, "ALTER TABLE test.shop MODIFY COLUMN x INT NULL")
        time.sleep(MAX_SCHEMA_AGE + 0.1)  # the real pause is what counts
        assert ask(client, b"set a 0 0 1\r\n1\r\n") == STORED


def test_a_command_that_begins_again_after_a_pause_counts_once(database: SQLServer) -> None:
    with serving(database.dsn) as served, served.connect() as client:
        before = stats(client)
        time.sleep(MAX_SCHEMA_AGE + 0.1)  # the real pause is what counts
        # No row has a key that is not text: the words in front of AA need no look-up, so they are counted first.
        assert ask(client, b"get \xff AA \xff b\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
        after = stats(client)
    counted = {name: int(after[name]) - int(before[name]) for name in ("cmd_get", "get_hits", "get_misses")}
    assert counted == {"cmd_get": 4, "get_hits": 1, "get_misses": 3}


@pytest.mark.usefixtures("shop")
def test_columns_that_select_does_not_show(database: SQLServer) -> None:
    sql(
        database,
        "ALTER TABLE test.shop ADD COLUMN hidden INT DEFAULT 5 INVISIBLE, ADD COLUMN twice INT AS (w * 2) STORED",
    )
    with serving(database.dsn, "--profile", "mysql-8.0") as served, served.connect() as client:
        assert ask(client, b"set @@shop.a 0 0 1\r\n1\r\nincr a 1\r\n") == STORED + b"2\r\n"
        assert sql(database, "SELECT w, hidden FROM test.shop") == [(None, None)]


@pytest.mark.usefixtures("shop")
def test_a_table_altered_again_and_again_while_it_is_used(database: SQLServer) -> None:
    with serving(database.dsn, "--profile", "mysql-8.0") as served, ExitStack() as stack:
        clients = [stack.enter_context(served.connect()) for _ in range(4)]
        for client in clients:
            assert ask(client, b"set @@shop.n 0 0 1\r\n0\r\n") == STORED
        counted, altered = [0] * len(clients), Event()

        def count(number: int) -> None:
            while not altered.is_set() or counted[number] < 5:
                answer = ask(clients[number], b"incr n 1\r\n")
                counted[number] += answer.strip().isdigit()
                assert answer.strip().isdigit() or answer.startswith(b"SERVER_ERROR "), answer

        def counts_more(before: int) -> bool:
            return sum(counted) > before

        with ThreadPoolExecutor(4) as pool:
            counts = [pool.submit(count, number) for number in range(4)]
            try:
                for number in range(8):
                    for change in (f"ADD COLUMN x{number} INT", f"DROP COLUMN x{number}"):
                        sql(database, f"ALTER TABLE test.shop {change}")
                        until(partial(counts_more, sum(counted)))
            finally:
                altered.set()
            for each in counts:
                each.result()
        assert sql(database, "SELECT v FROM test.shop WHERE k = 'n'") == [(str(sum(counted)),)]


@pytest.fixture(params=[MYSQL_8, "mariadb"])
def small(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    """A server of its own: what other tests leave in the undo log of the system tablespace takes room there."""
    with database_or_skip(request.param, SMALL) as server:
        yield server


def test_a_table_that_is_full(small: SQLServer) -> None:
    sql(small, "SET GLOBAL innodb_file_per_table = 0")
    map_table(small, "full", "v", "k VARCHAR(9) PRIMARY KEY", "v LONGTEXT")
    sql(small, "SET GLOBAL innodb_file_per_table = 1")
    with serving(small.dsn) as served, served.connect() as client:
        assert ask(client, b"bind full\r\n") == b"SUCCEED\r\n"
        for number in range(60):
            answer = ask(client, b"set k%d 0 0 300000\r\n%s\r\n" % (number, b"x" * 300_000))
            if answer != STORED:
                break
        assert answer == b"SERVER_ERROR 1114 The table 'full' is full\r\n"
        assert ask(client, b"get k%d\r\n" % number) == b"END\r\n"
        assert sql(small, "SELECT COUNT(*) FROM test.full") == [(number,)]
        assert len(ask(client, b"get k0\r\n")) > 300_000
        if "MariaDB" in small.version:
            return  # it has no room for the undo log either, not even to drop the table
        sql(small, "DROP TABLE test.full")
        assert ask(client, b"set @@aaa.k 0 0 1\r\nx\r\n") == STORED


def test_tables_that_have_not_changed_stay_in_use(database: SQLServer, shop: None) -> None:
    """So that what waits for them is not carried out one by one each time that they are looked at."""
    store = MySQLStore(parse(database.dsn, {}), profiles.load("kvref"), 5)
    with closing(store), closing(store.connect()) as link:
        store.read_directory()
        mapping = link.execute(LoadMapping("shop"))
        store.track(mapping)
        before = store.tables(store.canonical(mapping))
        store.update_mappings(link.recheck(store.mappings_in_use()))
        assert before.version.live
        assert store.tables(store.canonical(mapping)) is before
        sql(database, "ALTER TABLE test.shop MODIFY v VARCHAR(10)")
        store.update_mappings(link.recheck(store.mappings_in_use()))
        assert not before.version.live
        assert store.tables(store.canonical(mapping)).mapping.values[0].width == 10
