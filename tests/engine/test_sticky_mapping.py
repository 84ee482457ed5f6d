"""The setting sticky_mapping: whether a word with a mapping and a key binds the mapping for the commands that follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.harness import Harness

Make = Callable[..., Harness]
COLUMNS = "c1 VARCHAR(32) COLLATE NOCASE PRIMARY KEY, c2 VARCHAR(1024), c3 INT, c4 BIGINT UNSIGNED, c5 INT"
NAMES = {"demo_test": "aaa", "t1": "m1", "t2": "m2"}
TWO = (
    *(f"CREATE TABLE t{n} ({COLUMNS})" for n in (1, 2)),
    *(f"INSERT INTO {table} VALUES ('who', '{name}', 0, 0, 0), ('k', '5', 0, 0, 0)" for table, name in NAMES.items()),
    *(
        f"INSERT INTO containers VALUES ('m{n}', 'test', 't{n}', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY')"
        for n in (1, 2)
    ),
)
POLICY = "UPDATE cache_policies SET get_policy = '{0}', set_policy = '{0}', delete_policy = '{0}'"


def frame(opcode: int, key: bytes, extras: bytes = b"", value: bytes = b"") -> bytes:
    sizes = len(key).to_bytes(2, "big") + bytes([len(extras)]) + bytes(3)
    total = len(extras + key + value).to_bytes(4, "big")
    return b"\x80" + bytes([opcode]) + sizes + total + bytes(12) + extras + key + value


TEXT = [
    b"get @@m2.k\r\n", b"gets @@m2.k\r\n", b"get @@m2.none\r\n", b"get @@m2.k k @@m1.k k\r\n", b"get @@m2.@>=a\r\n",
    b"get k @@m1.k\r\n", b"set @@m2.n 0 0 1\r\nx\r\n", b"set @@m2.n 0 0 1 noreply\r\nx\r\n",
    b"add @@m2.k 0 0 1\r\nx\r\n", b"replace @@m2.k 0 0 1\r\nx\r\n", b"append @@m2.none 0 0 1\r\nx\r\n",
    b"prepend @@m2.k 0 0 1\r\nx\r\n", b"cas @@m2.k 0 0 1 99\r\nx\r\n", b"set @@m2.n 0 0 2000000\r\n" + b"x" * 2000000 + b"\r\n",
    b"set @@m2.n 0 0 1100\r\n" + b"x" * 1100 + b"\r\n", b"incr @@m2.k 1\r\n", b"decr @@m2.none 1\r\n",
    b"delete @@m2.none\r\n", b"delete @@m2.n\r\n", b"touch @@m2.k 0\r\n", b"gat 0 @@m2.k k\r\n", b"mg @@m2.k v\r\n",
    b"ms @@m2.k 1\r\nx\r\n", b"ma @@m2.k\r\n", b"md @@m2.none\r\n", b"me @@m2.k\r\n",
]  # fmt: skip
BINARY = [
    frame(0x00, b"@@m2.k"), frame(0x09, b"@@m2.none"), frame(0x0C, b"@@m2.k"), frame(0x0D, b"@@m2.k"),
    frame(0x01, b"@@m2.n", bytes(8), b"x"), frame(0x11, b"@@m2.n", bytes(8), b"x"), frame(0x02, b"@@m2.k", bytes(8), b"x"),
    frame(0x05, b"@@m2.k", bytes(20)), frame(0x04, b"@@m2.none"), frame(0x0E, b"@@m2.k", b"", b"x"),
    frame(0x1C, b"@@m2.k", bytes(4)), frame(0x1D, b"@@m2.k", bytes(4)),
]  # fmt: skip


def who(endpoint: Harness, connection: str = "a") -> str:
    """Return the name of the mapping that the commands of a connection use."""
    reply = endpoint.say(b"get who\r\n", connection)
    return reply.split(b"\r\n")[1].decode() if reply.startswith(b"VALUE") else reply[28:].decode()


@pytest.mark.parametrize("policy", ["innodb_only", "caching"])
def test_a_word_with_a_key_applies_to_its_command_only_where_that_is_set(harness: Make, policy: str) -> None:
    for sticky in (True, False):
        endpoint = harness("kvref", *TWO, POLICY.format(policy))
        endpoint.shared.sticky_mapping = sticky
        for number, command in enumerate(TEXT):
            named = b"m1" if b"@@m1." in command else b"m2"
            for before, own in ((b"", "aaa"), (b"bind m1\r\n", "m1"), (b"get @@m1\r\n", "m1")):
                connection = f"{number} {before!r}"
                endpoint.say(before + command, connection)
                assert who(endpoint, connection) == (named.decode() if sticky else own), (sticky, before, command[:50])
        for number, data in enumerate(BINARY):
            endpoint.say(data, f"b{number}")
            value = endpoint.say(frame(0x00, b"who"), f"b{number}")[28:]
            assert value == (b"m2" if sticky else b"aaa"), (sticky, data)


def test_the_command_itself_uses_the_mapping(harness: Make) -> None:
    for profile in ("kvref", "mysql-8.0", "mysql-5.6"):
        endpoint = harness(profile, *TWO)
        endpoint.shared.sticky_mapping = False
        assert endpoint.say(b"get @@m2.who who\r\n") == b"VALUE @@m2.who 0 2\r\nm2\r\nVALUE who 0 2\r\nm2\r\nEND\r\n"
        assert endpoint.say(b"set @@m1.n 0 0 1\r\nx\r\nget n\r\n") == b"STORED\r\nEND\r\n"
        assert endpoint.rows("SELECT c1, c2 FROM t1 WHERE c1 = 'n'") == [("n", "x")]
        assert endpoint.say(b"get none @@m2.none\r\n") == b"END\r\n"
        assert who(endpoint) == "aaa", profile


def test_a_word_without_a_key_and_bind_bind_for_good(harness: Make) -> None:
    endpoint = harness("kvref", *TWO)
    endpoint.shared.sticky_mapping = False
    for command, bound in (
        (b"get @@m1\r\n", "m1"), (b"get @@m2.who\r\n", "m1"), (b"bind m2\r\n", "m2"), (b"get @@aaa.who\r\n", "m2"),
        (b"get @@m1.who @@aaa who\r\n", "aaa"), (b"get @@m1 @@m2.who who\r\n", "m1"), (b"set @@m2 0 0 1\r\nx\r\n", "m2"),
        (b"get @@none.k\r\n", "m2"), (b"bind none\r\n", "m2"), (b"mg @@m1 v\r\n", "m1"),
    ):  # fmt: skip
        endpoint.say(command)
        assert who(endpoint) == bound, command


def test_a_command_with_a_mapping_of_its_own_is_a_batch_of_its_own(harness: Make) -> None:
    endpoint = harness("kvref", *TWO)
    endpoint.shared.sticky_mapping = False
    endpoint.batch(10, 10)
    there = "SELECT (SELECT count(*) FROM {} WHERE c1 = 'n')".format
    assert endpoint.say(b"set n 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert endpoint.rows(there("demo_test")) == [(0,)]
    assert endpoint.say(b"set @@aaa.k 0 0 1\r\nx\r\n") == b"STORED\r\n"  # the mapping in force: the batch goes on
    assert endpoint.rows(there("demo_test")) == [(0,)]
    assert endpoint.say(b"set @@m2.n 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert endpoint.rows(there("demo_test")) == endpoint.rows(there("t2")) == [(1,)]
    assert endpoint.say(b"delete n\r\nget @@m2.k\r\n").startswith(b"DELETED\r\nVALUE")
    assert endpoint.rows(there("demo_test")) == [(0,)]
    assert endpoint.say(b"set n 0 0 1\r\nx\r\nset @@m2.n 0 0 2000\r\n" + b"x" * 2000 + b"\r\n").startswith(b"STORED")
    assert endpoint.rows(there("demo_test")) == [(1,)]
    assert endpoint.rows(there("t2")) == [(0,)]  # its own removal is committed too


def test_a_reload_or_a_mapping_that_is_gone_ends_nothing_but_the_command(harness: Make) -> None:
    endpoint = harness("kvref", *TWO)
    endpoint.shared.sticky_mapping = False
    endpoint.say(b"bind m1\r\n")
    endpoint.shared.directory.generation += 1
    assert endpoint.say(b"get @@m2.who\r\n") == b"VALUE @@m2.who 0 2\r\nm2\r\nEND\r\n"
    assert who(endpoint) == "m1"
    endpoint.sql.execute("DROP TABLE t2")
    assert endpoint.say(b"set @@m2.k 0 0 1\r\nx\r\n").startswith(b"SERVER_ERROR")
    assert who(endpoint) == "m1"
