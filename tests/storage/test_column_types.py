"""Declared types to columns."""

from __future__ import annotations

import pytest

from kvref import profiles
from kvref.engine.mapping import Kind
from kvref.storage.config.column_types import column_of

KVREF, PLUGIN, OLD = (profiles.load(name) for name in ("kvref", "mysql-8.0", "mysql-5.6"))


@pytest.mark.parametrize(
    ("declared", "low", "high"),
    [
        ("INT", -(2**31), 2**31 - 1), ("int(11) unsigned", 0, 2**32 - 1), ("TINYINT UNSIGNED", 0, 255),
        ("BOOL", -128, 127), ("smallint  zerofill", 0, 65535), ("MEDIUMINT", -(2**23), 2**23 - 1),
        ("BIGINT", -(2**63), 2**63 - 1), ("BIGINT(20) SIGNED", -(2**63), 2**63 - 1), ("BIGINT UNSIGNED", 0, 2**64 - 1),
        ("INTEGER", -(2**63), 2**63 - 1), ("YEAR", 1901, 2155),
    ],
)  # fmt: skip
def test_integers(declared: str, low: int, high: int) -> None:
    column = column_of("c", declared, "BINARY", KVREF)
    assert column is not None
    assert (column.kind, column.low, column.high) == (Kind.INTEGER, low, high)


@pytest.mark.parametrize(
    ("declared", "low", "high"),
    [
        ("YEAR", 0, 255), ("ENUM('a','b')", 0, 255), ("ENUM(" + "'m'," * 256 + "'n')", 0, 65535), ("DATE", 0, 2**24 - 1),
        ("SET('a','b')", 0, 255), ("SET(" + "'m'," * 32 + "'n')", 0, 2**64 - 1), ("MEDIUMINT", -(2**23), 2**23 - 1),
    ],
)  # fmt: skip
def test_what_the_plugin_takes_for_an_integer(declared: str, low: int, high: int) -> None:
    column = column_of("c", declared, "BINARY", PLUGIN)
    assert column is not None
    assert (column.kind, column.low, column.high) == (Kind.INTEGER, low, high)


@pytest.mark.parametrize(
    ("declared", "collation", "charset", "width"),
    [
        ("VARCHAR(32)", "BINARY", "utf8mb4", 32), ("varchar (32)", "NOCASE", "utf8mb4", 32),
        ("CHARACTER VARYING(9)", "utf8_bin", "utf8", 9), ("CHAR", "latin1_swedish_ci", "latin1", 1),
        ("CHAR(4)", "UCS2_GENERAL_CI", "ucs2", 8), ("VARCHAR", "BINARY", "utf8mb4", None),
        ("VARCHAR(0)", "BINARY", "utf8mb4", 0), ("CHAR(0)", "latin1_bin", "latin1", 0),
        ("TEXT", "ascii_bin", "ascii", 65535), ("TINYTEXT", "BINARY", "utf8mb4", 255), ("TEXT(7)", "BINARY", "utf8mb4", 7),
    ],
)  # fmt: skip
def test_text(declared: str, collation: str, charset: str, width: int | None) -> None:
    column = column_of("c", declared, collation, KVREF)
    assert column is not None
    assert (column.kind, column.charset.name, column.width) == (Kind.TEXT, charset, width)
    assert column.cuts is ("CHAR" in declared.upper())


def test_a_column_without_a_collation_of_mysql_has_the_default_character_set() -> None:
    column = column_of("c", "VARCHAR(9)", "NOCASE", OLD)
    assert column is not None
    assert column.charset.name == "latin1"


@pytest.mark.parametrize(
    ("declared", "width"),
    [
        ("BLOB", 65535), ("LONGBLOB", 2**32 - 1), ("VARBINARY(8)", 8), ("BINARY(4)", 4), ("BINARY", 1), ("VARBINARY", None),
    ],
)  # fmt: skip
def test_bytes(declared: str, width: int | None) -> None:
    column = column_of("c", declared, "BINARY", KVREF)
    assert column is not None
    assert (column.kind, column.width) == (Kind.BYTES, width)


@pytest.mark.parametrize(
    ("declared", "width"),
    [
        ("FLOAT", 4), ("FLOAT(7,4)", 4), ("FLOAT(30)", 8), ("DOUBLE PRECISION", 8), ("REAL", 8), ("DECIMAL(10,2)", 5),
        ("NUMERIC", 5), ("DATETIME", 5), ("DATETIME(6)", 8), ("TIMESTAMP", 4), ("TIMESTAMP(3)", 6), ("TIME", 3),
        ("TIME(1)", 4), ("BIT", 1), ("BIT(16)", 2), ("JSON", None), ("GEOMETRY", None),
    ],
)  # fmt: skip
def test_types_the_plugin_does_not_convert(declared: str, width: int | None) -> None:
    column = column_of("c", declared, "BINARY", PLUGIN)
    assert column is not None
    assert (column.kind, column.width, column.exact) == (Kind.BYTES, width, declared.startswith(("FLO", "DOU", "REAL")))
    assert column_of("c", declared, "BINARY", KVREF) is None


@pytest.mark.parametrize("declared", ["", "STRING", "INT(", "VARCHAR(x", "UNSIGNED", "INT UNSIGNED NULLABLE"])
def test_no_type(declared: str) -> None:
    assert column_of("c", declared, "BINARY", PLUGIN) is None


def test_members_may_hold_any_character() -> None:
    column = column_of("c", "ENUM('a','it''s','(b), c')", "BINARY", PLUGIN)
    assert column is not None
    assert column.codec is not None
    assert [column.codec.to_sql(number) for number in (1, 2, 3)] == ["a", "it's", "(b), c"]


@pytest.mark.parametrize("declared", ["ENUM('a')", "SET('a')", "DATE"])
def test_what_is_no_integer_in_sql_is_no_type_of_kvref(declared: str) -> None:
    assert column_of("c", declared, "BINARY", KVREF) is None
