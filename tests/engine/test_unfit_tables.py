"""Tables dropped or changed while they are mapped; ids in brackets name recordings of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
PLUGINS = ("mysql-8.0", "mysql-5.6")
OTHER = (
    "CREATE TABLE t1 (k VARCHAR(9) PRIMARY KEY, v VARCHAR(9))",
    "INSERT INTO t1 VALUES ('AA', 'other')",
    "INSERT INTO containers VALUES ('m1', 'test', 't1', 'k', 'v', '0', '0', '0', 'PRIMARY')",
)
UNFIT = (
    ("DROP TABLE demo_test",),
    ("ALTER TABLE demo_test RENAME TO away",),
    ("ALTER TABLE demo_test DROP COLUMN c2",),
    ("ALTER TABLE demo_test RENAME COLUMN c2 TO v",),
    ("ALTER TABLE demo_test DROP COLUMN c3",),
    ("ALTER TABLE demo_test RENAME COLUMN c5 TO e", "ALTER TABLE demo_test ADD COLUMN c5 VARCHAR(9)"),
)
STORES = [
    f"{verb} AA 0 0 1{' 0' * (verb == 'cas')}\r\nx" for verb in ("set", "add", "replace", "append", "prepend", "cas")
]


def answers(harness: Harness, commands: list[str], connection: str = "a") -> list[str]:
    return [harness.say(command.encode() + b"\r\n", connection).decode() for command in commands]


@pytest.mark.parametrize("change", UNFIT)
@pytest.mark.parametrize("profile", PLUGINS)
def test_the_plugin_answers_as_if_rows_were_missing(harness: Make, profile: str, change: tuple[str, ...]) -> None:
    endpoint = harness(profile, *OTHER)
    endpoint.say(b"get AA\r\n")
    for statement in change:
        endpoint.sql.execute(statement)
    # [runtime-016, runtime-017, side-011, side-015, side-028, gone-002]
    assert answers(endpoint, ["get AA", "gets AA zz"]) == ["END\r\n"] * 2
    assert answers(endpoint, STORES) == ["NOT_STORED\r\n"] * 6
    assert answers(endpoint, ["delete AA", "delete zz"]) == ["SERVER_ERROR temporary failure\r\n"] * 2
    assert answers(endpoint, ["incr AA 1", "decr zz 1"]) == ["SERVER_ERROR failed to store item\r\n"] * 2
    flushed = "SERVER_ERROR failed to flush cache\r\n" if profile == "mysql-8.0" else "OK\r\n"
    assert answers(endpoint, ["flush_all"]) == [flushed]
    # A word that finds no table is not looked up: the next one switches, in 8.0 too.
    assert answers(endpoint, ["get AA @@m1.AA"]) == ["VALUE @@m1.AA 0 5\r\nother\r\nEND\r\n"]


@pytest.mark.parametrize("change", UNFIT)
def test_kvref_names_the_cause(harness: Make, change: tuple[str, ...]) -> None:
    endpoint = harness("kvref", *OTHER)
    for statement in change:
        endpoint.sql.execute(statement)
    for answer in answers(endpoint, ["get AA", *STORES, "delete AA", "incr AA 1", "flush_all"]):
        assert answer.startswith("SERVER_ERROR container 'aaa': "), answer
    assert answers(endpoint, ["bind m1", "get AA"]) == ["SUCCEED\r\n", "VALUE AA 0 5\r\nother\r\nEND\r\n"]


@pytest.mark.parametrize("profile", ["kvref", *PLUGINS])
def test_a_table_that_comes_back_works_again(harness: Make, profile: str) -> None:
    endpoint = harness(profile)
    endpoint.sql.execute("ALTER TABLE demo_test RENAME TO away")
    endpoint.say(b"get AA\r\n")
    endpoint.sql.execute("ALTER TABLE away RENAME TO demo_test")
    assert endpoint.say(b"get AA\r\n") == b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"  # [side-019]
    endpoint.sql.execute("DROP TABLE demo_test")
    endpoint.sql.execute("CREATE TABLE demo_test (c5 INT, c4 BIGINT, c3 INT, c2 TEXT, c1 VARCHAR(9) PRIMARY KEY)")
    endpoint.sql.execute("INSERT INTO demo_test VALUES (0, 3, 7, 'new', 'AA')")
    assert endpoint.say(b"gets AA\r\n") == b"VALUE AA 7 3 3\r\nnew\r\nEND\r\n"  # [side-038]


def test_the_first_storage_command_of_a_connection_opens_the_default_table_in_8_0(harness: Make) -> None:
    lost = b"SERVER_ERROR out of memory storing object\r\n"
    for profile, first in (("mysql-8.0", lost), ("mysql-5.6", b"STORED\r\n")):
        endpoint = harness(profile, *OTHER)
        endpoint.sql.execute("DROP TABLE demo_test")
        assert endpoint.say(b"set @@m1.k 0 0 1\r\nx\r\n") == first, profile  # [gone-001]
        assert endpoint.say(b"set @@m1.k 0 0 1\r\nx\r\n") == b"STORED\r\n", profile
        assert endpoint.say(b"set k 0 0 1\r\nx\r\n", "b") == (lost if first == lost else b"NOT_STORED\r\n"), profile
        assert endpoint.say(b"set k 0 0 1\r\nx\r\n", "b") == b"NOT_STORED\r\n", profile
