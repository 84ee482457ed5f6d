"""Storage verbs, numbers, times and columns; ids in brackets name recordings of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

from kvref.engine.dispatch import execute
from kvref.engine.operations import LockWaitError, Lookup
from kvref.protocol import commands as c
from kvref.protocol.replies import Items, ServerError

Make = Callable[..., Harness]


BY_NUMBER = (
    "CREATE TABLE by_number (k INT PRIMARY KEY, v VARCHAR(40), f INT, c BIGINT UNSIGNED, e INT)",
    "INSERT INTO containers VALUES ('by_number', 'test', 'by_number', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
)


def store(verb: str, key: str, value: bytes, flags: int = 0, exptime: int = 0, cas: str = "") -> bytes:
    return f"{verb} {key} {flags} {exptime} {len(value)}{cas}\r\n".encode() + value + b"\r\n"


def test_cas_numbers_of_kvref_never_come_back(harness: Make) -> None:
    first = harness("kvref")
    first.say(store("set", "n", b"1"))
    before = int(first.say(b"gets n\r\n").split()[4])
    again = next(first.store.cas_numbers())
    assert again > before


@pytest.mark.parametrize(
    ("value", "delta", "verb", "plugin", "kvref"),
    [
        (b"10", "5", "incr", b"15", b"15"), (b"007", "1", "incr", b"8", b"8"), (b"5", "9", "decr", b"0", b"0"),
        (b"18446744073709551615", "3", "incr", b"2", b"2"),
        # The plugin's delta is an int: seen on both versions, also incr 0 by 2^31.
        (b"0", "2147483648", "incr", b"18446744071562067968", b"2147483648"), (b"3", "18446744073709551615", "decr", b"4", b"0"),
        (b"4294967299", "5", "decr", b"0", b"4294967294"), (b"4294967296", "4294967296", "decr", b"4294967296", b"0"),
        (b"12ab", "1", "incr", b"13", b"CLIENT_ERROR"), (b"", "1", "incr", b"1", b"CLIENT_ERROR"), (b"-5", "1", "incr", b"18446744073709551612", b"CLIENT_ERROR"),
        (b"18446744073709551616", "1", "incr", b"0", b"CLIENT_ERROR"), (b"9" * 126, "0", "incr", b"18446744073709551615", b"CLIENT_ERROR"),
        (b"1" + b" " * 126, "1", "incr", b"CLIENT_ERROR", b"2"),
    ],
)  # fmt: skip
def test_arithmetic(harness: Make, value: bytes, delta: str, verb: str, plugin: bytes, kvref: bytes) -> None:
    for profile, expected in (("mysql-8.0", plugin), ("kvref", kvref)):
        endpoint = harness(profile)
        endpoint.say(store("set", "n", value, flags=3))
        refused = expected == b"CLIENT_ERROR"
        reply = b"CLIENT_ERROR cannot increment or decrement non-numeric value" if refused else expected
        stored = value if refused else expected
        assert endpoint.say(f"{verb} n {delta}\r\n".encode()) == reply + b"\r\n", profile
        assert endpoint.say(b"get n\r\n") == b"VALUE n 3 %d\r\n%b\r\nEND\r\n" % (len(stored), stored), profile


def test_what_the_plugin_cuts_kvref_refuses(harness: Make) -> None:
    long_key, long_value = "k" * 33, b"v" * 1025
    plugin, endpoint = harness("mysql-8.0"), harness("kvref")
    assert plugin.say(store("set", long_key, long_value)) == b"STORED\r\n"  # [limit-003]
    assert plugin.rows("SELECT length(c1), length(c2) FROM demo_test WHERE c1 LIKE 'k%'") == [(32, 1024)]
    assert endpoint.say(store("set", long_key, b"x")) == b"CLIENT_ERROR key too long for column c1 (32)\r\n"
    assert endpoint.say(store("set", "k", b"old") + store("set", "k", long_value)) == (
        b"STORED\r\nSERVER_ERROR object too large for cache: column c2 takes 1024 characters\r\n"
    )
    assert endpoint.say(b"get k " + long_key.encode() + b"\r\ndelete " + long_key.encode() + b"\r\n") == (
        b"END\r\nNOT_FOUND\r\n"
    )


COLUMNS = (
    "CREATE TABLE many (k VARCHAR(32) PRIMARY KEY, a VARCHAR(10), b VARCHAR(10), n INT, extra TEXT DEFAULT 'x')",
    "INSERT INTO many VALUES ('r', 'one', NULL, 3, 'mine')",
    "INSERT INTO containers VALUES ('many', 'test', 'many', 'k', 'a,b,n', '0', '0', '0', 'PRIMARY')",
)


@pytest.mark.parametrize(
    ("value", "plugin", "kvref"),
    [
        (b"1|2|3", ("1", "2", 3), ("1", "2", 3)), (b"1|2", ("1", "2", None), ("1", "2", None)),
        (b"1||3", ("1", "3", None), ("1", "", 3)), (b"|2|3", (None, "2", 3), ("", "2", 3)), (b"", (None, None, None), ("", None, None)),
        (b"1|2|3|4", ("1", "2", 3), None), (b"1|2|x", ("1", "2", None), None), (b"1|2|3000000000", ("1", "2", -1294967296), None),
    ],
)  # fmt: skip
def test_several_value_columns(
    harness: Make, value: bytes, plugin: tuple[object, ...], kvref: tuple[object, ...] | None
) -> None:
    for profile, expected in (("mysql-8.0", plugin), ("kvref", kvref)):
        endpoint = harness(profile, *COLUMNS)
        reply = endpoint.say(b"bind many\r\n" + store("set", "new", value)).removeprefix(b"SUCCEED\r\n")
        assert reply == b"STORED\r\n" if expected else reply.startswith(b"CLIENT_ERROR "), (profile, reply)
        assert endpoint.rows("SELECT a, b, n FROM many WHERE k = 'new'") == ([expected] if expected else []), profile


def test_integer_key(harness: Make) -> None:
    table = (
        "CREATE TABLE ints (k INT PRIMARY KEY, v VARCHAR(10))", "INSERT INTO ints VALUES (5, 'five')",
        "INSERT INTO containers VALUES ('ints', 'test', 'ints', 'k', 'v', '0', '0', '0', 'PRIMARY')",
    )  # fmt: skip
    plugin, endpoint = harness("mysql-8.0", *table), harness("kvref", *table)
    assert plugin.say(b"bind ints\r\nget 5abc abc 4294967301\r\n") == (
        b"SUCCEED\r\nVALUE 5abc 0 4\r\nfive\r\nVALUE 4294967301 0 4\r\nfive\r\nEND\r\n"  # [type-030, type-051]
    )
    assert plugin.say(store("set", "abc", b"x")) == b"NOT_STORED\r\n"
    # Seen on 8.0.33: incr notices a key that is not a number, delete does not.
    assert plugin.say(b"incr abc 1\r\ndelete abc\r\n") == b"SERVER_ERROR failed to store item\r\nNOT_FOUND\r\n"
    assert endpoint.say(b"bind ints\r\nget 5 5abc 4294967301\r\n") == b"SUCCEED\r\nVALUE 5 0 4\r\nfive\r\nEND\r\n"
    assert endpoint.say(store("set", "abc", b"x")).startswith(
        b"CLIENT_ERROR key 'abc' is not a number from -2147483648"
    )


@pytest.mark.parametrize("profile", ["mysql-8.0", "mysql-5.6"])
@pytest.mark.parametrize("verb", ["set", "add", "replace", "append", "prepend", "cas", "delete"])
def test_a_key_that_is_no_number_discards_the_batch(harness: Make, profile: str, verb: str) -> None:
    d = harness(profile, *BY_NUMBER)
    d.batch(4, 1000)
    assert d.say(store("set", "@@by_number.1", b"x")) == b"STORED\r\n"
    d.say(b"delete abc\r\n" if verb == "delete" else store(verb, "abc", b"y", cas=" 5" if verb == "cas" else ""))
    assert d.say(b"get 1\r\n") == b"END\r\n"
    assert [d.say(store("set", str(n), b"x")) for n in range(2, 5)] == [b"STORED\r\n"] * 3
    assert d.sql.execute("SELECT COUNT(*) FROM by_number").fetchone() == (0,)
    assert d.say(store("set", "5", b"x")) == b"STORED\r\n"
    assert d.sql.execute("SELECT COUNT(*) FROM by_number").fetchone() == (4,)


def test_a_key_that_is_refused_leaves_the_batch(harness: Make) -> None:
    d = harness("kvref", *BY_NUMBER)
    d.batch(4, 1000)
    assert d.say(store("set", "@@by_number.1", b"x")) == b"STORED\r\n"
    assert d.say(store("set", "abc", b"y")).startswith(b"CLIENT_ERROR key 'abc' is not a number")
    assert [d.say(store("set", str(n), b"x")) for n in range(2, 5)] == [b"STORED\r\n"] * 3
    assert d.sql.execute("SELECT COUNT(*) FROM by_number").fetchone() == (4,)


TWO_VIEWS = (
    "CREATE TABLE two (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9), w CHAR(6), f INT, c BIGINT UNSIGNED, e INT)",
    "INSERT INTO two VALUES ('old', 'v', 'w', 3, 0, 0)",
    "INSERT INTO containers VALUES ('one_value', 'test', 'two', 'k', 'v', 'f', 'c', 'e', 'PRIMARY')",
    "INSERT INTO containers VALUES ('both', 'test', 'two', 'k', 'v,w', '0', '0', '0', 'PRIMARY')",
    "INSERT INTO containers VALUES ('number', 'test', 'two', 'k', 'f', '0', '0', '0', 'PRIMARY')",
)


@pytest.mark.parametrize(("profile", "kept"), [("mysql-8.0", b""), ("mysql-5.6", b""), ("kvref", b"w")])
def test_a_pending_row_is_shown_by_the_columns_of_the_mapping_that_reads(
    harness: Make, profile: str, kept: bytes
) -> None:
    d = harness(profile, *TWO_VIEWS)
    d.batch(4, 1000)
    assert d.say(b"bind one_value\r\n" + store("set", "old", b"n", flags=7)) == b"SUCCEED\r\nSTORED\r\n"
    assert d.say(b"bind number\r\nget old\r\n", "b") == b"SUCCEED\r\nVALUE old 0 1\r\n7\r\nEND\r\n"
    value = b"n|" + kept
    assert d.say(b"bind both\r\nget old\r\n", "b") == (
        b"SUCCEED\r\nVALUE old 0 %d\r\n%b\r\nEND\r\n" % (len(value), value)
    )


def test_rows_that_sql_wrote_as_blobs_or_malformed_text(harness: Make) -> None:
    endpoint = harness("kvref")
    endpoint.sql.execute("INSERT INTO demo_test (c1, c2) VALUES (?, ?)", (b"blob", b"bytes"))
    endpoint.sql.execute("INSERT INTO demo_test (c1, c2) VALUES ('bad', CAST(x'61ff' AS TEXT))")
    assert endpoint.say(b"get blob bad AA\r\n") == (
        b"VALUE blob 0 5\r\nbytes\r\nVALUE bad 0 2\r\na\xff\r\nVALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
    )
    assert endpoint.say(store("set", "blob", b"new") + b"delete bad\r\n") == b"STORED\r\nDELETED\r\n"
    assert endpoint.rows("SELECT c1, c2 FROM demo_test WHERE c1 <> 'AA'") == [(b"blob", "new")]


def test_append_in_kvref_heeds_the_largest_value_and_not_its_own_flags_and_time(harness: Make) -> None:
    table = (
        "CREATE TABLE big (k VARCHAR(9) PRIMARY KEY, v LONGTEXT, f TINYINT, e SMALLINT)",
        "INSERT INTO big VALUES ('k', 'v', 1, 0)",
        "INSERT INTO containers VALUES ('default', 'test', 'big', 'k', 'v', 'f', '0', 'e', 'PRIMARY')",
    )
    endpoint = harness("kvref", *table)
    assert endpoint.say(store("append", "k", b"w", flags=300, exptime=1000)) == b"STORED\r\n"
    assert endpoint.rows("SELECT v, f, e FROM big") == [("vw", 1, 0)]
    half = b"x" * 700_000
    for verb in ("append", "prepend"):
        assert endpoint.say(store("set", "k", half) + store(verb, "k", half)) == (
            b"STORED\r\nSERVER_ERROR object too large for cache\r\n"
        )
    assert endpoint.rows("SELECT length(v) FROM big") == [(700_000,)]
    plugin = harness("mysql-8.0", *table)
    assert plugin.say(store("set", "k", half) + store("append", "k", half)) == b"STORED\r\n" * 2


COMPOSITE = (
    "DELETE FROM containers",
    "CREATE TABLE pair (k VARCHAR(9), f INT NOT NULL, v VARCHAR(9), PRIMARY KEY (k, f))",
    "INSERT INTO pair VALUES ('k', 0, 'one')",
    "INSERT INTO containers VALUES ('aaa', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')",
    "INSERT INTO containers VALUES ('pair', 'test', 'pair', 'k', 'v', 'f', '0', '0', 'PRIMARY')",
)


def test_5_6_finds_nothing_under_a_composite_primary_key(harness: Make) -> None:
    for profile in ("mysql-8.0", "kvref"):
        assert harness(profile, *COMPOSITE).say(b"bind pair\r\n") == b"NOT_FOUND\r\n", profile  # [idx-009]
    endpoint = harness("mysql-5.6", *COMPOSITE)
    assert endpoint.say(b"bind pair\r\nget k\r\n") == b"SUCCEED\r\nEND\r\n"
    assert endpoint.say(store("set", "k", b"1")) == b"NOT_STORED\r\n"
    assert endpoint.say(store("set", "k", b"1", flags=7) + store("add", "new", b"1")) == b"STORED\r\n" * 2
    assert endpoint.say(store("replace", "k", b"1") + store("append", "k", b"1")) == b"NOT_STORED\r\n" * 2
    assert endpoint.say(store("cas", "k", b"1", cas=" 0") + b"delete k\r\n") == b"NOT_FOUND\r\n" * 2
    assert endpoint.rows("SELECT k, f FROM pair ORDER BY k, f") == [("k", 0), ("k", 7), ("new", 0)]
    assert endpoint.say(b"flush_all\r\n") == b"OK\r\n"


@pytest.mark.parametrize(("profile", "lookups"), [("mysql-8.0", 2), ("mysql-5.6", 2), ("kvref", 1)])
def test_the_plugin_passes_over_a_key_of_a_get_whose_row_stays_locked(
    harness: Make, profile: str, lookups: int
) -> None:
    endpoint = harness(profile)
    endpoint.say(b"get none\r\n")
    session = endpoint.session("a")
    steps = execute(session, c.Get([b"a", b"b"], with_cas=False), endpoint.now)
    found = 0
    operation = next(steps)
    with pytest.raises(StopIteration) as ended:
        while True:
            found += isinstance(operation, Lookup)
            locked = isinstance(operation, Lookup) and found == 1
            operation = steps.throw(LockWaitError()) if locked else steps.send(None)
    assert found == lookups
    if profile == "kvref":
        assert isinstance(ended.value.value, ServerError)
    else:
        assert ended.value.value == Items([], with_cas=False)  # [more:lockedget-001]
    assert not session.switch_disabled
