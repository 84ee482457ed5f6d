"""What a listener's connections may do: some mappings only, no writing, no flush_all; over SQLite and with workers."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from helpers.commands import kvref
from helpers.database import database_or_skip, sql
from helpers.serving import Served, ask, serving
from server.listeners.talk import ENDED, answers, frame

pytestmark = pytest.mark.live

ROW = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
TABLES = """
CREATE TABLE shop (k VARCHAR(32) PRIMARY KEY, v VARCHAR(100), f INT, c BIGINT, e INT);
INSERT INTO shop VALUES ('a', 'of the shop', 0, 1, 0);
INSERT INTO containers VALUES ('shop', 'test', 'shop', 'k', 'v', 'f', 'c', 'e', 'PRIMARY');
CREATE TABLE secret (k VARCHAR(32) PRIMARY KEY, v VARCHAR(100), f INT, c BIGINT, e INT);
INSERT INTO secret VALUES ('a', 'hidden', 0, 1, 0);
INSERT INTO containers VALUES ('secret', 'test', 'secret', 'k', 'v', 'f', 'c', 'e', 'PRIMARY');
"""
CONFIG = """
[[listener]]
address = "127.0.0.1:0"

[[listener]]
address = "127.0.0.1:0"
mappings = ["shop", "aaa"]

[[listener]]
address = "127.0.0.1:0"
mappings = ["shop"]
flush_all = false

[[listener]]
address = "127.0.0.1:0"
read_only = true
"""
ALL, TWO, SHOP, READING = range(4)


@contextmanager
def listening(folder: Path, *options: str, config: str = CONFIG) -> Iterator[tuple[Served, list[int]]]:
    """Serve the tables on the listeners of a configuration file; gives their ports too."""
    path = folder / "x.sqlite"
    assert kvref("init", "--demo", "--store", f"sqlite:///{path}").returncode == 0
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
    file = folder / "kvref.toml"
    file.write_text(config)
    with serving(path, "--config", str(file), *options, listen=None) as served:
        yield served, served.ports(config.count("[[listener]]"))


@pytest.fixture(scope="module", params=["1", "2"])
def limited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    with listening(tmp_path_factory.mktemp("served"), "--workers", request.param) as (_, found):
        yield found


def say(port: int, *chunks: bytes) -> bytes:
    """Hold a conversation on its own connection, and return all that came."""
    return b"".join(answers(port, chunks))


def test_a_listener_for_all(limited: list[int]) -> None:
    assert say(limited[ALL], b"get AA\r\nget @@secret.a\r\n").endswith(b"VALUE @@secret.a 0 6\r\nhidden\r\nEND\r\n")


def test_other_mappings_are_unknown(limited: list[int]) -> None:
    unknown = say(
        limited[ALL], b"get @@nowhere.a\r\nset @@nowhere.a 0 0 1\r\n1\r\nbind nowhere\r\ntouch @@nowhere.a 0\r\n"
    )
    hidden = say(limited[TWO], b"get @@secret.a\r\nset @@secret.a 0 0 1\r\n1\r\nbind secret\r\ntouch @@secret.a 0\r\n")
    assert hidden == unknown
    assert b"NOT_FOUND" in hidden
    for request in (
        frame(0x00, b"@@secret.a"),
        frame(0x04, b"@@secret.a"),
        frame(0x05, b"@@secret.a", extras=bytes(20)),
    ):
        assert say(limited[TWO], request) == say(limited[ALL], request.replace(b"secret", b"nowhen"))
    assert say(limited[ALL], b"get @@secret.a\r\n") == b"VALUE @@secret.a 0 6\r\nhidden\r\nEND\r\n"


def test_another_spelling_is_no_way_round(limited: list[int]) -> None:
    for word in (b"@@SECRET.a", b"@@secret .a", b"@@Secret", b"@@secret"):
        assert say(limited[TWO], b"get " + word + b"\r\n").replace(b"END\r\n", b"") == b""


def test_keys_without_a_mapping(limited: list[int]) -> None:
    # The default mapping is the first row of containers, aaa.
    assert say(limited[TWO], b"get AA\r\n") == ROW
    assert (
        say(limited[SHOP], b"get a\r\nget AA\r\nget @@aaa.AA\r\n")
        == b"VALUE a 0 11\r\nof the shop\r\nEND\r\nEND\r\nEND\r\n"
    )
    assert (
        say(limited[SHOP], b"set n 0 0 1\r\n1\r\n", b"get n\r\n", b"delete n\r\n")
        == b"STORED\r\nVALUE n 0 1\r\n1\r\nEND\r\nDELETED\r\n"
    )
    assert say(limited[ALL], b"get @@shop.n\r\nget n\r\n") == b"END\r\nEND\r\n"


def test_what_else_would_tell_of_other_mappings(limited: list[int]) -> None:
    no_detail = b"CLIENT_ERROR stats detail not allowed: it tells keys of mappings that this listener does not have\r\n"
    assert say(limited[SHOP], b"stats detail on\r\nstats detail dump\r\n") == no_detail * 2
    assert say(limited[ALL], b"stats detail off\r\n") == b"OK\r\n"


def test_a_listing_of_keys_or_clients_is_refused_where_anything_is_withheld(limited: list[int]) -> None:
    dump, conns = b"lru_crawler metadump all\r\n", b"stats conns\r\n"
    for number in (TWO, SHOP, READING):
        assert say(limited[number], dump) == b"ERROR metadump not allowed\r\n"
        assert say(limited[number], conns).startswith(b"CLIENT_ERROR stats conns not allowed"), number
    assert say(limited[ALL], b"lru_crawler metadump 1\r\n" + dump).startswith(b"END\r\nkey=AA exp=-1 ")
    assert b":state conn_parse_cmd\r\n" in say(limited[ALL], conns)


def test_who_may_not_list_keys_may_not_switch_that_off_for_others(limited: list[int]) -> None:
    for number in (TWO, SHOP, READING):
        assert say(limited[number], b"lru_crawler disable\r\n") in {
            b"ERROR metadump not allowed\r\n",
            b"CLIENT_ERROR this listener is read-only\r\n",
        }
        assert say(limited[number], b"lru_crawler sleep 0\r\nlru_crawler crawl 1\r\n") == b"OK\r\n" * 2
    assert say(limited[ALL], b"lru_crawler metadump 1\r\n") == b"END\r\n"


def test_a_listener_may_list_keys_or_not_as_it_says(tmp_path: Path) -> None:
    first, two, *_ = CONFIG.split("\n\n")
    config = f"{first}\nmetadump = false\n\n{two}\nmetadump = true\n"
    with listening(tmp_path, config=config) as (served, (none, limited)):
        assert say(none, b"lru_crawler metadump all\r\n") == b"ERROR metadump not allowed\r\n"
        assert b":state conn_parse_cmd\r\n" in say(none, b"stats conns\r\n")
        assert say(limited, b"lru_crawler metadump all\r\n").startswith(b"key=AA ")
        assert say(limited, b"bind shop\r\n", b"lru_crawler metadump all\r\n").startswith(b"SUCCEED\r\nkey=a ")
        assert say(limited, b"bind secret\r\n", b"lru_crawler metadump all\r\n").startswith(b"NOT_FOUND\r\nkey=AA ")
        assert any("(no metadump)" in line for line in served.log)
        assert any("(mappings shop, aaa; metadump)" in line for line in served.log)


def test_no_flush(limited: list[int]) -> None:
    refused = b"CLIENT_ERROR flush_all not allowed\r\n"
    assert (
        say(limited[SHOP], b"flush_all\r\nflush_all 0\r\nget a\r\n")
        == refused * 2 + b"VALUE a 0 11\r\nof the shop\r\nEND\r\n"
    )
    assert say(limited[SHOP], b"flush_all noreply\r\nmn\r\n").endswith(b"MN\r\n")
    for number, shown in ((SHOP, b"no"), (ALL, b"yes")):
        assert b"STAT flush_enabled %b\r\nSTAT dump_enabled %b\r\n" % (shown, shown) in say(
            limited[number], b"stats settings\r\n"
        )
    for opcode in (0x08, 0x18):
        assert b"flush_all not allowed" in say(limited[SHOP], frame(opcode))
    assert say(limited[SHOP], b"get a\r\n") == b"VALUE a 0 11\r\nof the shop\r\nEND\r\n"


WRITES = [
    b"set w 0 0 1\r\n1\r\n", b"add w 0 0 1\r\n1\r\n", b"replace AA 0 0 1\r\n1\r\n", b"append AA 0 0 1\r\n1\r\n",
    b"prepend AA 0 0 1\r\n1\r\n", b"cas AA 0 0 1 0\r\n1\r\n", b"delete AA\r\n", b"incr AA 1\r\n", b"decr AA 1\r\n",
    b"touch AA 9\r\n", b"gat 9 AA\r\n", b"gats 9 AA\r\n", b"flush_all\r\n", b"ms w 1\r\n1\r\n", b"md AA\r\n", b"ma AA\r\n",
    b"md AA I\r\n", b"mg AA T9 v\r\n", b"mg w N9\r\n",
]  # fmt: skip


def test_reading_only(limited: list[int]) -> None:
    refused = b"CLIENT_ERROR this listener is read-only\r\n"
    with socket.create_connection(("127.0.0.1", limited[READING]), timeout=60) as client:
        assert ask(client, b"get AA\r\n") == ROW  # from here on simple commands use the fast path
        for each in WRITES:
            assert ask(client, each) == refused, each
            assert ask(client, b"get AA\r\n") == ROW
        assert ask(client, b"mg AA v\r\n") == b"VA 12\r\nHELLO, HELLO\r\n"
        assert ask(client, b"get @@secret.a w\r\n") == b"VALUE @@secret.a 0 6\r\nhidden\r\nEND\r\n"
        assert ask(client, b"bind aaa\r\n") == b"SUCCEED\r\n"
        assert (
            ask(client, b"set w 0 0 1 noreply\r\n1\r\ndelete AA noreply\r\nincr AA 1 noreply\r\n").count(b"STORED") == 0
        )
        assert ask(client, b"get AA w\r\n") == ROW


def test_reading_only_in_frames(limited: list[int]) -> None:
    number = bytes(20)
    writes = [
        frame(0x01, b"w", b"1", bytes(8)), frame(0x02, b"w", b"1", bytes(8)), frame(0x03, b"AA", b"1", bytes(8)),
        frame(0x04, b"AA"), frame(0x05, b"w", extras=number), frame(0x06, b"w", extras=number), frame(0x08),
        frame(0x0E, b"AA", b"1"), frame(0x0F, b"AA", b"1"), frame(0x1C, b"AA", extras=bytes(4)),
        frame(0x1D, b"AA", extras=bytes(4)), frame(0x11, b"w", b"1", bytes(8)), frame(0x14, b"AA"), frame(0x18),
    ]  # fmt: skip
    for each in writes:
        reply = say(limited[READING], each)
        assert b"read-only" in reply, each
        assert not reply.endswith(ENDED)
    assert say(limited[READING], b"get AA w\r\n") == ROW


def test_a_reload_keeps_the_limits(tmp_path: Path) -> None:
    with listening(tmp_path) as (served, found):
        with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
            connection.execute("DELETE FROM containers WHERE name = 'shop'")
        served.reload()
        gone = b"SERVER_ERROR mapping shop is not in containers: this listener is limited to it\r\n"
        assert say(found[SHOP], b"get AA\r\nget @@secret.a\r\n") == gone + b"END\r\n"
        assert say(found[ALL], b"get AA\r\n") == ROW


def test_a_memory_cache_of_all_mappings_is_refused(tmp_path: Path) -> None:
    with listening(tmp_path) as (served, found):
        with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
            connection.execute("UPDATE cache_policies SET get_policy = 'caching'")
        served.reload()
        served.wait_for("is limited to mappings, but cache_policies sets get to 'caching'")
        assert say(found[SHOP], b"get a\r\n") == b"VALUE a 0 11\r\nof the shop\r\nEND\r\n"
    result = kvref(
        "serve", "--config", str(tmp_path / "kvref.toml"), "--create", "--store", f"sqlite:///{tmp_path}/x.sqlite"
    )
    assert result.returncode == 2
    assert "all mappings share the memory cache" in result.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_mapping_without_a_row_is_a_warning_at_the_start_and_at_a_reload(tmp_path: Path, workers: str) -> None:
    config = '[[listener]]\naddress = "127.0.0.1:0"\nmappings = ["nope", "SHOP"]\n'
    text = "no usable row of containers has the name 'nope', which mappings lists: choose from "
    with listening(tmp_path, "--workers", workers, config=config) as (served, _):
        assert "aaa" in served.wait_for(f"listener 127.0.0.1:0: {text}")
        assert "'SHOP'" not in "".join(served.log)
        served.reload()
        assert text in "".join(served.log)
        with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
            connection.execute("UPDATE containers SET name = 'nope' WHERE name = 'secret'")
        served.reload()
        assert text not in "".join(served.log)


def test_over_a_database(tmp_path: Path) -> None:
    with database_or_skip("mariadb") as database:
        sql(database, "CREATE TABLE test.shop (k VARCHAR(32) PRIMARY KEY, v VARCHAR(100), f INT, c BIGINT, e INT)",
            "INSERT INTO test.shop VALUES ('a', 'of the shop', 0, 1, 0)",
            "INSERT INTO innodb_memcache.containers VALUES ('shop', 'test', 'shop', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')")  # fmt: skip
        options = ["--mapping", "shop", "--read-only"]
        with serving(database.dsn, *options) as served, served.connect() as client:
            for _ in range(3):
                assert ask(client, b"get a\r\n") == b"VALUE a 0 11\r\nof the shop\r\nEND\r\n"
                assert say(served.port, b"get a\r\n", b"get a\r\n", b"get @@aaa.AA\r\n").count(b"of the shop") == 2
                assert ask(client, b"set a 0 0 1\r\n1\r\n") == b"CLIENT_ERROR this listener is read-only\r\n"
            assert ask(client, b"get @@aaa.AA\r\nbind aaa\r\n") == b"END\r\nNOT_FOUND\r\n"
        assert sql(database, "SELECT v FROM test.shop") == [("of the shop",)]


def test_what_is_too_large_removes_no_row_of_a_reader(tmp_path: Path) -> None:
    too_large = b"set AA 0 0 2000000\r\n" + b"x" * 2000000 + b"\r\n"
    with listening(tmp_path, "--profile", "mysql-5.6") as (_, found):
        for port, left in ((found[READING], ROW), (found[ALL], b"END\r\n")):
            assert say(port, too_large, b"get AA\r\n") == b"SERVER_ERROR object too large for cache\r\n" + left


@pytest.mark.parametrize("workers", ["1", "2"])
def test_reads_that_no_store_has_are_refused(tmp_path: Path, workers: str) -> None:
    file = tmp_path / "kvref.toml"
    file.write_text('[[listener]]\naddress = "127.0.0.1:0"\nreads = "session"\n')
    store = f"sqlite:///{tmp_path / 'x.sqlite'}"
    refused = kvref("serve", "--config", str(file), "--create", "--store", store, "--workers", workers)
    text = "reads = 'session': no store has it: set reads=session in a DSN mysql://, or leave it out here"
    assert (refused.returncode, text in refused.stderr) == (2, True), refused.stderr
