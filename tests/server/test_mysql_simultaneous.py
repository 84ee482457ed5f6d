"""Commands of many connections that arrive together over a database server: common statements, and for each its own reply."""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Iterator

import pytest
from helpers.database import map_table, sql, stopped
from helpers.serving import Served, ask, serving
from helpers.waiting import until
from hypothesis import settings
from server.at_once import Crowd, common_statements, got, put, serving_without_pauses

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
ROUNDS = 2 * settings().max_examples
NOT_A_NUMBER = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
STORED, DELETED, NOT_FOUND = b"STORED\r\n", b"DELETED\r\n", b"NOT_FOUND\r\n"
CLIENTS = 24
KEYS = [f"k{number:02d}" for number in range(CLIENTS)]
# Several rows are removed by one statement.
TOGETHER = "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'DELETE FROM%%IN (%%,%%'"


@pytest.fixture(scope="module")
def tables(database: SQLServer) -> SQLServer:
    """Map tables whose keys compare each in another way, read by `@@NAME`."""
    value = "v VARCHAR(100)"
    map_table(database, "numbers", "v", "k INT PRIMARY KEY", value)
    map_table(database, "long_text", "v", "k VARCHAR(30) PRIMARY KEY", "v LONGTEXT")
    map_table(database, "padded", "v", "k CHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY", value)
    map_table(database, "unknown", "v", "k VARCHAR(30) CHARACTER SET cp1250 PRIMARY KEY", value)
    return database


@pytest.fixture
def logged(database: SQLServer) -> Iterator[None]:
    sql(database, "TRUNCATE TABLE mysql.general_log", "SET GLOBAL general_log = ON")
    yield
    sql(database, "SET GLOBAL general_log = OFF")


@pytest.fixture(scope="module")
def batching_server(database: SQLServer) -> Iterator[Served]:
    """Serve such that commands are batched on a busy machine too."""
    with serving_without_pauses(database) as running:
        yield running


@pytest.fixture
def crowd(database: SQLServer, batching_server: Served) -> Iterator[Crowd]:
    """Clients that have each read a row, so that their next commands are planned.

    kvref has written, so that it knows how long a statement may be: the first one has one row.
    """
    with Crowd(batching_server, CLIENTS) as found:
        found.ask([b"get AA\r\n"] * CLIENTS)
        found.ask([b"delete nothing\r\n"])
        yield found
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def bound(crowd: Crowd, database: SQLServer, name: str, *columns: str) -> None:
    """Map a table and bind every client to it."""
    map_table(database, name, "v", *columns)
    crowd.bind(name)


def rows(database: SQLServer, name: str) -> dict[str, str]:
    return {key: value for key, value, *_ in sql(database, f"SELECT k, v FROM test.{name}")}


def delete(*keys: str, last: str = "") -> bytes:
    return "".join(f"delete {key}{last}\r\n" for key in keys).encode()


def fill(database: SQLServer, *keys: str, expiry: int = 0) -> None:
    """Insert rows into the demo table."""
    sql(database, "INSERT INTO test.demo_test VALUES " + ", ".join(f"('{key}', 'v', 7, 3, {expiry})" for key in keys))


def left(database: SQLServer, table: str = "demo_test", key: str = "c1") -> set[str]:
    """Return the keys of the rows that are there."""
    return {name for (name,) in sql(database, f"SELECT {key} FROM test.{table}")} - {"AA"}


def counted(crowd: Crowd) -> tuple[int, int]:
    """Return how many deletes have found a row, and how many have not."""
    hits, misses = re.findall(rb"STAT delete_(?:hits|misses) (\d+)", ask(crowd.clients[0], b"stats\r\n"))[::-1]
    return int(hits), int(misses)


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


def test_no_statement_is_shared_where_that_is_switched_off(database: SQLServer) -> None:
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


def test_sets_of_new_rows_and_of_old_ones_share_a_statement(database: SQLServer, crowd: Crowd) -> None:
    sql(database, "INSERT INTO test.demo_test VALUES " + ", ".join(f"('{key}', 'old', 7, 3, 0)" for key in KEYS[::2]))
    sql(database, "SET GLOBAL general_log = ON")
    requests = [b"set %b %d 0 3\r\nnew\r\n" % (key.encode(), number % 3) for number, key in enumerate(KEYS)]
    assert crowd.ask(requests) == [STORED] * CLIENTS
    sql(database, "SET GLOBAL general_log = OFF")
    logged = sql(database, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'SELECT%%IN (%%,%%NOWAIT'")
    assert logged[0][0] >= 1
    found = sql(database, "SELECT c1, c2, c3, c4, c5 FROM test.demo_test WHERE c1 LIKE 'k__' ORDER BY c1")
    assert [row[:3] for row in found] == [(key, "new", number % 3) for number, key in enumerate(KEYS)]
    numbers = [row[3] for row in found]
    assert len(set(numbers)) == CLIENTS
    assert min(numbers) > 3
    assert {row[4] for row in found} == {0}
    assert crowd.ask([b"get %b\r\n" % key.encode() for key in KEYS])[0] == got(KEYS[0], "new")
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'", "TRUNCATE TABLE mysql.general_log")


def test_columns_that_are_not_mapped_stay(database: SQLServer, crowd: Crowd) -> None:
    bound(crowd, database, "unmapped", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)", "other INT DEFAULT 5")
    sql(database, "INSERT INTO test.unmapped VALUES ('k00', 'old', 9)")
    assert crowd.ask([put(key, "new") for key in KEYS]) == [STORED] * CLIENTS
    found = sql(database, "SELECT k, v, other FROM test.unmapped ORDER BY k")
    assert found == [(key, "new", 9 if key == "k00" else 5) for key in KEYS]


def test_the_plugins_profile_clears_columns_that_are_not_mapped(database: SQLServer) -> None:
    map_table(database, "cleared", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)", "other INT DEFAULT 5")
    sql(database, "INSERT INTO test.cleared VALUES ('k00', 'old', 9)")
    with serving(database.dsn, "--profile", "mysql-8.0") as served, Crowd(served, CLIENTS) as crowd:
        crowd.bind("cleared")
        assert crowd.ask([put(key, "new") for key in KEYS]) == [STORED] * CLIENTS
    assert set(sql(database, "SELECT v, other FROM test.cleared")) == {("new", None)}


def test_spellings_of_one_row_do_not_rewrite_its_key(database: SQLServer, crowd: Crowd) -> None:
    bound(
        crowd, database, "spelling", "k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY",
        "v VARCHAR(9)",
    )  # fmt: skip
    sql(database, "INSERT INTO test.spelling VALUES ('Row', 'old')")
    words = ["row", "ROW", "new", "NEW", "Row"]
    assert crowd.ask([put(word, word) for word in words]) == [STORED] * len(words)
    found = {key.lower(): (key, value) for key, value in rows(database, "spelling").items()}
    assert found["row"][0] == "Row"
    assert found["row"][1] in ("row", "ROW", "Row")
    assert found["new"][0] in ("new", "NEW")
    assert found["new"][1] in ("new", "NEW")


def test_all_that_wait_are_reported_at_once_that_the_database_hangs(database: SQLServer) -> None:
    # It counts as hanging after two seconds; another attempt would wait for two more.
    with (
        serving(f"{database.dsn}?timeout=1", "--set", "innodb_lock_wait_timeout=1") as served,
        Crowd(served, CLIENTS) as crowd,
    ):
        crowd.ask([b"get AA\r\n"] * CLIENTS)
        crowd.ask([put(key, "old") for key in KEYS])
        with stopped(database):
            begun = time.monotonic()
            crowd.send([put(KEYS[number // 2], "new") for number in range(CLIENTS)])
            for client in crowd.clients:
                client.settimeout(max(0.1, begun + 3.5 - time.monotonic()))
                assert client.recv(200).startswith(b"SERVER_ERROR no answer from the database within 2 s")


def test_each_of_many_sets_has_the_reply_of_a_set_by_itself(database: SQLServer, crowd: Crowd) -> None:
    bound(crowd, database, "narrow", "k VARCHAR(5) PRIMARY KEY", "v VARCHAR(9) CHARACTER SET utf8mb4")
    requests = {
        put("short", "fits"): STORED,
        put("longer", "key"): b"CLIENT_ERROR key too long for column k (5)\r\n",
        put("wide", "0123456789"): b"SERVER_ERROR object too large for cache: column v takes 9 characters\r\n",
        "set text 0 0 5\r\ngrön\r\n".encode(): STORED,
        b"set bytes 0 0 2\r\n\xff\xfe\r\n": b"SERVER_ERROR column v holds utf8mb4 text, byte 0 of the data is none\r\n",
        b"set flags 4294967296 0 1\r\nx\r\n": b"CLIENT_ERROR bad command line format\r\n",
        b"set over 0 -1 1\r\nx\r\n": STORED,
        b"set later 0 1000 1\r\nx\r\n": STORED,
    }
    assert dict(zip(requests, crowd.ask(list(requests)), strict=False)) == requests
    assert rows(database, "narrow") == {"short": "fits", "text": "grön", "later": "x"}


def test_a_statement_is_no_longer_than_the_server_takes(database: SQLServer) -> None:
    ((before,),) = sql(database, "SELECT @@GLOBAL.max_allowed_packet")
    map_table(database, "large", "v", "k VARCHAR(20) PRIMARY KEY", "v LONGTEXT")
    aborted = sql(database, "SHOW GLOBAL STATUS LIKE 'Aborted_clients'")
    sql(database, "SET GLOBAL max_allowed_packet = 262144")
    try:
        with serving(database.dsn) as served, Crowd(served, CLIENTS) as crowd:
            crowd.ask([b"bind large\r\n"] * CLIENTS)
            crowd.ask([b"get nothing\r\n"] * CLIENTS)
            value = "\\" * 60_000  # two of them are too much, as hexadecimal digits
            assert crowd.ask([put(key, value) for key in KEYS]) == [STORED] * CLIENTS
            assert crowd.ask([put(key, value[::-1]) for key in KEYS]) == [STORED] * CLIENTS
            # The server ends a connection that says more.
            assert sql(database, "SHOW GLOBAL STATUS LIKE 'Aborted_clients'") == aborted
    finally:
        sql(database, f"SET GLOBAL max_allowed_packet = {before}")
    assert {len(value) for (value,) in sql(database, "SELECT v FROM test.large")} == {60_000}


@pytest.mark.usefixtures("logged")
def test_deletes_of_rows_that_are_there_and_of_others_share_a_statement(database: SQLServer, crowd: Crowd) -> None:
    fill(database, *KEYS[::3], "stays")
    hits, misses = counted(crowd)
    assert crowd.ask([delete(key) for key in KEYS]) == [DELETED, NOT_FOUND, NOT_FOUND] * (CLIENTS // 3)
    assert sql(database, TOGETHER)[0][0] >= 1
    assert left(database) == {"stays"}
    assert counted(crowd) == (hits + CLIENTS // 3, misses + CLIENTS // 3 * 2)


@pytest.mark.usefixtures("logged")
@pytest.mark.parametrize("last", ["", " noreply"])
def test_deletes_of_one_connection_share_a_statement(database: SQLServer, crowd: Crowd, last: str) -> None:
    fill(database, *KEYS)
    replies = ask(crowd.clients[0], delete(*KEYS, "k03", "nothing", last=last) + b"get k00\r\n")
    assert replies == (b"" if last else DELETED * CLIENTS + NOT_FOUND * 2) + b"END\r\n"
    assert sql(database, TOGETHER)[0][0] >= 1
    assert not left(database)


@pytest.mark.parametrize("words", [("row", "ROW"), ("ROW", "row"), ("Row", "ROW", "other")])
def test_spellings_of_one_row_remove_it_once(database: SQLServer, crowd: Crowd, words: tuple[str, ...]) -> None:
    name = f"spelled_{'_'.join(words).encode().hex()}"
    map_table(
        database, name, "v", "k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY",
        "v VARCHAR(9)",
    )  # fmt: skip
    sql(database, f"INSERT INTO test.{name} VALUES ('row', 'v'), ('other', 'v')")
    client = crowd.clients[0]
    ask(client, f"bind {name}\r\n".encode() + b"get nothing\r\n")
    assert ask(client, delete(*words)) == DELETED + NOT_FOUND + DELETED * (len(words) - 2)
    assert left(database, name, "k") == {"other"} - {*words}


def test_a_row_that_another_one_needs_fails_none_of_the_others(database: SQLServer, crowd: Crowd) -> None:
    bound(crowd, database, "needed", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)")
    sql(
        database,
        *[f"INSERT INTO test.needed VALUES ('{key}', 'v')" for key in KEYS],
        "CREATE TABLE test.needs (k VARCHAR(20), FOREIGN KEY (k) REFERENCES needed (k)) ENGINE = InnoDB",
        "INSERT INTO test.needs VALUES ('k05')",
    )
    replies = dict(zip(KEYS, crowd.ask([delete(key) for key in KEYS]), strict=True))
    assert replies.pop("k05").startswith(b"SERVER_ERROR")
    assert set(replies.values()) == {DELETED}
    assert left(database, "needed", "k") == {"k05"}
    sql(database, "DROP TABLE test.needs")


@pytest.mark.parametrize("keys", [("a", "b"), ("b", "a")])
def test_a_row_that_went_with_another_one_is_not_found(
    database: SQLServer, crowd: Crowd, keys: tuple[str, str]
) -> None:
    parent, child = keys
    name = f"tree_{parent}"
    map_table(
        database, name, "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(9)", "parent VARCHAR(20)",
        f"FOREIGN KEY (parent) REFERENCES {name} (k) ON DELETE CASCADE",
    )  # fmt: skip
    client = crowd.clients[0]
    ask(client, f"bind {name}\r\n".encode())
    for first, second, replies in ((parent, child, DELETED + NOT_FOUND), (child, parent, DELETED * 2)):
        sql(
            database,
            f"INSERT INTO test.{name} VALUES ('{parent}', 'v', NULL)",
            f"INSERT INTO test.{name} VALUES ('{child}', 'v', '{parent}')",
        )
        ask(client, b"get nothing\r\n")
        assert ask(client, delete(first, second)) == replies
        assert not left(database, name, "k")


def test_a_row_is_over_when_its_second_begins(database: SQLServer, served: Served) -> None:
    with served.connect() as client:
        ask(client, b"get AA\r\n")
        last = int(time.time()) + 2
        sql(database, f"INSERT INTO test.demo_test VALUES ('brief', 'v', 7, 0, {last})")

        def over() -> bool:
            requests = time.time()
            over = ask(client, b"get brief\r\n") == b"END\r\n"
            assert not over or time.time() >= last
            assert over or requests < last
            return over

        until(over, pause=0.001)


def test_a_key_that_equals_a_row_since_its_collation_changed_finds_it(database: SQLServer, served: Served) -> None:
    name = "spelled"
    map_table(database, name, "v", "k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY", "v VARCHAR(9)")
    sql(database, f"INSERT INTO test.{name} (k, v) VALUES ('a', 'v')")
    with served.connect() as client:
        ask(client, b"bind spelled\r\n")
        for _ in range(3):
            assert ask(client, b"get A\r\n") == b"END\r\n"
        sql(
            database,
            f"ALTER TABLE test.{name} MODIFY k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL",
        )
        # The server finds the row by this key now, since a change of the table that kvref has not read yet.
        assert ask(client, b"get A\r\n") == b"VALUE A 0 1\r\nv\r\nEND\r\n"


GETS = [
    b"get a b none a\r\n", b"gets a b over\r\n", b"get over a\r\n", b"get none none2\r\n", b"get a \xc3\xa9 b\r\n",
    b"get @@aaa.AA\r\n", b"gets @@aaa.AA\r\n", b"get a @@several.b a\r\n", b"get @@several.a b\r\n", b"gets a\r\n",
    b"get big a big\r\n", b"get " + b" ".join([b"a", b"b"] * 200) + b"\r\n", b"get a  b\r\n", b"get A a\r\n",
    b"get a b\r\nget b\r\nget none a\r\nset z 0 0 1\r\n1\r\nget z a\r\n",
]  # fmt: skip


def test_gets_of_several_keys_are_those_of_a_server_without_groups(database: SQLServer, served: Served) -> None:
    columns = "f INT", "c BIGINT UNSIGNED", "e INT"
    map_table(database, "several", "v", "k VARCHAR(250) PRIMARY KEY", "v MEDIUMTEXT", *columns)
    sql(
        database,
        "UPDATE innodb_memcache.containers SET flags = 'f', cas_column = 'c', expire_time_column = 'e'"
        " WHERE name = 'several'",
        "INSERT INTO test.several VALUES ('a', '1', 5, 7, 0), ('b', NULL, NULL, NULL, NULL), ('over', 'v', 0, 1, 1),"
        " ('\u00e9', 'v', 1, 2, 0), ('big', REPEAT('x', 600000), 0, 0, 0)",
    )
    with serving(f"{database.dsn}?coalesce=0") as alone:
        for line in GETS:
            found = []
            for each in (served, alone):
                with each.connect() as client:
                    assert ask(client, b"bind several\r\nget AA\r\nstats reset\r\n").endswith(b"RESET\r\n")
                    replies = [ask(client, line)]
                    received = ask(client, b"stats\r\n")
                    names = (b"cmd_get", b"get_hits", b"get_misses", b"get_expired")
                    replies += [received.split(b"STAT " + name + b" ")[1].split()[0] for name in names]
                    found.append(replies)
            assert found[0] == found[1], line
