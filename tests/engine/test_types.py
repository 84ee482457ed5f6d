"""What a column's declared type and collation make of keys and values, on the wire and in SQL."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]

STORED = b"STORED\r\n"
END = b"END\r\n"
PLUGINS = ("mysql-8.0", "mysql-5.6")
ALL = ("kvref", *PLUGINS)


def table(harness: Make, profile: str, key: str, value: str, *rows: str, flags: str = "INT") -> Harness:
    """Map a table t of one key and one value column, whose rows are `rows`, as default mapping."""
    return harness(
        profile,
        f"CREATE TABLE t (k {key} NOT NULL PRIMARY KEY, v {value}, f {flags}, c BIGINT UNSIGNED, e INT)",
        *(f"INSERT INTO t VALUES ({row})" for row in rows),
        "DELETE FROM containers",
        "INSERT INTO containers VALUES ('default', 'test', 't', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
    )


def put(endpoint: Harness, key: str | bytes, data: bytes, verb: str = "set") -> bytes:
    word = key.encode() if isinstance(key, str) else key
    return endpoint.say(b"%b %b 0 0 %d\r\n%b\r\n" % (verb.encode(), word, len(data), data))


def value(endpoint: Harness, key: str | bytes) -> bytes | None:
    """Return the data of one get, None for a miss."""
    word = key.encode() if isinstance(key, str) else key
    reply = endpoint.say(b"get %b\r\n" % word)
    if reply == END:
        return None
    head, _, rest = reply.partition(b"\r\n")
    length = int(head.split()[3])
    assert rest[length:] == b"\r\nEND\r\n", reply
    return rest[:length]


@pytest.mark.parametrize(
    ("collation", "found", "missed"),
    [
        ("utf8mb4_swedish_ci", "É e", "f"), ("NOCASE", "é", "É e"), ("BINARY", "é", "É"),
    ],
)  # fmt: skip
def test_the_collation_of_the_key_decides(harness: Make, collation: str, found: str, missed: str) -> None:
    endpoint = table(harness, "mysql-8.0", f"VARCHAR(9) COLLATE {collation}", "TEXT", "'é', 'x', 0, 0, 0")
    assert [value(endpoint, key) for key in found.split()] == [b"x"] * len(found.split())
    assert [value(endpoint, key) for key in missed.split()] == [None] * len(missed.split())
    assert put(endpoint, found.split(maxsplit=1)[0], b"y", "add") == b"NOT_STORED\r\n"


def test_kvref_refuses_what_the_character_set_cannot_hold(harness: Make) -> None:
    endpoint = table(harness, "kvref", "VARCHAR(8) COLLATE utf8_general_ci", "VARCHAR(8) COLLATE ascii_bin")
    assert put(endpoint, "a😀", b"x") == b"SERVER_ERROR column k holds utf8 text, byte 1 of the data is none\r\n"
    assert put(endpoint, "a", b"x\xe9") == b"SERVER_ERROR column v holds ascii text, byte 1 of the data is none\r\n"
    assert value(endpoint, "a😀") is None


def test_ascii_columns_keep_every_byte_in_the_plugin(harness: Make) -> None:
    endpoint = table(harness, "mysql-8.0", "VARCHAR(9) COLLATE ascii_general_ci", "VARCHAR(9) COLLATE ascii_bin")
    assert put(endpoint, b"\xe9", b"\xff") == STORED
    assert value(endpoint, b"\xe9") == b"\xff"
    assert value(endpoint, b"\xc9") is None


@pytest.mark.parametrize("profile", ALL)
def test_unsigned_numbers_beyond_63_bits(harness: Make, profile: str) -> None:
    large = "CAST('18446744073709551614' AS BLOB)"
    endpoint = table(
        harness, profile, "BIGINT UNSIGNED", "BIGINT UNSIGNED", f"{large}, {large}, 5, {large}, 0", "7, 3, 0, 0, 0"
    )
    assert value(endpoint, "7") == b"3"
    assert put(endpoint, "7", b"9223372036854775808") == STORED
    assert value(endpoint, "7") == b"9223372036854775808"  # [type-112]
    assert endpoint.rows("SELECT k, CAST(v AS TEXT) FROM t ORDER BY k") == [
        (7, "09223372036854775808"), (b"18446744073709551614", "18446744073709551614"),
    ]  # fmt: skip
    last = b"18446744073709551614"
    if profile == "mysql-5.6":
        assert value(endpoint, last) is None  # counts as 2^63-1 there [type-050]
        assert value(endpoint, "-2") == last
        return
    assert endpoint.say(b"gets %b\r\n" % last) == b"VALUE %b 5 20 %b\r\n%b\r\nEND\r\n" % (last, last, last)
    assert endpoint.say(b"cas %b 0 0 1 %b\r\n1\r\n" % (last, last)) == STORED
    assert value(endpoint, last) == b"1"
    assert endpoint.say(b"delete %b\r\n" % last) == b"DELETED\r\n"


def test_storage_bytes_in_the_plugin(harness: Make) -> None:
    endpoint = table(harness, "mysql-8.0", "VARCHAR(9)", "FLOAT", "'a', 1.5, 3, 0, 0", "'n', NULL, 3, 0, 0")
    assert value(endpoint, "a") == b"\0\0\xc0?"  # [type-130]
    assert value(endpoint, "n") == b""
    assert put(endpoint, "a", b"7") == b"NOT_STORED\r\n"
    assert put(endpoint, "a", b"abcd") == STORED  # just its four bytes, seen on both versions
    assert value(endpoint, "a") == b"abcd"
    assert endpoint.say(b"incr a 1\r\n") == b"SERVER_ERROR failed to store item\r\n"


@pytest.mark.parametrize("profile", PLUGINS)
def test_short_content_of_a_fixed_column_lets_the_others_slip(harness: Make, profile: str) -> None:
    endpoint = table(harness, profile, "VARCHAR(9)", "BINARY(6)")
    for data, flags, shown in ((b"", 2147483648, b"\x80\0\0\x04\0\0"), (b"999999", 4, b"999999")):
        assert endpoint.say(b"set k 4 0 %d\r\n%b\r\n" % (len(data), data)) == STORED
        assert endpoint.say(b"get k\r\n") == b"VALUE k %d 6\r\n%b\r\nEND\r\n" % (flags, shown)
    assert endpoint.say(b"set k 0 0 6\r\n7abcde\r\nincr k 1\r\n") == b"STORED\r\n8\r\n"
    assert value(endpoint, "k") == b"8\x80\0\0\0\0"


def test_mediumint_reads_as_zero_in_the_plugin(harness: Make) -> None:
    plugin = table(harness, "mysql-8.0", "VARCHAR(9)", "MEDIUMINT", "'a', 41, 3, 0, 0")
    assert value(plugin, "a") == b"0"  # [type-116]
    endpoint = table(harness, "kvref", "VARCHAR(9)", "MEDIUMINT", "'a', 41, 3, 0, 0")
    assert value(endpoint, "a") == b"41"
    assert (
        put(endpoint, "a", b"8388608")
        == b"CLIENT_ERROR value '8388608' is not a number from -8388608 to 8388607 for column v\r\n"
    )


@pytest.mark.parametrize("profile", PLUGINS)
def test_names_of_containers_compare_by_their_column(harness: Make, profile: str) -> None:
    endpoint = harness(
        profile,
        "INSERT INTO containers VALUES ('Straße ', 'test', 'demo_test', 'c1', 'c2', '0', '0', '0', 'PRIMARY')",
    )
    # 5.6: latin1_swedish_ci, padded; 8.0: utf8mb4_0900_ai_ci, not padded [name-005]
    found = {name: endpoint.say(b"bind %b\r\n" % name) for name in (b"stra\xdfe", b"STRASSE", b"aaa", b"aaa\xff")}
    padded = profile == "mysql-5.6"
    assert found == {
        b"stra\xdfe": b"SUCCEED\r\n" if padded else b"NOT_FOUND\r\n",
        b"STRASSE": b"NOT_FOUND\r\n",
        b"aaa": b"SUCCEED\r\n",
        b"aaa\xff": b"NOT_FOUND\r\n" if padded else b"SUCCEED\r\n",
    }
