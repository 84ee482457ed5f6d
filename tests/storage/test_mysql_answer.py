"""Answers read apart from PyMySQL: the same cells, the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pymysql
import pytest
from helpers.live import MYSQL_8, sql_server_or_skip
from pymysql.connections import Connection
from pymysql.constants import CR
from pymysql.cursors import Cursor

from kvref.storage.mysql.login import hangs
from kvref.storage.mysql.result_set import description, run, select_raw
from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
# On either side of each form of a length, and of what one packet holds.
SIZES = [0, 1, 250, 251, 65_535, 65_536, (1 << 24) - 10, 1 << 24, (1 << 24) + 10]


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with sql_server_or_skip(request.param, ["--max_allowed_packet=128M"]) as found:
        yield found


@pytest.fixture
def connection(server: SQLServer) -> Iterator[Connection[Cursor]]:
    with closing(server.connect(30)) as found:
        yield found


def both(connection: Connection[Cursor], sql: str) -> tuple[list[tuple[bytes | None, ...]], list[tuple[object, ...]]]:
    """Return the rows as they are read here and by PyMySQL, both as bytes."""
    _, rows = select_raw(connection, sql)
    with connection.cursor() as cursor:
        cursor.execute(sql)
        theirs = [tuple(each.encode() if isinstance(each, str) else each for each in row) for row in cursor.fetchall()]
    return [tuple(row) for row in rows], theirs


@pytest.mark.parametrize("size", SIZES)
def test_cells_of_any_size(connection: Connection[Cursor], size: int) -> None:
    ours, theirs = both(connection, f"SELECT REPEAT('x', {size}), NULL, 'behind' UNION ALL SELECT '', 'b', NULL")
    assert ours == theirs
    assert ours[0] == (b"x" * size, None, b"behind")


def test_no_rows_and_many(connection: Connection[Cursor]) -> None:
    assert both(connection, "SELECT 'x' FROM DUAL WHERE FALSE") == ([], [])
    digits = " UNION ALL ".join(f"SELECT '{number}' AS d" for number in range(10))
    ours, theirs = both(connection, f"SELECT a.d, b.d, c.d, d.d FROM {', '.join(f'({digits}) {n}' for n in 'abcd')}")
    assert sorted(ours) == sorted(theirs)
    assert len(ours) == 10_000


def test_columns_are_the_same_bytes_as_long_as_they_are_the_same(connection: Connection[Cursor]) -> None:
    seen = {
        text: select_raw(connection, f"SELECT {text}")[0] for text in ("'a' AS x", "'b' AS x", "'a' AS y", "1 AS x")
    }
    assert seen["'a' AS x"] == seen["'b' AS x"]
    assert len(set(seen.values())) == 3


def test_known_columns_are_recognized_and_others_are_read(connection: Connection[Cursor]) -> None:
    known, _ = select_raw(connection, "SELECT 'a' AS x, 1 AS y")
    assert select_raw(connection, "SELECT 'b' AS x, 2 AS y", known) == (known, [[b"b", b"2"]])
    columns, rows = select_raw(connection, "SELECT 'b' AS x, 2 AS z", known)
    assert columns != known
    assert rows == [[b"b", b"2"]]


def test_a_statement_of_several_packets(connection: Connection[Cursor]) -> None:
    known, _ = select_raw(connection, "SELECT LENGTH('') AS n")
    assert select_raw(connection, f"SELECT LENGTH('{'x' * (1 << 24)}') AS n", known)[1] == [[b"%d" % (1 << 24)]]
    with pytest.raises(pymysql.err.OperationalError, match="nothing_of_this_name"):
        select_raw(connection, f"SELECT LENGTH('{'x' * (1 << 24)}'), nothing_of_this_name")


def test_statements_without_rows(connection: Connection[Cursor]) -> None:
    run(connection, "CREATE TEMPORARY TABLE test.numbers (n INT AUTO_INCREMENT PRIMARY KEY)")
    assert run(connection, f"INSERT INTO test.numbers VALUES {', '.join(['()'] * 300)}") == 300
    run(connection, "START TRANSACTION")
    assert run(connection, "DELETE FROM test.numbers WHERE n > 299") == 1
    run(connection, "ROLLBACK")
    assert run(connection, "UPDATE test.numbers SET n = n WHERE n > 290") == 0  # none is changed
    with pytest.raises(pymysql.err.ProgrammingError, match="syntax"):
        run(connection, "INSERT INTO")
    assert run(connection, "DELETE FROM test.numbers") == 300
    with pytest.raises(pymysql.err.InternalError, match="rows in answer to SELECT 1"):
        run(connection, "SELECT 1")
    assert not connection.open


def test_columns_are_described_as_a_cursor_does(connection: Connection[Cursor]) -> None:
    sql = "SELECT CAST('a' AS BINARY) AS x, 1 AS y, REPEAT('z', 1000) AS z, NULL, host FROM mysql.user"
    columns, _ = select_raw(connection, sql)
    with connection.cursor() as cursor:
        cursor.execute(sql)
        assert description(columns, connection.encoding) == cursor.description


def test_an_error_at_once_and_between_rows(connection: Connection[Cursor]) -> None:
    with pytest.raises(pymysql.err.OperationalError, match="nothing_of_this_name"):
        select_raw(connection, "SELECT nothing_of_this_name")
    rows = "SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3"
    # The third row is one too many for a subquery; the first two are on their way by then.
    late = f"SELECT REPEAT('x', 100000), IF(n < 3, n, (SELECT 1 UNION SELECT n)) FROM ({rows}) rows_of_it"
    with pytest.raises(pymysql.err.MySQLError, match="more than 1 row"):
        select_raw(connection, late)
    assert select_raw(connection, "SELECT 'on'")[1] == [[b"on"]]


def test_a_statement_without_rows_is_an_error_of_ours(connection: Connection[Cursor]) -> None:
    with pytest.raises(pymysql.err.InternalError, match="no rows in answer to SET @a = 1"):
        select_raw(connection, "SET @a = 1")


def test_no_answer_in_time_counts_as_hanging(server: SQLServer) -> None:
    for sql in (
        "SELECT SLEEP(20)",
        # The first row is longer than what the server keeps back.
        "SELECT REPEAT('x', 1000000), SLEEP(IF(n = 2, 20, 0)) FROM (SELECT 1 AS n UNION ALL SELECT 2) rows_of_it",
    ):
        with closing(server.connect(1)) as impatient:
            with pytest.raises(pymysql.err.OperationalError) as reported:
                select_raw(impatient, sql)
            assert reported.value.args[0] == CR.CR_SERVER_LOST
            assert hangs(reported.value)
            assert not impatient.open


def test_a_server_that_ends_the_connection(server: SQLServer, connection: Connection[Cursor]) -> None:
    with closing(server.connect(30)) as other:
        other.query(f"KILL {connection.thread_id()}")
    with pytest.raises(pymysql.err.OperationalError):
        select_raw(connection, "SELECT 1")
