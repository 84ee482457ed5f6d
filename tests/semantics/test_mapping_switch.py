"""`@@`, bind, delimiter and default mapping; ids in brackets name recordings of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from desk import Desk

from kvref import profiles
from kvref.semantics.keys import Switch, split_word
from kvref.semantics.rules import rules

Make = Callable[..., Desk]
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
ALL = ("kvref", "mysql-8.0", "mysql-5.6")
DEMO_K = b"VALUE k 8 4\r\ndemo\r\n"
END = b"END\r\n"


@pytest.mark.parametrize("profile", ALL)
def test_get_switches_echoes_and_sticks(desk: Make, profile: str) -> None:
    endpoint = desk(profile, *THREE)
    assert (
        endpoint.say(b"get @@m1.k\r\nget k\r\n") == b"VALUE @@m1.k 1 3\r\none\r\nEND\r\nVALUE k 1 3\r\none\r\nEND\r\n"
    )
    assert endpoint.say(b"get @@m2.missing\r\nget k\r\n") == END + b"VALUE k 2 3\r\ntwo\r\n" + END  # [map-002]
    assert endpoint.say(b"get @@nope.k\r\nget k\r\n") == END + b"VALUE k 2 3\r\ntwo\r\n" + END  # [map-014]
    assert endpoint.say(b"get k\r\n", "b") == DEMO_K + END  # another connection keeps the default mapping [map-064]


@pytest.mark.parametrize(
    ("profile", "named"), [("kvref", b"test/t1"), ("mysql-8.0", b"test/t1"), ("mysql-5.6", b"test/demo_test")]
)
def test_switch_word_names_a_table(desk: Make, profile: str, named: bytes) -> None:
    endpoint = desk(profile, *THREE)
    assert endpoint.say(b"get @@m1\r\n") == b"VALUE @@m1 0 %d\r\n%b\r\nEND\r\n" % (len(named), named)  # [map-001]
    assert endpoint.say(b"get k\r\n") == b"VALUE k 1 3\r\none\r\nEND\r\n"


@pytest.mark.parametrize("verb", ["set", "add", "replace", "append", "prepend"])
@pytest.mark.parametrize("profile", ALL)
def test_storage_verbs_switch(desk: Make, profile: str, verb: str) -> None:
    endpoint = desk(profile, *THREE)
    key = "new" if verb == "add" else "k"
    assert endpoint.say(f"{verb} @@m1.{key} 1 0 1\r\nx\r\n".encode()) == b"STORED\r\n"
    assert b"x" in endpoint.say(f"get {key}\r\n".encode())
    assert endpoint.say(f"{verb} @@nope.k 0 0 1\r\nx\r\n".encode()) == b"NOT_FOUND\r\n"  # [map-026]
    assert endpoint.say(f"{verb} @@m2 0 0 1\r\nx\r\n".encode()) == b"NOT_STORED\r\n"  # [map-024]
    assert endpoint.say(b"get k\r\n") == b"VALUE k 2 3\r\ntwo\r\nEND\r\n"


@pytest.mark.parametrize("profile", ["mysql-8.0", "mysql-5.6"])
def test_plugin_takes_the_whole_word_for_delete_and_incr(desk: Make, profile: str) -> None:
    endpoint = desk(profile, *THREE, "INSERT INTO demo_test VALUES ('@@m1.k', '5', 0, 0, 0)")
    assert (
        endpoint.say(b"incr @@m1.k 1\r\ndelete @@m1.k\r\nget k\r\n") == b"6\r\nDELETED\r\n" + DEMO_K + END
    )  # [map-041]


def test_kvref_switches_in_every_verb(desk: Make) -> None:
    endpoint = desk("kvref", *THREE, "INSERT INTO t1 VALUES ('n', '5', 0, 0, 0)")
    assert endpoint.say(b"incr @@m1.n 2\r\nbind aaa\r\ndelete @@m1.k\r\nget k n\r\n") == (
        b"7\r\nSUCCEED\r\nDELETED\r\nVALUE n 0 1\r\n7\r\nEND\r\n"
    )
    assert endpoint.say(b"delete @@nope.k\r\nincr @@nope.n 1\r\n") == b"NOT_FOUND\r\nNOT_FOUND\r\n"
    assert endpoint.say(b"set @@m2. 0 0 1\r\nx\r\n").startswith(b"CLIENT_ERROR no key behind the delimiter")


@pytest.mark.parametrize(
    ("words", "plugin_8_0", "each"),
    [
        (b"k @@m1.k k", b"VALUE k 8 4\r\ndemo\r\nVALUE @@m1.k 8 4\r\ndemo\r\n" + DEMO_K,
         DEMO_K + b"VALUE @@m1.k 1 3\r\none\r\nVALUE k 1 3\r\none\r\n"),
        (b"@@m1.k @@m2.k", b"VALUE @@m1.k 1 3\r\none\r\nVALUE @@m2.k 1 3\r\none\r\n",
         b"VALUE @@m1.k 1 3\r\none\r\nVALUE @@m2.k 2 3\r\ntwo\r\n"),
        (b"k @@nope.k", DEMO_K + b"VALUE @@nope.k 8 4\r\ndemo\r\n", DEMO_K),
        (b"zz @@m1.k", b"VALUE @@m1.k 8 4\r\ndemo\r\n", b"VALUE @@m1.k 1 3\r\none\r\n"),
        (b"@@nope.k @@m1.k", b"VALUE @@m1.k 1 3\r\none\r\n", b"VALUE @@m1.k 1 3\r\none\r\n"),
    ],
)  # fmt: skip
def test_words_in_one_get(desk: Make, words: bytes, plugin_8_0: bytes, each: bytes) -> None:
    # [mget-002..004, 010, 012, 016, 044]
    for profile, expected in (("mysql-8.0", plugin_8_0), ("mysql-5.6", each), ("kvref", each)):
        assert desk(profile, *THREE).say(b"get " + words + b"\r\n") == expected + END, profile


def test_a_get_of_8_0_without_an_answer_keeps_the_connection_from_switching(desk: Make) -> None:
    # A key was looked up, another word followed, nothing was found, and the last word was not looked up (live 8.0.33).
    for profile, sticks in (("mysql-8.0", True), ("mysql-5.6", False), ("kvref", False)):
        endpoint = desk(profile, *THREE)
        assert endpoint.say(b"get zz @@..\r\n") == END, profile
        assert endpoint.say(b"bind nope\r\n") == (b"SUCCEED\r\n" if sticks else b"NOT_FOUND\r\n"), profile
        assert endpoint.say(b"bind m1\r\n") == b"SUCCEED\r\n", profile
        row = b"VALUE @@m2.k 8 4\r\ndemo\r\n" if sticks else b"VALUE @@m2.k 2 3\r\ntwo\r\n"
        assert endpoint.say(b"get @@m2.k\r\n") == row + END, profile
        assert endpoint.say(b"bind m1\r\nget k\r\n") == b"SUCCEED\r\nVALUE k 1 3\r\none\r\n" + END, profile
    endpoint = desk("mysql-8.0", *THREE)
    assert endpoint.say(b"get zz k @@..\r\nbind nope\r\n") == DEMO_K + END + b"NOT_FOUND\r\n"  # an answer ends it
    assert endpoint.say(b"get zz yy\r\nbind nope\r\n") == END + b"NOT_FOUND\r\n"  # the last word was looked up


@pytest.mark.parametrize("profile", ALL)
def test_bind(desk: Make, profile: str) -> None:
    endpoint = desk(profile, *THREE)
    assert (
        endpoint.say(b"bind m1\r\nbind nope\r\nget k\r\n") == b"SUCCEED\r\nNOT_FOUND\r\nVALUE k 1 3\r\none\r\nEND\r\n"
    )
    assert endpoint.say(b"bind Q\r\nget k\r\n") == b"SUCCEED\r\nVALUE k 2 3\r\ntwo\r\nEND\r\n"  # [bind-008, bind-015]
    assert (
        endpoint.say(b"flush_all\r\nget k\r\nbind m1\r\nget k\r\n")
        == b"OK\r\nEND\r\nSUCCEED\r\nVALUE k 1 3\r\none\r\nEND\r\n"
    )


def test_one_letter_mapping(desk: Make) -> None:
    assert desk("mysql-8.0", *THREE).say(b"get @@q\r\nget k\r\n") == END + DEMO_K + END  # [map-010]
    assert desk("kvref", *THREE).say(b"get @@q\r\n") == b"VALUE @@q 0 7\r\ntest/t2\r\nEND\r\n"


def test_default_mapping_is_the_first_by_name_or_the_row_default(desk: Make) -> None:
    earlier = "INSERT INTO containers VALUES ('a', 'test', 't1', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')"
    named = "INSERT INTO containers VALUES ('default', 'test', 't2', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')"
    assert b"one" in desk("kvref", *THREE, earlier).say(b"get k\r\n")  # [default-002]
    assert b"two" in desk("kvref", *THREE, earlier, named).say(b"get k\r\n")  # [default-009]
    underscore = earlier.replace("'a'", "'_a'")
    assert b"one" in desk("mysql-8.0", *THREE, underscore).say(b"get k\r\n")  # [default-005]
    capital = "UPDATE containers SET name = 'AAA' WHERE name = 'aaa'"
    assert b"demo" in desk("mysql-5.6", *THREE, capital, underscore).say(b"get k\r\n")


def test_rows_are_read_at_first_use_and_kept(desk: Make) -> None:
    endpoint = desk("kvref", *THREE)
    insert = "INSERT INTO containers VALUES ('late', 'test', 't1', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')"
    assert endpoint.say(b"bind late\r\n") == b"NOT_FOUND\r\n"
    endpoint.sql.execute(insert)
    assert endpoint.say(b"bind LATE\r\n") == b"SUCCEED\r\n"  # [runtime-001, runtime-035]
    endpoint.sql.execute("DELETE FROM containers WHERE name = 'late'")
    assert endpoint.say(b"bind late\r\n", "b") == b"SUCCEED\r\n"  # [runtime-006]
    endpoint.shared.directory.replace(endpoint.store.read_directory())
    assert endpoint.say(b"get k\r\n") == b"SERVER_ERROR mapping late is no longer in containers: bind another\r\n"
    assert endpoint.say(b"bind m2\r\nget k\r\n") == b"SUCCEED\r\nVALUE k 2 3\r\ntwo\r\nEND\r\n"


PLUGIN, KVREF = rules(profiles.load("mysql-8.0")), rules(profiles.load("kvref"))


@pytest.mark.parametrize(
    ("word", "delimiter", "name", "key"),
    [
        (b"@@m1.k", b".", b"m1", b"k"), (b"@@m1", b".", b"m1", b""), (b"@@m1.", b".", b"m1", b""),
        (b"@@m1.a.b", b".", b"m1", b"a.b"), (b"@@m1..k", b".", b"m1", b".k"), (b"@@.m1.k", b".", b"m1", b".k"),
        (b"@@..m1.k", b".", b"m1", b"1.k"), (b"@@...m2", b".", b"m2", b"m2"), (b"@@..k", b".", b"k", b"k"), (b"@@@m1.k", b".", b"@m1", b"k"),
        (b"@@m1->k", b"->", b"m1", b"k"), (b"@@m1-k", b"->", b"m1", b""), (b"@@m1aXk", b"ab", b"m1", b"k"),
        (b"@@m2:xxk", b":\0.", b"m2", b"k"), (b"@@m1@k", b"@", b"m1", b"k"),
    ],
)  # fmt: skip
def test_plugin_delimiter_is_a_set_of_bytes(word: bytes, delimiter: bytes, name: bytes, key: bytes) -> None:
    # [map-018, map-019, delim-008, 012, 015, 028]
    split = split_word(word, delimiter, PLUGIN)
    assert split is not None
    assert (split.name, split.key) == (name, key)


@pytest.mark.parametrize(
    ("word", "delimiter", "switch"),
    [
        (b"@@m1->k", b"->", Switch(b"m1", b"k", delimited=True)), (b"@@m1-k", b"->", Switch(b"m1-k", b"", delimited=False)),
        (b"@@.m1.k", b".", Switch(b"", b"m1.k", delimited=True)), (b"@@q", b".", Switch(b"q", b"", delimited=False)),
        (b"@@", b".", None), (b"@m1.k", b".", None), (b"k", b".", None),
    ],
)  # fmt: skip
def test_kvref_delimiter_is_a_string(word: bytes, delimiter: bytes, switch: Switch | None) -> None:
    assert split_word(word, delimiter, KVREF) == switch
