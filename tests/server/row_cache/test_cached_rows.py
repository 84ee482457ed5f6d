"""The row cache that follows a binary log: which rows it keeps, what drops them, and what it refuses."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.database import database_or_skip, map_table, sql
from helpers.http_client import AT, metrics
from helpers.row_cache_checker import FILL, SERVE, statistics
from helpers.serving import Served, ask, ask_gets, command, running, serving
from helpers.waiting import until, until_equal
from server.row_cache.checks import fill, hits, logs_cascades

from kvref.cli import main
from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


TWO_STORES = """
[[store]]
name = "files"
dsn = "sqlite:///{}"
[[store]]
name = "shop"
dsn = "{}"
[[mapping]]
name = "aaa"
store = "shop"
"""


def test_of_several_stores_each_with_a_binary_log_is_cached(database: SQLServer, tmp_path: Path) -> None:
    assert run("init", "--cache", "cache", "--store", f"sqlite:///{tmp_path / 'x'}").exit_code == 0
    file = tmp_path / "kvref.toml"
    file.write_text(TWO_STORES.format(tmp_path / "x", database.dsn))
    words = [sys.executable, "-m", "kvref", "serve", "--config", str(file), "--listen", "127.0.0.1:0", *SERVE]
    with running(words, str(file)) as served, served.connect() as client:
        served.wait_for("following the binary log")
        assert ask(client, b"set @@cache.k 0 0 1\r\n1\r\nget k\r\nbind aaa\r\n").startswith(
            b"STORED\r\nVALUE k 0 1\r\n1\r\nEND\r\n"
        )
        for value in ("one", "two"):
            sql(database, f"UPDATE test.demo_test SET c2 = '{value}' WHERE c1 = 'AA'")
            assert f"\r\n{value}\r\n".encode() in ask(client, b"get AA\r\n")
            fill(client, "AA")
    sql(database, "UPDATE test.demo_test SET c2 = 'HELLO, HELLO' WHERE c1 = 'AA'")


COLUMNS = (
    "i TINYINT UNSIGNED DEFAULT 200, j MEDIUMINT DEFAULT -5, l BIGINT UNSIGNED DEFAULT 9, f FLOAT DEFAULT 1.5,"
    " d DOUBLE DEFAULT 2.5, n DECIMAL(23, 11) DEFAULT -123.5, z DECIMAL(5, 0) DEFAULT 7, b BIT(11) DEFAULT b'101',"
    " e ENUM('x', 'yy') DEFAULT 'yy', s SET('x', 'yy') DEFAULT 'x,yy', c CHAR(3) DEFAULT 'c',"
    " w CHAR(200) CHARACTER SET utf8mb4 DEFAULT 'wide', h BINARY(7) DEFAULT 'h', y YEAR DEFAULT 2024,"
    " t DATE DEFAULT '2024-01-01', u TIME(3) DEFAULT '10:00:00.5', o DATETIME(6) DEFAULT '2024-01-01 10:00:00.25',"
    " p TIMESTAMP(1) NULL DEFAULT NULL, q TIMESTAMP DEFAULT CURRENT_TIMESTAMP, m TEXT, x LONGBLOB, g JSON, a POINT,"
    " r VARCHAR(300) DEFAULT 'r', vb VARBINARY(20) DEFAULT 'vb'"
)


def assert_not_cached(client: socket.socket, key: str) -> None:
    """Fail if a row that is read again and again is ever answered from the cache."""
    for _ in range(5):
        assert hits(client, key) == 0
        time.sleep(FILL)  # a row that may be cached is by then


def run(*words: str, **environment: str) -> Result:
    """Run a command in this process, one that ends by itself."""
    return CliRunner().invoke(main, words, env=environment)


def test_a_write_drops_its_own_row_only(database: SQLServer, cached: Served) -> None:
    sql(database, "DROP TABLE IF EXISTS test.wide", "DELETE FROM innodb_memcache.containers WHERE name = 'wide'")
    map_table(database, "wide", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)", COLUMNS)
    sql(
        database,
        "INSERT INTO test.wide (k, v) VALUES ('x', '1'), ('y', '2'), ('z', '3')",
        "UPDATE test.wide SET m = REPEAT('m', 60000), x = REPEAT('x', 300), g = '{\"a\": [1, 2]}', a = POINT(1, 2)",
    )
    with cached.connect() as client:
        ask(client, b"bind wide\r\n")
        fill(client, "x", "y", "z")
        sql(database, "UPDATE test.wide SET v = '4', n = NULL, i = i + 1 WHERE k = 'x'")
        assert b"\r\n4\r\n" in ask(client, b"get x\r\n")
        fill(client, "x")
        sql(database, "UPDATE test.wide SET v = '5' WHERE k = 'x'", "DELETE FROM test.wide WHERE k = 'z'")
        until(lambda: hits(client, "y") == 1)
        assert hits(client, "x", "z") == 0


def queries(database: SQLServer) -> int:
    ((_, number),) = sql(database, "SHOW GLOBAL STATUS LIKE 'Com_select'")
    ((_, shown),) = sql(database, "SHOW GLOBAL STATUS LIKE 'Com_show_status'")
    return int(number) + int(shown)


def test_every_form_of_a_get_of_the_mapping_in_force_is_answered_with_cached_rows(
    database: SQLServer, cached: Served
) -> None:
    sql(
        database,
        "DELETE FROM test.number",
        "INSERT INTO test.number VALUES (-1, 'c', 'b', 65535, 'v', 'w'), (2, 'd', 'e', 4, 'x', 'y')",
    )
    replies = {
        b"get -1\r\n": (b"number", b"VALUE -1 0 3\r\nv|w\r\nEND\r\n"),
        b"gets 2\r\n": (b"number", b"VALUE 2 0 3 0\r\nx|y\r\nEND\r\n"),
        b"get 65535 4\r\n": (b"small", b"VALUE 65535 0 3\r\nw|v\r\nVALUE 4 0 3\r\ny|x\r\nEND\r\n"),
        b"get @@char.c\r\n": (b"char", b"VALUE @@char.c 0 1\r\nw\r\nEND\r\n"),
        b"gets c d\r\n": (b"char", b"VALUE c 0 1 0\r\nw\r\nVALUE d 0 1 0\r\ny\r\nEND\r\n"),
        b"mg c v\r\n": (b"char", b"VA 1\r\nw\r\n"),
    }
    for line, (mapping, right) in replies.items():
        with cached.connect() as client:

            def found(line: bytes = line, mapping: bytes = mapping, right: bytes = right) -> int:
                ask(client, b"bind %b\r\n" % mapping)
                before = statistics(client)["hits"]
                assert ask(client, line) == right
                return statistics(client)["hits"] - before

            until_equal(found, right.count(b"VA"), pause=FILL)
    others = {
        b"get @@binary.e\r\n": b"VALUE @@binary.e 0 1\r\nx\r\nEND\r\n",
        b"get c @@binary.b\r\n": b"VALUE c 0 1\r\nw\r\nVALUE @@binary.b 0 1\r\nv\r\nEND\r\n",
    }
    with cached.connect() as client:
        for value in (b"v", b"z"):  # those of another one are read
            sql(database, f"UPDATE test.number SET v = '{value.decode()}' WHERE i = -1")
            for line, right in others.items():
                ask(client, b"bind char\r\n")
                assert ask(client, line) == right.replace(b"\nv\r", b"\n" + value + b"\r")


def test_a_key_of_another_type_is_found_in_the_log(database: SQLServer, cached: Served) -> None:
    map_table(database, "retyped", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)")
    sql(database, "REPLACE INTO test.retyped VALUES ('7', 'text')")
    reply = b"VALUE 7 0 %d 0\r\n%b\r\nEND\r\n"

    def found() -> bool:
        before = statistics(client)["hits"]
        ask(client, b"gets 7\r\n")
        return statistics(client)["hits"] > before

    with cached.connect() as client:
        ask(client, b"bind retyped\r\n")
        until(found, pause=FILL)
        sql(database, "ALTER TABLE test.retyped MODIFY k INT")
        for value in (b"one", b"two", b"three"):
            sql(database, f"UPDATE test.retyped SET v = '{value.decode()}' WHERE k = 7")
            until_equal(lambda: ask(client, b"gets 7\r\n"), reply % (len(value), value))
            until(found, pause=FILL)
    sql(database, "DELETE FROM innodb_memcache.containers WHERE name = 'retyped'", "DROP TABLE test.retyped")


def test_a_get_of_many_keys_queries_the_position_once(database: SQLServer, cached: Served) -> None:
    keys = [f"many{number}" for number in range(99)]  # with another one as many as a plan may have
    sql(database, "REPLACE INTO test.raced VALUES " + ", ".join(f"('{key}', '{key}')" for key in keys))
    line = f"get {' '.join(keys)} none\r\nget none {keys[0]}\r\n".encode()
    right = "".join(f"VALUE {key} 0 {len(key)}\r\n{key}\r\n" for key in keys).encode() + b"END\r\n"
    right += f"VALUE {keys[0]} 0 5\r\n{keys[0]}\r\nEND\r\n".encode()
    with cached.connect() as client:
        ask(client, b"bind raced\r\n")

        def once() -> bool:
            before, queried = statistics(client)["hits"], queries(database)
            assert ask(client, line) == right
            queried = queries(database) - queried - 2  # two are those of `queries`
            found = statistics(client)["hits"] - before
            # The keys are queried once, although one of them is requested twice, and each get of it counts.
            return found == 100 and queried <= 2

        until(once, pause=FILL)


def test_gets_show_cached_rows_unless_a_planned_command_writes_them(database: SQLServer, dsn: str) -> None:
    sql(database, "REPLACE INTO test.raced VALUES ('kept', '0')")
    with serving(dsn, *SERVE) as served, served.connect() as client, served.connect() as other:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        ask(other, b"bind raced\r\n")
        for number in range(1, 4):
            until_equal(lambda: hits(client, "kept"), 1, pause=FILL)
            right = b"VALUE kept 0 1\r\n%d\r\nEND\r\n" % number
            assert ask(client, b"set KEPT 0 0 1\r\n%d\r\nget kept\r\nget kept\r\n" % number) == (
                b"STORED\r\n" + right + right
            )
            assert ask(other, b"get kept\r\n") == right
        until_equal(lambda: hits(client, "kept"), 1, pause=FILL)
        assert ask(client, b"add kept 0 0 1\r\nx\r\nget kept none\r\n") == b"NOT_STORED\r\n" + right


@pytest.mark.parametrize("number", [12, 30])
def test_a_get_of_more_keys_than_a_statement_reads_has_kept_rows_and_others(database: SQLServer, number: int) -> None:
    keys = [f"part{each}" for each in range(number)]
    sql(
        database,
        "DELETE FROM test.raced",
        "INSERT INTO test.raced VALUES " + ", ".join(f"('{key}', '{key}')" for key in keys),
    )
    shown = {key: f"VALUE {key} 0 {len(key)}\r\n{key}\r\n".encode() for key in keys} | {"none": b""}
    words = [keys[-1], *keys, "none"]
    line, right = f"get {' '.join(words)}\r\n".encode(), b"".join([*map(shown.get, words), b"END\r\n"])
    with serving(f"{database.dsn}?connections=4&coalesce=2", *SERVE) as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        fill(client, *keys[3:6])

        def found() -> int:
            before = statistics(client)["hits"]
            assert ask(client, line) == right
            return statistics(client)["hits"] - before

        until_equal(found, number + 1, pause=FILL)
        sql(database, f"UPDATE test.raced SET v = 'new' WHERE k = '{keys[1]}'")
        assert ask(client, line) == right.replace(shown[keys[1]], f"VALUE {keys[1]} 0 3\r\nnew\r\n".encode())


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_a_session_with_another_row_image_drops_the_table(database: SQLServer, cached: Served, image: str) -> None:
    with cached.connect() as client, closing(database.connect(60)) as connection, connection.cursor() as cursor:
        ask(client, b"bind raced\r\n")
        sql(database, "REPLACE INTO test.raced VALUES ('i', '1'), ('j', '1')")
        fill(client, "i", "j")
        cursor.execute(f"SET SESSION binlog_row_image = {image}")
        cursor.execute("UPDATE test.raced SET v = '2' WHERE k = 'i'")
        assert b"\r\n2\r\n" in ask(client, b"get i\r\n")


def test_a_statement_in_the_log_drops_everything(database: SQLServer, cached: Served) -> None:
    with cached.connect() as client, closing(database.connect(60)) as connection, connection.cursor() as cursor:
        ask(client, b"bind raced\r\n")
        sql(database, "REPLACE INTO test.raced VALUES ('s', '1')")
        fill(client, "s")
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        cursor.execute("UPDATE test.raced SET v = '2' WHERE k = 's'")
        assert b"\r\n2\r\n" in ask(client, b"get s\r\n")


def test_a_table_with_cascades_is_cached_only_if_the_log_has_them(database: SQLServer, cached: Served) -> None:
    sql(database, "REPLACE INTO test.parent VALUES ('p')", "REPLACE INTO test.child VALUES ('p', '1')")
    with cached.connect() as client:
        ask(client, b"bind child\r\n")
        if logs_cascades(database):
            fill(client, "p")
            sql(database, "UPDATE test.parent SET k = 'q' WHERE k = 'p'")
            assert ask(client, b"get p q\r\n") == b"VALUE q 0 1\r\n1\r\nEND\r\n"
            fill(client, "q")
            sql(database, "DELETE FROM test.parent WHERE k = 'q'")
            assert ask(client, b"get p q\r\n") == b"END\r\n"
            return
        assert_not_cached(client, "p")
    assert "ON DELETE CASCADE" in cached.wait_for("rows of test.child are not cached")


def test_what_is_not_cached_is_named_at_the_start_and_by_doctor(database: SQLServer, cached: Served) -> None:
    if not logs_cascades(database):
        with serving(database.dsn, *SERVE) as served:
            assert "ON DELETE CASCADE" in served.wait_for("mapping 'child': rows of `test`.`child` are not cached")
    examined = json.loads(run("doctor", "--store", database.dsn, "--json", "-").stdout)
    reasons = {row["name"]: row["not_cached"] for row in examined["rows"]}
    assert ("ON DELETE CASCADE" in reasons["child"]) != logs_cascades(database)
    assert reasons["one"] == reasons["number"] == reasons["char"] == examined["not_cached"] == ""
    for options, line in (
        ((), "rows of 'child' are not cached with row_cache_binlog=1: a foreign key"),
        (("--verbose",), "not with row_cache_binlog=1: a foreign key"),
    ):
        shown = " ".join(run("doctor", "--store", database.dsn, *options).stdout.split())
        assert (line in shown) != logs_cascades(database), options


def test_metrics_show_what_stats_shows(database: SQLServer) -> None:
    sql(database, "REPLACE INTO test.raced VALUES ('x', '1')")
    with serving(database.dsn, *SERVE, *AT) as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        fill(client, "x")
        found = statistics(client)
        names = {f"kvref_row_cache_{name}_total": found[name] for name in ("hits", "misses", "stale", "evictions")}
        until(lambda: {name: metrics(served)[name] for name in names} == names)  # updated once a second
        assert metrics(served)["kvref_row_cache_following"] == 1
        assert metrics(served)["kvref_row_cache_age_seconds"] == pytest.approx(found["age_us"] / 1e6)
        assert metrics(served)["kvref_row_cache_lag_seconds"] == pytest.approx(found["lag_us"] / 1e6)
        assert found["age_us"] > 0


@pytest.fixture
def options(database: SQLServer) -> Iterator[Callable[[str, str], None]]:
    def choose(name: str, value: str) -> None:
        sql(database, f"REPLACE INTO innodb_memcache.config_options VALUES ('{name}', '{value}')")

    yield choose
    sql(database, "DELETE FROM innodb_memcache.config_options WHERE name LIKE 'row_cache%'")


def test_an_option_chooses_how_a_mapping_is_cached(
    database: SQLServer, cached: Served, options: Callable[[str, str], None]
) -> None:
    sql(
        database,
        "REPLACE INTO test.raced VALUES ('o', '1')",
        "REPLACE INTO test.one (k, u, v) VALUES ('o', 'o', '1')",
    )
    with cached.connect() as raced, cached.connect() as one:
        ask(raced, b"bind raced\r\n")
        ask(one, b"bind one\r\n")
        fill(raced, "o")
        fill(one, "o")
        options("row_cache.raced", "off")
        options("row_cache.ONE", "strong")
        fill(one, "o")
        assert_not_cached(raced, "o")
        options("row_cache", "off")
        options("row_cache.raced", "fast")
        fill(raced, "o")
        fill(one, "o")
        sql(database, "DELETE FROM innodb_memcache.config_options WHERE name = 'row_cache.ONE'")
        assert_not_cached(one, "o")
        sql(database, "UPDATE test.raced SET v = '2' WHERE k = 'o'")
        until_equal(lambda: ask(raced, b"get o\r\n"), b"VALUE o 0 1\r\n2\r\nEND\r\n")


def test_an_option_that_is_none_of_the_words_is_named(database: SQLServer, options: Callable[[str, str], None]) -> None:
    options("row_cache.one", "maybe")
    options("row_cache.two", "off")
    with serving(database.dsn, *SERVE) as served:
        line = served.wait_for("mapping 'one'")
        assert "option row_cache.one is 'maybe': write strong, fast or off" in line
        assert "option row_cache.two is off" in served.wait_for("mapping 'two'")


def test_memory_is_bounded(database: SQLServer) -> None:
    with serving(database.dsn, *SERVE, "--set", "row_cache_bytes=3000") as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        sql(database, *[f"REPLACE INTO test.raced VALUES ('m{number}', 'x')" for number in range(40)])

        def evicted() -> int:
            hits(client, *[f"m{number}" for number in range(40)])
            return statistics(client)["evictions"]

        until(evicted, pause=FILL)
        fill(client, "m39")


def test_a_row_is_out_of_date_no_longer_than_the_setting(database: SQLServer) -> None:
    with serving(database.dsn, *SERVE, "--set", "row_cache_staleness=300") as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        sql(database, "REPLACE INTO test.raced VALUES ('f', '0')")
        fill(client, "f")
        late = []
        for number in range(1, 6):
            sql(database, f"UPDATE test.raced SET v = '{number}' WHERE k = 'f'")
            written = time.monotonic()
            while b"\r\n%d\r\n" % number not in ask(client, b"get f\r\n"):
                late.append(time.monotonic() - written)
                assert statistics(client)["age_us"] <= 310_000
            fill(client, "f")
        assert max(late, default=0) < 2


@pytest.mark.parametrize(
    ("statement", "undo", "received"),
    [
        ("binlog_row_image = 'MINIMAL'", "binlog_row_image = 'FULL'", "needs binlog_row_image=FULL, not MINIMAL"),
        ("binlog_format = 'STATEMENT'", "binlog_format = 'ROW'", "needs binlog_format=ROW, not STATEMENT"),
    ],
)
def test_a_log_that_does_not_serve_is_refused(database: SQLServer, statement: str, undo: str, received: str) -> None:
    sql(database, f"SET GLOBAL {statement}")
    try:
        refused = run("serve", "--store", database.dsn, *SERVE)
        examined = json.loads(run("doctor", "--store", database.dsn, "--json", "-").stdout)
    finally:
        sql(database, f"SET GLOBAL {undo}")
    assert refused.exit_code == 2
    for text in (refused.stderr, examined["not_cached"]):
        assert received in text
        assert f"SET GLOBAL {undo}" in text


@pytest.mark.nightly  # it boots its own server; the other values that do not serve are set by SQL
def test_a_server_without_a_log_is_refused() -> None:
    with database_or_skip("mariadb") as server:
        refused = run("serve", "--store", server.dsn, *SERVE)
        assert refused.exit_code == 2
        received = "needs log_bin=ON, not OFF: start the server with --log-bin; needs binlog_format=ROW, not MIXED"
        assert received in refused.stderr
        shown = " ".join(run("doctor", "--store", server.dsn).stdout.split())
        assert f"rows are not cached with row_cache_binlog=1, which {received}" in shown


@pytest.mark.parametrize(
    ("options", "received"),
    [
        (("--set", "innodb_api_trx_level=0"), "innodb_api_trx_level=0"),
        (("--set", "innodb_api_trx_level=3"), "innodb_api_trx_level=3"),
        (
            ("--set", "innodb_api_trx_level=2", "--set", "daemon_memcached_r_batch_size=3"),
            "innodb_api_trx_level=2 and daemon_memcached_r_batch_size=3",
        ),
        (("--profile", "mysql-5.6"), "innodb_api_trx_level=0"),
        (("--set", "innodb_api_trx_level=1", "--profile", "mysql-8.0"), "profile mysql-8.0"),
    ],
)
def test_gets_that_show_other_rows_are_not_cached(database: SQLServer, options: tuple[str, ...], received: str) -> None:
    sql(database, "REPLACE INTO test.raced VALUES ('l', '1')")
    with serving(database.dsn, "--set", "row_cache_binlog=1", *options) as served, served.connect() as client:
        assert "innodb_api_trx_level=1 and daemon_memcached_r_batch_size=1" in served.wait_for(received)
        ask(client, b"get @@raced\r\n")
        for _ in range(4):
            assert b"\r\n1\r\n" in ask(client, b"get l\r\n")
            time.sleep(FILL)  # a row that may be cached is by then
        assert statistics(client).get("hits", 0) == 0


def test_a_reload_that_lets_gets_see_uncommitted_rows_ends_hits(database: SQLServer, dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "kvref.toml"
    settings = "[settings]\nrow_cache_binlog = 1\ninnodb_api_trx_level = {}\n"
    file.write_text(settings.format(1))
    sql(database, "REPLACE INTO test.raced VALUES ('u', 'old')")
    words = [sys.executable, "-m", "kvref", "serve", "--config", str(file), "--store", dsn, "--listen", "127.0.0.1:0"]
    with running(words, dsn) as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"get @@raced\r\n")
        fill(client, "u")
        file.write_text(settings.format(0))
        served.reload()
        with closing(database.connect(60)) as writer, writer.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("UPDATE test.raced SET v = 'new' WHERE k = 'u'")
            for _ in range(3):
                assert ask_gets(client, b"get u\r\n") == b"VALUE u 0 3\r\nnew\r\nEND\r\n"
                assert ask_gets(client, b"get u\r\nget u\r\n") == 2 * b"VALUE u 0 3\r\nnew\r\nEND\r\n"
                time.sleep(FILL)
            writer.rollback()
        assert ask_gets(client, b"get u\r\n") == b"VALUE u 0 3\r\nold\r\nEND\r\n"
        assert statistics(client)["hits"] == 1


# A read is the end of a batch of writes unless reads have batches too.
@pytest.mark.parametrize(("level", "reads"), [(1, 100), (2, 1)])
def test_gets_outside_a_batch_are_cached_and_those_inside_see_the_batch(
    database: SQLServer, level: int, reads: int
) -> None:
    sql(database, "REPLACE INTO test.raced VALUES ('w', '1')")
    settings = f"innodb_api_trx_level={level}", f"daemon_memcached_r_batch_size={reads}"
    options = ("row_cache_binlog=1", "daemon_memcached_w_batch_size=3", *settings)
    with serving(database.dsn, *[word for option in options for word in ("--set", option)]) as served:
        served.wait_for("following the binary log")
        with served.connect() as writer, served.connect() as reader:
            for client in (writer, reader):
                ask(client, b"bind raced\r\n")
                fill(client, "w")
            for number in range(2, 8):
                assert ask(writer, b"set w 0 0 1\r\n%d\r\n" % number) == b"STORED\r\n"
                committed = number if number % 3 == 1 else (number - 2) // 3 * 3 + 1
                if reads > 1:
                    assert ask(writer, b"get w\r\n") == b"VALUE w 0 1\r\n%d\r\nEND\r\n" % number
                assert ask(reader, b"get w\r\n") == b"VALUE w 0 1\r\n%d\r\nEND\r\n" % committed
                fill(reader, "w")
                assert ask(reader, b"get w\r\n") == b"VALUE w 0 1\r\n%d\r\nEND\r\n" % committed


def test_a_batch_of_reads_that_sees_the_newest_rows_is_cached(database: SQLServer) -> None:
    sql(database, "REPLACE INTO test.raced VALUES ('rb', '1')")
    with serving(database.dsn, *SERVE, "--set", "daemon_memcached_r_batch_size=100") as served:
        served.wait_for("following the binary log")
        with served.connect() as client:
            ask(client, b"bind raced\r\n")
            for number in range(2, 6):
                fill(client, "rb")
                sql(database, f"UPDATE test.raced SET v = '{number}' WHERE k = 'rb'")
                assert ask(client, b"get rb\r\n") == b"VALUE rb 0 1\r\n%d\r\nEND\r\n" % number


def test_gets_in_front_of_a_write_count_for_its_batch(database: SQLServer) -> None:
    sql(database, "REPLACE INTO test.raced VALUES ('rw', '0')")
    sizes = ("--set", "daemon_memcached_r_batch_size=3", "--set", "daemon_memcached_w_batch_size=100")
    gets = b"get rw\r\n", b"get none\r\n", b"gets rw none\r\n"
    with serving(database.dsn, *SERVE, *sizes) as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        for number, (before, behind) in enumerate(((2, 1), (3, 3), (1, 2), (7, 2), (0, 3)), 1):
            for each in range(before):
                assert ask_gets(client, gets[each % 3]).endswith(b"END\r\n")
            assert ask(client, b"set rw 0 0 1\r\n%d\r\n" % number) == b"STORED\r\n"
            for left in reversed(range(behind)):
                assert sql(database, "SELECT v FROM test.raced WHERE k = 'rw'") == [(str(number - 1),)], (before, left)
                assert ask_gets(client, b"get rw\r\n") == b"VALUE rw 0 1\r\n%d\r\nEND\r\n" % number
            assert sql(database, "SELECT v FROM test.raced WHERE k = 'rw'") == [(str(number),)], before


def test_too_few_connections_are_refused(database: SQLServer) -> None:
    refused = run("serve", "--store", f"{database.dsn}?connections=3", *SERVE)
    assert refused.exit_code == 2
    assert "the row cache needs connections=4 and coalesce=2 or more" in " ".join(refused.stderr.split())


def test_sqlite_refuses_the_setting(tmp_path: Path) -> None:
    refused = run("serve", "--store", f"sqlite:///{tmp_path / 'f'}", "--create", *SERVE)
    assert refused.exit_code == 2
    assert "row_cache_binlog=1" in refused.stderr


def test_few_privileges_are_enough(database: SQLServer) -> None:
    sql(
        database,
        "CREATE USER IF NOT EXISTS cacher@'%' IDENTIFIED BY 'p'",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON test.* TO cacher@'%'",
        "GRANT SELECT ON innodb_memcache.* TO cacher@'%'",
    )
    dsn = database.dsn.replace("root@", "cacher@")
    words = [*command(dsn), *SERVE, "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "KVREF_MYSQL_PASSWORD": "p"}
    refused = run("serve", "--store", dsn, *SERVE, **environment)
    assert refused.exit_code == 2
    assert "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.*" in refused.stderr
    examined = json.loads(run("doctor", "--store", dsn, "--json", "-", **environment).stdout)
    assert "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.*" in examined["not_cached"]
    sql(database, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO cacher@'%'")
    sql(database, "REPLACE INTO test.raced VALUES ('p', '1')")
    with running(words, dsn, environment) as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        fill(client, "p")


def test_a_process_sees_its_own_writes_in_fast_mode(database: SQLServer) -> None:
    with serving(database.dsn, *SERVE, "--set", "row_cache_staleness=60000") as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        for number in range(30):
            value = str(number).encode()
            assert ask(client, b"set own 0 0 %d\r\n%b\r\n" % (len(value), value)) == b"STORED\r\n"
            for _ in range(3):
                assert ask(client, b"get own\r\n") == b"VALUE own 0 %d\r\n%b\r\nEND\r\n" % (len(value), value)
            if number % 3 == 0:
                assert ask(client, b"delete own\r\n") == b"DELETED\r\n"
                assert ask(client, b"get own\r\n") == b"END\r\n"


def test_fast_mode_needs_no_query(database: SQLServer) -> None:
    sql(database, "REPLACE INTO test.raced VALUES ('q', '1')")
    with serving(database.dsn, *SERVE, "--set", "row_cache_staleness=60000") as served, served.connect() as client:
        served.wait_for("following the binary log")
        ask(client, b"bind raced\r\n")
        fill(client, "q")
        before, found = queries(database), statistics(client)["hits"]
        for _ in range(50):
            client.sendall(b"get q\r\n")
            assert client.recv(100) == b"VALUE q 0 1\r\n1\r\nEND\r\n"
        assert queries(database) - before - 2 < 50
        assert statistics(client)["hits"] == found + 50
