"""`@@`, bind, delimiter and default mapping; ids in brackets name recordings of the plugin."""

from __future__ import annotations

from collections.abc import Callable

from helpers.harness import Harness

Make = Callable[..., Harness]
THREE = (
    "CREATE TABLE t1 (c1 VARCHAR(32) COLLATE NOCASE PRIMARY KEY, c2 VARCHAR(1024), c3 INT, c4 BIGINT UNSIGNED, c5 INT)",
    "CREATE TABLE t2 (c1 VARCHAR(32) COLLATE NOCASE PRIMARY KEY, c2 VARCHAR(1024), c3 INT, c4 BIGINT UNSIGNED, c5 INT)",
    "INSERT INTO t1 VALUES ('k', 'one', 1, 0, 0)",
    "INSERT INTO t2 VALUES ('k', 'two', 2, 0, 0)",
    "INSERT INTO demo_test VALUES ('k', 'demo', 8, 0, 0)",
    "INSERT INTO containers VALUES ('m1', 'test', 't1', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')",
    "INSERT INTO containers VALUES ('m2', 'test', 't2', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')",
    "INSERT INTO containers VALUES ('q', 'test', 't2', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')",
)
DEMO_K = b"VALUE k 8 4\r\ndemo\r\n"
END = b"END\r\n"


def test_kvref_switches_in_every_verb(harness: Make) -> None:
    endpoint = harness("kvref", *THREE, "INSERT INTO t1 VALUES ('n', '5', 0, 0, 0)")
    assert endpoint.say(b"incr @@m1.n 2\r\nbind aaa\r\ndelete @@m1.k\r\nget k n\r\n") == (
        b"7\r\nSUCCEED\r\nDELETED\r\nVALUE n 0 1\r\n7\r\nEND\r\n"
    )
    assert endpoint.say(b"delete @@nope.k\r\nincr @@nope.n 1\r\n") == b"NOT_FOUND\r\nNOT_FOUND\r\n"
    assert endpoint.say(b"set @@m2. 0 0 1\r\nx\r\n").startswith(b"CLIENT_ERROR no key behind the delimiter")


def test_a_get_of_8_0_without_an_answer_keeps_the_connection_from_switching(harness: Make) -> None:
    # A key was looked up, another word followed, nothing was found, and the last word was not looked up (live 8.0.33).
    for profile, sticks in (("mysql-8.0", True), ("mysql-5.6", False), ("kvref", False)):
        endpoint = harness(profile, *THREE)
        assert endpoint.say(b"get zz @@..\r\n") == END, profile
        assert endpoint.say(b"bind nope\r\n") == (b"SUCCEED\r\n" if sticks else b"NOT_FOUND\r\n"), profile
        assert endpoint.say(b"bind m1\r\n") == b"SUCCEED\r\n", profile
        row = b"VALUE @@m2.k 8 4\r\ndemo\r\n" if sticks else b"VALUE @@m2.k 2 3\r\ntwo\r\n"
        assert endpoint.say(b"get @@m2.k\r\n") == row + END, profile
        assert endpoint.say(b"bind m1\r\nget k\r\n") == b"SUCCEED\r\nVALUE k 1 3\r\none\r\n" + END, profile
    endpoint = harness("mysql-8.0", *THREE)
    assert endpoint.say(b"get zz k @@..\r\nbind nope\r\n") == DEMO_K + END + b"NOT_FOUND\r\n"  # an answer ends it
    assert endpoint.say(b"get zz yy\r\nbind nope\r\n") == END + b"NOT_FOUND\r\n"  # the last word was looked up


def test_rows_are_read_at_first_use_and_kept(harness: Make) -> None:
    endpoint = harness("kvref", *THREE)
    insert = "INSERT INTO containers VALUES ('late', 'test', 't1', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')"
    assert endpoint.say(b"bind late\r\n") == b"NOT_FOUND\r\n"
    endpoint.sql.execute(insert)
    assert endpoint.say(b"bind LATE\r\n") == b"SUCCEED\r\n"  # [runtime-001, runtime-035]
    endpoint.sql.execute("DELETE FROM containers WHERE name = 'late'")
    assert endpoint.say(b"bind late\r\n", "b") == b"SUCCEED\r\n"  # [runtime-006]
    endpoint.shared.directory.replace(endpoint.store.read_directory())
    assert endpoint.say(b"get k\r\n") == b"SERVER_ERROR mapping late is no longer in containers: bind another\r\n"
    assert endpoint.say(b"bind m2\r\nget k\r\n") == b"SUCCEED\r\nVALUE k 2 3\r\ntwo\r\nEND\r\n"
