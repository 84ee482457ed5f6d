"""Values over a database that SQL shows in another form than the wire: long ones, and numbers with zeros in front."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8
from helpers.serving import ask, serving

from kvref.storage.mysql.statements import LONG
from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
STORED = b"STORED\r\n"
PARTS = [b"it's 'x' \"y\"; -- %s /* \0\x1a\r\n\t*/", b"\\' \\\\", "é€😀 '".encode(), b"\xe9\xff'", b"\x8e\x5c'"]
COLUMNS = {
    "latin": ("LONGTEXT CHARACTER SET latin1 NOT NULL", PARTS),
    "unicode": ("LONGTEXT CHARACTER SET utf8mb4", PARTS[:3]),
    "chinese": ("LONGTEXT CHARACTER SET gbk", PARTS[:2]),
    "bytes": ("LONGBLOB", PARTS),
}


@pytest.fixture(scope="module", params=[MYSQL_8, "mysql-9.7", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as found:
        for name, (kind, _) in COLUMNS.items():
            map_table(found, name, "v", "k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY", f"v {kind}")
        yield found


def item(key: bytes, value: bytes) -> bytes:
    return b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_byte_of_a_long_value_is_stored(database: SQLServer, name: str) -> None:
    """Each value is sent as itself or as hexadecimal digits, in a statement alone and with the others."""
    values = {b"\xe9%d" % number: part * (LONG // len(part) + 1) for number, part in enumerate(COLUMNS[name][1])}
    with serving(database.dsn) as served, served.connect() as client:
        assert ask(client, b"bind %s\r\n" % name.encode()) == b"SUCCEED\r\n"
        for _ in ("insert", "update"):
            together = b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(each), each) for key, each in values.items())
            assert ask(client, together) == STORED * len(values)
            shown = b"".join([item(key, value) for key, value in values.items()]) + b"END\r\n"
            assert ask(client, b"get " + b" ".join(values) + b"\r\n") == shown
            values = {key: each[::-1] if name != "unicode" else each + each for key, each in values.items()}
        assert sql(database, f"SELECT COUNT(*) FROM test.{name}") == [(len(values),)]


def test_a_value_longer_than_a_packet_is_read(database: SQLServer) -> None:
    ((before,),) = sql(database, "SELECT @@GLOBAL.max_allowed_packet")
    sql(database, "SET GLOBAL max_allowed_packet = 67108864")
    sql(database, "INSERT INTO test.latin VALUES ('longest', REPEAT('x', 3000000))")
    sql(database, "SET GLOBAL max_allowed_packet = 1048576")
    try:
        with serving(database.dsn) as served, served.connect() as client:
            value = b"x" * 3_000_000
            assert (
                ask(client, b"bind latin\r\nget longest\r\n") == b"SUCCEED\r\n" + item(b"longest", value) + b"END\r\n"
            )
    finally:
        sql(database, f"SET GLOBAL max_allowed_packet = {before}")


def test_numbers_that_sql_fills_with_zeros_are_shown_without(database: SQLServer) -> None:
    map_table(database, "filled", "v", "k INT(9) ZEROFILL PRIMARY KEY", "v INT(6) ZEROFILL")
    sql(database, "INSERT INTO test.filled VALUES (7, 42), (12, NULL), (1234, 0)")
    with serving(database.dsn) as served, served.connect() as client:
        assert ask(client, b"bind filled\r\nget 7\r\n") == b"SUCCEED\r\n" + item(b"7", b"42") + b"END\r\n"
        shown = item(b"7", b"42") + item(b"12", b"") + item(b"1234", b"0") + b"END\r\n"
        assert ask(client, b"get 7 12 1234 99\r\n") == shown
        assert ask(client, b"incr 7 1\r\nset 1234 0 0 2\r\n05\r\n") == b"43\r\nSTORED\r\n"
        assert ask(client, b"get 7 1234\r\n") == item(b"7", b"43") + item(b"1234", b"5") + b"END\r\n"
