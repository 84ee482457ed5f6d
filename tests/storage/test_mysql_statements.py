"""The SQL of one mapping over InnoDB: what is quoted, what a cell's literal is, which index is named."""

from __future__ import annotations

import pytest

from kvref.collations.charsets import CHARSETS
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Row
from kvref.storage.config import codecs
from kvref.storage.config.containers import Container
from kvref.storage.mysql.statements import FOR_UPDATE, LONG, Statements, literal

KEY = Column("k", Kind.TEXT, 8, cuts=True, charset=CHARSETS["latin1"])
ROW = Container("m", "test", "t", "k", "v", "f", "c", "0", "uk")


def statements(**others: object) -> Statements:
    columns = {"flags": Column("f", Kind.INTEGER), "cas": None, "expiry": None, **others}
    mapping = Mapping("m", "test", "t", "`test`.`t`", KEY, (Column("v`", Kind.BYTES),), **columns, row=ROW)  # type: ignore[arg-type]
    return Statements(mapping)


@pytest.mark.parametrize(
    ("column", "cell", "text"),
    [
        (KEY, "é", "_latin1 X'e9'"),
        (KEY, b"\xe9'", "_latin1 X'e927'"),
        (Column("k", Kind.TEXT, charset=CHARSETS["utf8"]), "é", "_utf8mb3 X'c3a9'"),
        (Column("v", Kind.BYTES), b"\0'", "X'0027'"),
        (Column("v", Kind.BYTES), b"", "X''"),
        (KEY, "'" * LONG, "_latin1 '" + "''" * LONG + "'"),
        (KEY, b"\xe9" * LONG, "_latin1 X'" + "e9" * LONG + "'"),
        (KEY, "\\" * LONG, "_latin1 X'" + "5c" * LONG + "'"),
        (Column("k", Kind.TEXT, charset=CHARSETS["utf8"]), "é" * LONG, "_utf8mb3 '" + "é" * LONG + "'"),
        (Column("v", Kind.BYTES), b"\0" * LONG, "_binary '" + "\0" * LONG + "'"),
        (Column("v", Kind.INTEGER), -5, "-5"),
        (Column("v", Kind.INTEGER), None, "NULL"),
    ],
)
def test_a_literal_is_the_bytes_in_the_columns_character_set(column: Column, cell: Cell, text: str) -> None:
    assert literal(column, cell) == text


def test_reads_name_the_index() -> None:
    sql = statements()
    head = "SELECT IFNULL(`k`, CAST(NULL AS BINARY)), `v```, `f` FROM `test`.`t` FORCE INDEX (`uk`) WHERE `k`"
    assert sql.lookup("a") == f"{head} = _latin1 X'61'"
    assert sql.lookup("a", FOR_UPDATE) == f"{head} = _latin1 X'61' FOR UPDATE"
    assert sql.scan([(">", "a"), ("<=", "c")], 5) == (
        f"{head} > _latin1 X'61' AND `k` <= _latin1 X'63' ORDER BY `k` LIMIT 5"
    )
    assert sql.scan([], 5).endswith("FORCE INDEX (`uk`) WHERE TRUE ORDER BY `k` LIMIT 5")


def test_a_key_finds_the_row_that_begins_with_it() -> None:
    sql = statements(beginning=3)
    assert sql.lookup("abc", FOR_UPDATE).endswith(" WHERE LEFT(`k`, 3) = _latin1 X'616263' FOR UPDATE")
    assert sql.remove("abcd").endswith(" WHERE `k` = _latin1 X'61626364'")


def test_a_hidden_column_is_refused_where_the_profile_does() -> None:
    row = Row("a", (b"x",), 3, None, None)
    for hidden, refuses, text in (
        (True, True, "1048 Column 'FTS_DOC_ID' cannot be null"),
        (True, False, None),
        (False, True, None),
    ):
        sql = Statements(statements(hidden=hidden).mapping, refuses_hidden=refuses)
        assert sql.refusal(row, clear_unmapped=False) == text


def test_writes() -> None:
    sql = statements(unmapped=("o`",))
    row = Row("a", (b"x",), 3, None, None)
    assert sql.insert([row], clear_unmapped=False) == (
        "INSERT INTO `test`.`t` (`k`, `v```, `f`) VALUES (_latin1 X'61', X'78', 3)"
    )
    assert sql.insert([row], clear_unmapped=True) == (
        "INSERT INTO `test`.`t` (`k`, `v```, `f`, `o```) VALUES (_latin1 X'61', X'78', 3, NULL)"
    )
    assert sql.update("b", row, clear_unmapped=True) == (
        "UPDATE `test`.`t` FORCE INDEX (`uk`) SET `k` = _latin1 X'61', `v``` = X'78', `f` = 3, `o``` = NULL"
        " WHERE `k` = _latin1 X'62'"
    )
    assert sql.remove("b") == "DELETE FROM `test`.`t` WHERE `k` = _latin1 X'62'"


def test_rows() -> None:
    assert statements().row(("a", b"x", None)) == Row("a", (b"x",), None, None, None)


def test_null_is_not_written_where_sql_would_put_something_else() -> None:
    sql = statements(unmapped=("id",), not_null=frozenset({"id", "f"}))
    assert sql.refusal(Row("a", (b"x",), 3, None, None), clear_unmapped=True) == "1048 Column 'id' cannot be null"
    assert sql.refusal(Row("a", (b"x",), 3, None, None), clear_unmapped=False) is None
    assert sql.refusal(Row("a", (b"x",), None, None, None), clear_unmapped=False) == "1048 Column 'f' cannot be null"


def test_sql_gets_no_padding() -> None:
    charset = CHARSETS["utf8mb4"]
    column = Column("k", Kind.TEXT, 4, cuts=True, charset=charset, codec=codecs.text(charset, 16))
    assert literal(column, "ab" + " " * 14) == "_utf8mb4 X'6162'"


def test_sql_gets_no_padding_of_bytes() -> None:
    latin1 = CHARSETS["latin1"]
    padded, other = (Column("k", Kind.TEXT, charset=latin1, codec=codecs.text(latin1, width)) for width in (4, 0))
    assert [literal(each, b"\xe9  ") for each in (padded, other)] == ["_latin1 X'e9'", "_latin1 X'e92020'"]


def test_several_rows_are_updated_by_their_bytes_and_alike_columns_once() -> None:
    rows = [Row("a", (b"1",), 7, None, None), Row("b", (None,), 7, None, None)]
    assert statements().update_all(rows, clear_unmapped=False, value_unchanged=False) == (
        "UPDATE `test`.`t` FORCE INDEX (`uk`) SET"
        " `v``` = CASE CAST(`k` AS BINARY) WHEN X'61' THEN X'31' WHEN X'62' THEN NULL END, `f` = 7"
        " WHERE `k` IN (_latin1 X'61', _latin1 X'62')"
    )


def test_a_column_of_two_uses_is_written_once_with_the_value() -> None:
    # The key is a value too, and so is the flags column: a value comes before the key and an option.
    both = Column("v", Kind.BYTES)
    mapping = Mapping("m", "test", "t", "`test`.`t`", KEY, (KEY, both), both, None, None, row=ROW)
    rows = [Row(f"k{at}", (f"v{at}", b"%d" % at), at, None, None) for at in (5, 6)]
    assert Statements(mapping).insert(rows, clear_unmapped=False) == (
        "INSERT INTO `test`.`t` (`k`, `v`) VALUES (_latin1 X'7635', X'35'), (_latin1 X'7636', X'36')"
    )
    assert Statements(mapping).insert(rows[:1], clear_unmapped=False).endswith("VALUES (_latin1 X'7635', X'35')")


def test_several_rows_are_inserted_in_their_order() -> None:
    rows = [Row("b", (b"1",), 7, None, None), Row("a", (None,), None, None, None)]
    assert statements().insert(rows, clear_unmapped=False) == (
        "INSERT INTO `test`.`t` (`k`, `v```, `f`) VALUES (_latin1 X'62', X'31', 7), (_latin1 X'61', NULL, NULL)"
    )


def test_what_an_expression_could_turn_into_something_else_goes_alone() -> None:
    row = Row("a", (b"1",), 7, None, None)
    assert statements().updates_together("a", row)
    assert statements().updates_together(b"a", row)
    assert not statements().updates_together("A", row)  # the key is given another spelling
    assert not statements(flags=Column("f", Kind.INTEGER, codec=codecs.YEAR)).updates_together("a", row)
