"""Between what SQL shows and what the plugin's wire has: InnoDB's storage bytes as they were seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvref.collations.charsets import CHARSETS
from kvref.engine.mapping import ColumnCodec
from kvref.storage.config import codecs

# Read by `get` from rows that SQL wrote, the same in 5.6.14 and 8.0.33 (type-130 to 136 and further widths).
STORED: list[tuple[Callable[[str], bytes], str, bytes]] = [
    (codecs.floating("f"), "1.5", b"\0\0\xc0?"), (codecs.floating("f"), "-2.0", b"\0\0\0\xc0"),
    (codecs.floating("d"), "1.5", b"\0\0\0\0\0\0\xf8?"),
    (codecs.decimal(10, 2), "1.5", b"\x80\0\0\x012"), (codecs.decimal(10, 2), "-1.5", b"\x7f\xff\xff\xfe\xcd"),
    (codecs.decimal(10, 2), "12345678.91", b"\x80\xbcaN["), (codecs.decimal(3, 0), "15", b"\x80\x0f"),
    (codecs.decimal(20, 5), "-123456.78912", b"\x7f\xff\xff\xff\xfe\x1d\xbf\xfe\xcb\xbf"),
    (codecs.decimal(65, 30), "15.000000000000000000000000000001", b"\x80" + b"\0" * 14 + b"\x0f" + b"\0" * 13 + b"\x01"),
    (codecs.date_time(0), "2020-01-02 03:04:05", b"\x99\xa5D1\x05"),
    (codecs.date_time(3), "2020-01-02 03:04:05.678", b"\x99\xa5D1\x05\x1a|"),
    (codecs.date_time(6), "2020-01-02 03:04:05.678901", b"\x99\xa5D1\x05\n[\xf5"),
    (codecs.date_time(6), "1999-12-31 23:59:59.5", b"\x99c\xff~\xfb\x07\xa1 "),
    (codecs.timestamp(0), "2020-01-02 03:04:05", b"^\r]\xa5"), (codecs.timestamp(3), "2020-01-02 03:04:05.678", b"^\r]\xa5\x1a|"),
    (codecs.time(0), "03:04:05", b"\x801\x05"), (codecs.time(0), "-01:00:00", b"\x7f\xf0\0"),
    (codecs.time(0), "838:59:59", b"\xb4n\xfb"), (codecs.time(2), "03:04:05.25", b"\x801\x05\x19"),
    (codecs.time(2), "-00:00:00.25", b"\x7f\xff\xff\xe7"), (codecs.time(6), "-00:00:01.25", b"\x7f\xff\xfe\xfc/p"),
    (codecs.bits(1), "1", b"\x01"), (codecs.bits(2), "258", b"\x01\x02"),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "shown", "data"), STORED)
def test_storage_bytes(stored: Callable[[str], bytes], shown: str, data: bytes) -> None:
    assert stored(shown) == data


@pytest.mark.parametrize(
    ("precision", "scale", "width"), [(10, 2, 5), (20, 5, 10), (3, 0, 2), (65, 30, 30), (18, 9, 8)]
)
def test_width_of_a_decimal(precision: int, scale: int, width: int) -> None:
    assert codecs.decimal_width(precision, scale) == width == len(codecs.decimal(precision, scale)("1.5"))


def test_raw_bytes_of_a_client_stay_and_are_filled_up() -> None:
    codec = codecs.raw(codecs.date_time(0), 5)
    assert codec.to_sql(b"abcde") == b"abcde" == codec.from_sql(b"abcde")
    assert codec.from_sql(b"a") == b"a\0\0\0\0"


@pytest.mark.parametrize(
    ("number", "cell"),
    [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, b"09223372036854775808"), (2**64 - 1, b"18446744073709551615")],
)
def test_unsigned(number: int, cell: int | bytes) -> None:
    assert codecs.UNSIGNED.to_sql(number) == cell
    assert codecs.UNSIGNED.from_sql(cell) == number


def test_a_real_number_in_an_unsigned_column_ends_at_the_largest() -> None:
    assert codecs.UNSIGNED.from_sql(18446744073709551615.0) == 2**64 - 1


@pytest.mark.parametrize(("number", "year"), [(120, 2020), (0, 0), (255, 2155), (229, 2129)])
def test_year(number: int, year: int) -> None:  # [type-047] [type-137]
    assert codecs.YEAR.to_sql(number) == year
    assert codecs.YEAR.from_sql(year) == number


@pytest.mark.parametrize(
    ("number", "cell"), [(1, "x"), (3, "7"), (0, ""), (7, b"00000000000000000007"), (255, b"00000000000000000255")]
)
def test_enum(number: int, cell: str | bytes) -> None:  # [type-140]
    codec = codecs.enum(["x", "y", "7"])
    assert codec.to_sql(number) == cell
    assert codec.from_sql(cell) == number


def test_enum_reads_what_sqlite_made_a_number() -> None:
    assert codecs.enum(["x", "y", "7"]).from_sql(7) == 3
    assert codecs.enum(["x"]).from_sql("nobody") == 0


@pytest.mark.parametrize(("number", "cell"), [(1, "a"), (5, "a,c"), (0, ""), (9, b"00000000000000000009")])
def test_set(number: int, cell: str | bytes) -> None:  # [type-141]
    codec = codecs.bit_set(["a", "b", "c"])
    assert codec.to_sql(number) == cell
    assert codec.from_sql(cell) == number


@pytest.mark.parametrize(
    ("charset", "padding", "wire", "sql"),
    [
        ("utf8mb4", 6, "é    ", "é"), ("utf8mb4", 6, "ééé", "ééé"), ("utf8mb4", 2, "ééé", "ééé"),
        ("latin1", 4, b"\xe9\x80  ", "é€"), ("latin1", 0, b"\xe9 ", "é "), ("ascii", 0, b"a\xe9", "aé"),
        ("ucs2", 0, b"\0a\x65\xe5", "a日"), ("ucs2", 6, b"\0a\0 \0 ", "a"),
        ("ucs2", 0, b"abc", b"abc"), ("utf8mb4", 6, b"\xed\xa0\x80   ", b"\xed\xa0\x80"),
    ],
)  # fmt: skip
def test_text(charset: str, padding: int, wire: str | bytes, sql: str | bytes) -> None:
    codec = codecs.text(CHARSETS[charset], padding)
    assert codec is not None
    assert codec.to_sql(wire) == sql
    assert codec.from_sql(sql) == wire


def test_utf8_text_without_padding_is_as_it_is() -> None:
    assert codecs.text(CHARSETS["utf8mb4"], 0) is None


def test_binary_is_filled_up_with_nul() -> None:  # [type-107]
    codec = codecs.raw(str.encode, 4)
    assert codec.from_sql(b"ab") == b"ab\0\0" == codec.from_sql("ab")
    assert codec.to_sql(b"ab\0\0") == b"ab\0\0"


@pytest.mark.parametrize(
    ("codec", "cell", "shown"),
    [
        (codecs.raw(codecs.date_time(0), 5), "yesterday", b"yeste"), (codecs.raw(codecs.decimal(5, 2), 3), "much", b"muc"),
        (codecs.raw(codecs.bits(1), 1), 256, b"2"), (codecs.raw(codecs.floating("f"), 4), 1e300, b"1e+3"),
        (codecs.raw(codecs.time(0), 3), "x", b"x\0\0"), (codecs.raw(codecs.date_time(0), 5), "\udcff", b"?\0\0\0\0"),
        (codecs.enum(["a"]), b"\xff", 0), (codecs.bit_set(["a"]), b"", 0), (codecs.YEAR, "soon", 0),
    ],
)  # fmt: skip
def test_what_sqlite_let_sql_write_is_read_all_the_same(codec: ColumnCodec, cell: object, shown: object) -> None:
    assert codec.from_sql(cell) == shown
