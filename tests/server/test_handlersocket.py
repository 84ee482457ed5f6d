"""kvref over MariaDB with HandlerSocket for reading: the answers of SQL, what others have committed or not, refusals."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from database import kvref, map_table, sql
from live import sql_server_or_skip, target_or_skip
from server.at_once import Crowd
from server.handlersocket_base import AA, SECRET, VARIABLE, Base, base
from serving import Served, ask, serving

from kvref import profiles
from kvref.engine.operations import LoadMapping
from kvref.storage.mysql.handlersocket import HandlerReads
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.mysql.store import MySQLStore
from kvref.storage.stores import open_store
from kvref_testbed.targets import handlersocket
from kvref_testbed.targets.ports import free_port

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def database() -> Iterator[Base]:
    with base(handlersocket.LEVEL) as started:
        yield started


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def served(database: Base) -> Iterator[Served]:
    with serving(database.dsn) as running:
        yield running
    sql(database.server, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def put(key: str, value: bytes) -> bytes:
    return b"set %s 5 0 %d\r\n%s\r\n" % (key.encode(), len(value), value)


KEYS = {
    "k_general": "VARCHAR(5)",
    "k_bin": "VARCHAR(5) COLLATE utf8mb4_bin",
    "k_nopad": "VARCHAR(5) COLLATE utf8mb4_uca1400_nopad_ai_ci",
    "k_mb3": "VARCHAR(5) CHARACTER SET utf8mb3",
    "k_latin1": "VARCHAR(5) CHARACTER SET latin1",
    "k_char": "CHAR(5)",
    "k_ascii": "VARCHAR(5) CHARACTER SET ascii",
    "k_small": "TINYINT",
    "k_large": "BIGINT UNSIGNED",
}
VALUES = {
    "a": "CHAR(9)", "b": "TEXT CHARACTER SET latin1", "c": "VARBINARY(9)", "d": "BLOB", "e": "BINARY(6)",
    "f": "TINYTEXT CHARACTER SET ucs2", "g": "BIGINT UNSIGNED", "h": "MEDIUMINT", "i": "INT(6) ZEROFILL",
    "k": "VARCHAR(9) CHARACTER SET utf16",
}  # fmt: skip
TEXTS = ["", "ab", "AB", "ab ", "ab  ", "a\tb", "a\nb", "e", "é", "É", "ß", "\x01", "abcde", "ééééé", "x'y\\"]
NUMBERS = ["0", "1", "-1", "127", "-128", "18446744073709551615", "9223372036854775808"]


@pytest.fixture(scope="module")
def many_kinds(database: Base) -> Base:
    """Map a table for each kind of key, its rows written by SQL."""
    draw = random.Random(5)
    for name, declared in KEYS.items():
        columns = ["id " + declared + " PRIMARY KEY", *(f"{column} {kind}" for column, kind in VALUES.items())]
        map_table(database.server, name, "|".join(VALUES), *columns)
        number = name in ("k_small", "k_large")
        with closing(database.server.connect(30)) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = ''")
            for key in NUMBERS if number else TEXTS:
                cells = [draw.choice([None, text, text]) for text in draw.choices(TEXTS, k=6)]
                cells += [draw.choice([None, *NUMBERS]) for _ in "ghi"] + [draw.choice(TEXTS)]
                marks = ", ".join(["%s"] * (len(cells) + 1))
                cursor.execute(f"INSERT IGNORE INTO test.{name} VALUES ({marks})", [key, *cells])
    return database


def spellings(name: str) -> list[bytes]:
    """Return keys that a client may send: of rows, like those of rows, longer than the column, and of no text."""
    if name in ("k_small", "k_large"):
        return [each.encode() for each in [*NUMBERS, "128", "300", "-129", "007", "12x", "18446744073709551616"]]
    texts = [text.encode() for text in [*TEXTS, "abcdef", "abcde ", "éééééé", "zz", "\U00010400", "A"]]
    return [each for each in texts if each and not set(each) & set(b" \t\n")] + [b"ab\xff", b"\xe9", b"a\xc3"]


@pytest.mark.parametrize("name", KEYS)
def test_the_answers_are_those_of_sql(many_kinds: Base, name: str) -> None:
    keys = spellings(name)
    with (
        serving(many_kinds.dsn) as one, serving(f"{many_kinds.server.dsn}?coalesce=0") as other,
        Crowd(one, 12) as crowd, other.connect() as alone,
    ):  # fmt: skip
        wanted = {key: ask(alone, b"get @@%s.%s\r\n" % (name.encode(), key)) for key in keys}
        assert sum(b"VALUE" in reply for reply in wanted.values()) >= 4
        crowd.ask([b"get @@%s\r\n" % name.encode()] * 12)
        before = many_kinds.rounds()
        draw = random.Random(name)
        for _ in range(20):
            asked = [draw.choice(keys) for _ in range(draw.randint(1, 12))]
            assert crowd.ask([b"get %s\r\n" % key for key in asked]) == [
                wanted[key].replace(b"@@%s." % name.encode(), b"") for key in asked
            ]
        for key in keys:
            assert crowd.ask([b"get %s\r\n" % key]) == [wanted[key].replace(b"@@%s." % name.encode(), b"")]
        assert many_kinds.rounds() > before + 10


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("k_general", [b"abcde", b"zz", "ééééé".encode()], [b"abcdef", b"ab\xff", "éééééé".encode()]),
        ("k_mb3", [b"ab"], ["ab\U00010400".encode()]),
        ("k_latin1", [b"ab", b"\xe9"], [b"abcdef"]),
        ("k_ascii", [b"ab"], [b"ab\xe9"]),
        ("k_small", [127, -128], [128, -129]),
        ("k_large", [(1 << 64) - 1], [1 << 64, -1]),
    ],
)
def test_keys_that_it_would_take_for_others(
    many_kinds: Base, name: str, good: list[Spelling], bad: list[Spelling]
) -> None:
    store = open_store(many_kinds.dsn, profiles.load("kvref"), 5)
    assert isinstance(store, MySQLStore)
    with closing(store.connect()) as link, closing(HandlerReads(store)) as reads:
        store.read_directory()
        mapping = link.execute(LoadMapping(name))
        found = reads.look_up(link, mapping, good, uncommitted=False)
        assert found is not None
        assert sorted(map(repr, found)) == sorted(repr(key) for key in good if key != b"zz")
        for key in bad:
            assert reads.look_up(link, mapping, [good[0], key], uncommitted=False) is None, key


def test_random_conversations(database: Base, served: Served) -> None:
    """One client at a time, now here and now at a server that knows SQL only: both see one table."""
    draw = random.Random(11)
    before = database.rounds()
    rows: dict[str, bytes] = {}
    with serving(database.server.dsn) as plain, served.connect() as here, plain.connect() as there:
        for _ in range(400):
            key, client = draw.choice("abcd"), draw.choice([here, there])
            match draw.choice(["set", "append", "delete", "get", "get"]):
                case "set":
                    rows[key] = draw.randbytes(3).hex().encode() + b"\t\x01"
                    assert ask(client, put(key, rows[key])) == b"STORED\r\n"
                case "append":
                    wanted = b"STORED\r\n" if key in rows else b"NOT_STORED\r\n"
                    assert ask(client, b"append %s 0 0 1\r\n+\r\n" % key.encode()) == wanted
                    if key in rows:
                        rows[key] += b"+"
                case "delete":
                    gone = b"DELETED\r\n" if rows.pop(key, None) else b"NOT_FOUND\r\n"
                    assert ask(client, b"delete %s\r\n" % key.encode()) == gone
                case _:
                    value = rows.get(key)
                    wanted = b"" if value is None else b"VALUE %s 5 %d\r\n%s\r\n" % (key.encode(), len(value), value)
                    assert ask(here, b"get %s\r\n" % key.encode()) == wanted + b"END\r\n"
    assert database.rounds() > before + 100


def test_large_values_of_many_at_once(database: Base) -> None:
    map_table(database.server, "large", "v", "k VARCHAR(20) PRIMARY KEY", "v LONGBLOB")
    rows = {f"l{number}": random.Random(number).randbytes(300_000) for number in range(40)}
    with closing(database.server.connect(60)) as connection, connection.cursor() as cursor:
        for key, value in rows.items():
            cursor.execute("INSERT INTO test.large VALUES (%s, %s)", (key, value))
    with serving(database.dsn) as served, Crowd(served, 40) as crowd:
        crowd.ask([b"get @@large\r\n"] * 40)
        before = database.rounds()
        crowd.send([b"get %s\r\n" % key.encode() for key in rows])
        for (key, value), client in zip(rows.items(), crowd.clients, strict=True):
            wanted = b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key.encode(), len(value), value)
            with client.makefile("rb") as replies:
                assert replies.read(len(wanted)) == wanted
        assert database.rounds() > before


def test_what_sql_commits_is_seen_at_once(database: Base, served: Served) -> None:
    before = database.rounds()
    with Crowd(served, 4) as crowd, closing(database.server.connect(30)) as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO test.demo_test VALUES ('s', '', 0, 0, 0)")
        for number in range(300):
            value = f"{number:03}"
            cursor.execute("UPDATE test.demo_test SET c2 = %s WHERE c1 = 's'", (value,))
            assert crowd.ask([b"get s\r\n"] * 4) == [f"VALUE s 0 3\r\n{value}\r\nEND\r\n".encode()] * 4
    assert database.rounds() > before + 250


@pytest.mark.parametrize("of_threads", [handlersocket.LEVEL, handlersocket.DIRTY])
@pytest.mark.parametrize("level", range(4))
def test_what_sql_has_not_committed(request: pytest.FixtureRequest, of_threads: str, level: int) -> None:
    """It is visible at level 0, and HandlerSocket is used if its threads read at the required level."""
    of_base = request.getfixturevalue("database" if of_threads == handlersocket.LEVEL else "dirty")
    with (
        serving(of_base.dsn, "--set", f"innodb_api_trx_level={level}", "--set", "innodb_lock_wait_timeout=1") as served,
        served.connect() as client, closing(of_base.server.connect(30)) as other, other.cursor() as cursor,
    ):  # fmt: skip
        assert ask(client, b"get AA\r\n") == AA
        before = of_base.rounds()
        cursor.execute("BEGIN")
        cursor.execute("UPDATE test.demo_test SET c2 = 'changed' WHERE c1 = 'AA'")
        seen = ask(client, b"get AA\r\n")
        cursor.execute("DELETE FROM test.demo_test WHERE c1 = 'AA'")
        missing = ask(client, b"get AA\r\n")
        cursor.execute("ROLLBACK")
        asked = of_base.rounds() - before
    if level == 3:  # a read waits for a row that is written, until the timeout
        assert seen != AA
        assert asked == 0
        return
    assert (seen, missing) == ((b"VALUE AA 8 7\r\nchanged\r\nEND\r\n", b"END\r\n") if level == 0 else (AA, AA))
    assert (asked > 0) == ((level == 0) == (of_threads == handlersocket.DIRTY))


@pytest.fixture(scope="module")
def dirty() -> Iterator[Base]:
    with base(handlersocket.DIRTY) as started:
        yield started


def test_a_level_that_was_set_since_the_start_is_not_guessed(database: Base) -> None:
    with serving(f"{database.server.dsn}?handlersocket={database.port}") as served, served.connect() as client:
        before = database.rounds()
        assert ask(client, b"get AA\r\n" * 5) == AA * 5
        assert database.rounds() == before
        assert served.wait_for("handlersocket_level=").count("READ-UNCOMMITTED")


def test_what_cannot_be_used_is_refused_at_the_start(database: Base) -> None:
    def said(dsn: str, secret: str = SECRET) -> str:
        ended = kvref("serve", "--listen", "127.0.0.1:0", "--store", dsn, **{VARIABLE: secret, "PATH": "/usr/bin:/bin"})
        assert ended.returncode == 2
        assert secret not in ended.stderr
        return " ".join(ended.stderr.split())

    wrong = said(database.dsn, "wrong-one")
    assert f"HandlerSocket at 127.0.0.1:{database.port} refuses the secret" in wrong
    assert (
        "put the server's handlersocket_plain_secret into KVREF_HANDLERSOCKET_SECRET, or into handlersocket_se" in wrong
    )
    other = free_port()
    named = said(f"{database.server.dsn}?handlersocket={other}")
    assert f"handlersocket={other}: this server's handlersocket_port is {database.port}: name that one" in named
    with sql_server_or_skip("mariadb") as without:
        lacks = said(f"{without.dsn}?handlersocket={other}")
    assert "this server has no HandlerSocket: start MariaDB with --plugin-load-add=handlersocket" in lacks


def test_a_server_that_shows_padding() -> None:
    """Its HandlerSocket would show that of CHAR, kvref's own sessions do not."""
    with base(handlersocket.LEVEL, "--sql-mode=PAD_CHAR_TO_FULL_LENGTH") as padding:
        map_table(padding.server, "padded", "v", "k VARCHAR(5) PRIMARY KEY", "v CHAR(5)")
        sql(padding.server, "INSERT INTO test.padded VALUES ('k', 'v')")
        with serving(padding.dsn) as served, served.connect() as client:
            assert ask(client, b"get @@padded.k\r\n") == b"VALUE @@padded.k 0 1\r\nv\r\nEND\r\n"
            assert ask(client, b"get k\r\n" * 2) == b"VALUE k 0 1\r\nv\r\nEND\r\n" * 2


def test_the_target() -> None:
    with target_or_skip("kvref-mariadb-hs") as target:
        assert target.store is not None
        assert "secret_file=" in target.store
        with socket.create_connection((target.host, target.port), timeout=60) as client:
            assert ask(client, b"get AA\r\n" * 3) == AA * 3
        assert "reads use SQL" not in target.log.read_text()


@pytest.mark.nightly
def test_mysql_has_none() -> None:
    with sql_server_or_skip("mysql-8.0") as server:
        ended = kvref("serve", "--listen", "127.0.0.1:0", "--store", f"{server.dsn}?handlersocket=9998")
    assert ended.returncode == 2
    assert "this server has no HandlerSocket" in ended.stderr
