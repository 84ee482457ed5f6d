"""kvref over InnoDB of MySQL 8.0.33: unusual tables and settings, with the replies of the plugin 8.0.33."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.live import sql_server_or_skip
from helpers.serving import ask, serving

from kvref_testbed.targets.servers import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.nightly]

ROWS = "INSERT INTO test.t (k, v, f, e) VALUES (1, '1', 0, 0), (2, '2', 0, 0), (3, '3', 0, 0), (4, '4', 0, 1)"


@pytest.fixture(scope="module")
def database() -> Iterator[SQLServer]:
    with sql_server_or_skip("mysql-8.0") as server:
        subprocess.run(
            [sys.executable, "-m", "kvref", "init", "--demo", "--store", server.dsn], check=True, capture_output=True
        )
        yield server


def sql(database: SQLServer, *statements: str) -> list[tuple[object, ...]]:
    with closing(database.connect()) as connection, connection.cursor() as cursor:
        for statement in ("SET autocommit = 1, sql_select_limit = 1000", *statements):
            cursor.execute(statement)
        return list(cursor.fetchall())


def make(database: SQLServer, key: str, keys: str, index: str = "PRIMARY", value: str = "VARCHAR(20)") -> None:
    sql(
        database,
        "DROP TABLE IF EXISTS test.t",
        f"CREATE TABLE test.t (k {key}, v {value}, f INT, e INT, {keys}) ENGINE = InnoDB",
        f"REPLACE INTO innodb_memcache.containers VALUES ('t', 'test', 't', 'k', 'v', 'f', '0', 'e', '{index}')",
    )


def items(*keys: str) -> bytes:
    return "".join(f"VALUE {key} 0 1\r\n{key}\r\n" for key in keys).encode() + b"END\r\n"


def held(database: SQLServer, lines: bytes, profile: str = "mysql-8.0") -> bytes:
    with serving(database.dsn, "--profile", profile) as served, served.connect() as client:
        assert ask(client, b"bind t\r\n") == b"SUCCEED\r\n"
        return ask(client, lines)


@pytest.mark.parametrize(
    ("keys", "index", "ranges"),
    [
        (
            "PRIMARY KEY (k DESC)",
            "PRIMARY",
            {
                b"@>2": "1", b"@>=2": "21", b"@>22": "21", b"@<2": "", b"@<22": "", b"@<=1": "", b"@>3@<=1": "21",
                b"@>0@<3": "", b"@<=1@>3": "21", b"@>9": "", b"@>1": "",
            },
        ),
        ("UNIQUE KEY uk (k DESC)", "uk", {b"@>2": "1", b"@>=2": "21", b"@>22": "21", b"@>0": "", b"@>9": ""}),
    ],
)  # fmt: skip
def test_a_range_goes_on_in_the_order_of_a_descending_index(
    database: SQLServer, keys: str, index: str, ranges: dict[bytes, str]
) -> None:
    make(database, "VARCHAR(20)", keys, index)
    sql(database, ROWS)
    lines = b"".join(b"get %b\r\n" % word for word in ranges)
    # 4 is expired: what comes behind it is lost.
    assert held(database, lines) == b"".join(items(*found) for found in ranges.values())
    assert held(database, b"get @>=2\r\n", "kvref") == items("2", "3")


def test_an_invisible_index_serves(database: SQLServer) -> None:
    make(database, "VARCHAR(20)", "UNIQUE KEY uk (k) INVISIBLE", "uk")
    sql(database, ROWS)
    assert held(database, b"get 2\r\nset 5 0 0 1\r\n5\r\nget 5\r\n") == items("2") + b"STORED\r\n" + items("5")


def test_an_index_of_an_expression_is_a_virtual_column(database: SQLServer) -> None:
    make(database, "VARCHAR(20)", "PRIMARY KEY (k), KEY ((upper(v)))")
    with serving(database.dsn, "--profile", "mysql-8.0") as served, served.connect() as client:
        assert ask(client, b"bind t\r\n") == b"NOT_FOUND\r\n"
    assert held(database, b"set 5 0 0 1\r\n5\r\nget 5\r\n", "kvref") == b"STORED\r\n" + items("5")


@pytest.mark.parametrize(
    "setting",
    [
        "autocommit = 0", "completion_type = 'CHAIN'", "sql_safe_updates = 1", "sql_select_limit = 1",
        "sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'", "transaction_isolation = 'SERIALIZABLE'",
        "optimizer_switch = 'use_invisible_indexes=off'",
    ],
)  # fmt: skip
def test_no_setting_of_the_server_changes_what_a_command_does(database: SQLServer, setting: str) -> None:
    make(database, "VARCHAR(20)", "PRIMARY KEY (k)")
    sql(database, ROWS)
    name = setting.partition(" ")[0]
    (before,) = sql(database, f"SELECT @@GLOBAL.{name}")[0]
    sql(database, f"SET GLOBAL {setting}")
    try:
        lines = b"set 5\\' 0 0 1\r\n\\\r\nget 5\\' 1\r\nget @>=1\r\nincr 1 1\r\ndelete 2\r\n"
        answers = b"VALUE 5\\' 0 1\r\n\\\r\n" + items("1") + items("1", "2", "3")
        assert held(database, lines) == b"STORED\r\n" + answers + b"2\r\nDELETED\r\n"
        assert sql(database, "SELECT k, v FROM test.t ORDER BY k") == [
            ("1", "2"),
            ("3", "3"),
            ("4", "4"),
            ("5\\'", "\\"),
        ]
        assert held(database, b"flush_all\r\nget 1\r\n") == b"OK\r\nEND\r\n"
    finally:
        sql(database, f"SET GLOBAL {name} = {before!r}")
    assert sql(database, "SELECT k FROM test.t") == []


# What is sent as key and as value, and what a VARCHAR(4) keeps: four characters, or those in front of a malformed one.
TEXTS = [
    ("cp1251", b"k\xff\x98xyz", b"k\xff\x98x"),
    ("koi8r", b"\xc0\xc1", b"\xc0\xc1"),
    ("gbk", b"\xb0\xa1\xb0\xa2\xb0\xa3xy\xb0\xa1", b"\xb0\xa1\xb0\xa2\xb0\xa3x"),
    ("gbk", b"k\xb0\xa1\xff", b"k\xb0\xa1"),
    ("big5", b"k\xa4@\x80", b"k\xa4@"),
    ("sjis", b"\x83A\xb1\x80", b"\x83A\xb1"),
    ("euckr", b"\xb0\xa1\x80", b"\xb0\xa1"),
    ("ujis", b"\x8e\xb1\x8f\xb0\xa1\xb0\xa1k\xff", b"\x8e\xb1\x8f\xb0\xa1\xb0\xa1k"),
    ("gb2312", b"\xb0\xa1\x81@", b"\xb0\xa1"),
    ("utf16", b"\xd8=\xde\x02kkllmmnn", b"\xd8=\xde\x02kkllmm"),
    ("utf16le", b"=\xd8\x02\xdekkl", b"=\xd8\x02\xdekk"),
    ("utf32", b"\0\0\0k\0\x01\xf6\x02\0\x11\0\0", b"\0\0\0k\0\x01\xf6\x02"),
]


@pytest.mark.parametrize(("charset", "sent", "kept"), TEXTS)
def test_text_of_another_character_set(database: SQLServer, charset: str, sent: bytes, kept: bytes) -> None:
    text = f"VARCHAR(4) CHARACTER SET {charset}"
    key, shown = (sent, kept) if b"\0" not in sent else (b"kkkk", b"kkkk") if charset != "utf32" else (b"", b"")
    make(database, text if key else "VARCHAR(4)", "PRIMARY KEY (k)", value=text)
    lines = b"set %b 0 0 %d\r\n%b\r\nget %b\r\n" % (key or b"k", len(sent), sent, key or b"k")
    answer = b"STORED\r\nVALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key or b"k", len(kept), kept)
    assert held(database, lines) == answer
    assert sql(database, "SELECT HEX(k), HEX(v) FROM test.t") == [((shown or b"k").hex().upper(), kept.hex().upper())]


def test_malformed_text_that_the_plugin_left_is_read(database: SQLServer) -> None:
    make(database, "VARCHAR(9)", "PRIMARY KEY (k)", value="TEXT CHARACTER SET utf8mb4")
    sql(database, "DROP TABLE IF EXISTS test.u", "CREATE TABLE test.u LIKE test.t")
    sql(database, "ALTER TABLE test.u MODIFY v TEXT CHARACTER SET latin1")
    sql(database, "INSERT INTO test.u (k, v) VALUES ('a', X'76FFFE')", "ALTER TABLE test.t DISCARD TABLESPACE")
    with closing(database.connect()) as connection, connection.cursor() as cursor:
        # SQL writes no such text; a file without its description is taken as it is.
        cursor.execute("FLUSH TABLES test.u FOR EXPORT")
        cursor.execute("SELECT @@datadir")
        ((folder,),) = cursor.fetchall()
        shutil.copy(Path(folder, "test", "u.ibd"), Path(folder, "test", "t.ibd"))
    sql(database, "ALTER TABLE test.t IMPORT TABLESPACE", "DROP TABLE test.u")
    assert held(database, b"get a\r\nincr a 1\r\nget a\r\n", "mysql-8.0") == (
        b"VALUE a 0 3\r\nv\xff\xfe\r\nEND\r\n1\r\n" + items("a").replace(b"\r\na\r", b"\r\n1\r")
    )
