"""kvref over InnoDB with many concurrent connections: common statements, and for each command its own exact reply."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8, MYSQL_9
from helpers.serving import Served, serving
from server.at_once import Crowd, common_statements, got, put

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
SERVERS = [MYSQL_8, MYSQL_9, "mariadb"]
ROUNDS = int(os.environ.get("KVREF_ROUNDS", "150"))
NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"


@pytest.fixture(scope="module", params=SERVERS)
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as server:
        sql(server, "SET GLOBAL log_output = 'TABLE'")
        yield server


@pytest.fixture(scope="module")
def tables(database: SQLServer) -> SQLServer:
    """Map tables whose keys compare each in another way, read by `@@NAME`."""
    value = "v VARCHAR(100)"
    map_table(database, "numbers", "v", "k INT PRIMARY KEY", value)
    map_table(database, "long_text", "v", "k VARCHAR(30) PRIMARY KEY", "v LONGTEXT")
    map_table(database, "padded", "v", "k CHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY", value)
    map_table(database, "unknown", "v", "k VARCHAR(30) CHARACTER SET cp1250 PRIMARY KEY", value)
    return database


def test_statements_are_few_and_no_wider_than_configured(database: SQLServer) -> None:
    with serving(f"{database.dsn}?coalesce=8") as served, Crowd(served, 40) as crowd:
        keys = [f"w{number}" for number in range(40)]
        crowd.ask([put(key, "1") for key in keys])
        sql(database, "SET GLOBAL general_log = ON")
        assert crowd.ask([b"get %s\r\n" % key.encode() for key in keys]) == [got(key, "1") for key in keys]
        assert crowd.ask([put(key, "2") for key in keys]) == [b"STORED\r\n"] * 40
        seen = common_statements(database)
    widths = {verb: [keys for each, keys in seen if each == verb] for verb in ("SELECT", "UPDATE")}
    assert max(widths["SELECT"]) == max(widths["UPDATE"]) == 8
    # The gets, and what locks the rows of the sets; kvref may have begun before the last one had come.
    assert sum(widths["SELECT"]) == 80
    assert len(widths["SELECT"]) <= 16
    assert 32 <= sum(widths["UPDATE"]) <= 40  # a single one is an UPDATE of the ordinary kind
    assert len(widths["UPDATE"]) <= 8
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def test_without(database: SQLServer) -> None:
    sql(database, "SET GLOBAL general_log = ON")
    with serving(f"{database.dsn}?coalesce=0") as served, Crowd(served, 10) as crowd:
        assert crowd.ask([b"get AA\r\n"] * 10) == [b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"] * 10
    assert common_statements(database) == []


class Row:
    """What one row may be, given the replies so far: any of these values, None where there is none."""

    def __init__(self) -> None:
        self.values: set[bytes | None] = {None}

    def takes(self, queries: list[tuple[bytes, bytes, bytes]]) -> bool:
        """Return whether commands that were sent at once may have had these replies, in some order."""
        after = set()
        for before in self.values:
            for order in set(itertools.permutations(queries)):
                value: bytes | None = before
                for verb, data, reply in order:
                    value, wanted = outcome(value, verb, data)
                    if reply != wanted:
                        break
                else:
                    after.add(value)
        self.values = after
        return bool(after)


def outcome(value: bytes | None, verb: bytes, data: bytes) -> tuple[bytes | None, bytes]:
    """Return what a command leaves of a row and what it answers; a get answers its data."""
    stored, not_stored = b"STORED\r\n", b"NOT_STORED\r\n"
    match verb:
        case b"set":
            return data, stored
        case b"add":
            return (data, stored) if value is None else (value, not_stored)
        case b"replace":
            return (value, not_stored) if value is None else (data, stored)
        case b"append":
            return (value, not_stored) if value is None else (value + data, stored)
        case b"prepend":
            return (value, not_stored) if value is None else (data + value, stored)
        case b"delete":
            return None, b"NOT_FOUND\r\n" if value is None else b"DELETED\r\n"
        case b"incr":
            if value is None:
                return None, b"NOT_FOUND\r\n"
            if int(value) >= 1 << 64:
                return value, NOT_A_NUMBER
            total = b"%d" % ((int(value) + 3) % (1 << 64))
            return total, total + b"\r\n"
        case _:
            return value, b"" if value is None else value


@pytest.mark.parametrize("seed", range(2))
def test_random_commands_on_few_rows(database: SQLServer, served: Served, seed: int) -> None:
    draw = random.Random(seed)
    spellings = [["e", "E", "é"], ["k1"], ["k2", "K2"], ["k3"]]
    rows = [Row() for _ in spellings]
    requests = {b"incr": b"incr %s 3\r\n", b"delete": b"delete %s\r\n", b"get": b"get %s\r\n"}
    verbs = [*requests, b"set", b"add", b"replace", b"append", b"prepend", b"get"]
    with Crowd(served, 16) as crowd:
        for number in range(ROUNDS):
            queries = []
            for row in [row for row in range(4) for _ in range(draw.randint(1, 4))]:
                key, verb = draw.choice(spellings[row]).encode(), draw.choice(verbs)
                data = b"%d" % draw.randint(1, 99)
                line = (
                    requests[verb] % key
                    if verb in requests
                    else b"%s %s 0 0 %d\r\n%s\r\n" % (verb, key, len(data), data)
                )
                queries.append((row, key, verb, data, line))
            draw.shuffle(queries)
            replies = crowd.ask([line for *_, line in queries])
            for row, each in enumerate(rows):
                held = []
                for (of, key, verb, data, _), reply in zip(queries, replies, strict=True):
                    if of != row:
                        continue
                    if verb == b"get" and reply != b"END\r\n":
                        head, body = reply.split(b"\r\n")[:2]
                        assert head == b"VALUE %s 0 %d" % (key, len(body))
                        reply = body  # noqa: PLW2901 - what counts of it
                    held.append((verb, data, b"" if reply == b"END\r\n" else reply))
                before = set(each.values)
                assert each.takes(held), (number, before, held)
    found = dict(sql(database, "SELECT LOWER(c1), c2 FROM test.demo_test WHERE c1 <> 'AA'"))
    for row, each in enumerate(rows):
        value = next((text for key, text in found.items() if key in [s.lower() for s in spellings[row]]), None)
        assert (None if value is None else value.encode()) in each.values


def test_spellings_of_one_row_at_once(tables: SQLServer, served: Served) -> None:
    with Crowd(served, 20) as crowd:
        replies = crowd.ask([put(key, "1", "add") for key in ("Ab", "aB", "AB", "ab") * 5])
        assert sorted(replies) == [b"NOT_STORED\r\n"] * 19 + [b"STORED\r\n"]
        gets = crowd.ask([b"get %s\r\n" % key.encode() for key in ("Ab", "aB", "AB", "ab", "b") * 4])
        assert gets == [*(got(key, "1") for key in ("Ab", "aB", "AB", "ab")), b"END\r\n"] * 4
        for name in ("padded", "numbers", "unknown"):
            one, same = ("7", "007") if name == "numbers" else ("x", "X")
            assert crowd.ask([b"get @@%s\r\n" % name.encode()] * 20) == [got(f"@@{name}", f"test/{name}")] * 20
            replies = crowd.ask([put(key, "1", "add") for key in (one, same) * 10])
            assert sorted(replies) == [b"NOT_STORED\r\n"] * 19 + [b"STORED\r\n"]
            assert crowd.ask([b"get %s\r\n" % k.encode() for k in (one, same, "9")]) == [
                got(one, "1"), got(same, "1"), b"END\r\n",
            ]  # fmt: skip


def test_one_cas_of_many_is_through(served: Served) -> None:
    with Crowd(served, 20) as crowd:
        crowd.ask([put("c", "0")])
        head = crowd.ask([b"gets c\r\n"])[0].split(b"\r\n")[0]
        number = head.split()[-1].decode()
        replies = crowd.ask([f"cas c 0 0 1 {number}\r\n{who % 10}\r\n".encode() for who in range(20)])
        assert sorted(replies) == [b"EXISTS\r\n"] * 19 + [b"STORED\r\n"]


def test_long_values_go_together_as_far_as_memory_allows(tables: SQLServer, served: Served) -> None:
    values = [letter * 900_000 for letter in "abcdefghijklmnopqrst"]
    with Crowd(served, 20) as crowd:
        crowd.ask([b"get @@long_text\r\n"] * 20)
        for who, value in enumerate(values):
            assert crowd.ask([put(f"k{who}", value)]) == [b"STORED\r\n"]
        sql(tables, "SET GLOBAL general_log = ON")
        assert crowd.ask([b"get k%d\r\n" % who for who in range(20)]) == [
            got(f"k{who}", value) for who, value in enumerate(values)
        ]
        widths = [keys for _, keys in common_statements(tables)]
    assert sum(widths) == 20
    assert 4 <= max(widths) <= 16
