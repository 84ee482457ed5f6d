"""kvref over MariaDB with HandlerSocket for reading: the answers of SQL, and nobody else in its way for long."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest
from database import database_or_skip, kvref, map_table, sql
from live import missing_skips, sql_server_or_skip
from server.at_once import Crowd, answer
from serving import Served, ask, serving

from kvref.targets import SQLServer, handlersocket
from kvref.targets.ports import free_port
from kvref.targets.progress import QUIET

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
SECRET = "s3cret of many"
VARIABLE = "KVREF_HANDLERSOCKET_SECRET"
AA = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


@dataclass(frozen=True)
class Base:
    """A MariaDB server and its HandlerSocket's port and level."""

    server: SQLServer
    port: int
    level: str

    @property
    def dsn(self) -> str:
        """Return the DSN that uses it."""
        return f"{self.server.dsn}?handlersocket={self.port}&handlersocket_level={self.level}"

    def rounds(self) -> int:
        """Return how often it was asked for rows so far."""
        ((_, count),) = sql(self.server, "SHOW GLOBAL STATUS LIKE 'handlersocket_hs_table_lock'")
        return int(count)


@contextmanager
def base(level: str) -> Iterator[Base]:
    port = free_port()
    with missing_skips():
        options = handlersocket.options(port, SECRET, QUIET, level)
    with database_or_skip("mariadb", options) as server:
        sql(server, handlersocket.AS_USUAL)
        yield Base(server, port, level)


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


@pytest.mark.parametrize("of_threads", [handlersocket.LEVEL, "REPEATABLE-READ"])
@pytest.mark.parametrize("level", range(4))
def test_what_sql_has_not_committed(request: pytest.FixtureRequest, of_threads: str, level: int) -> None:
    """It is seen at level 0, and HandlerSocket is asked where its threads see what is wanted."""
    if of_threads == handlersocket.LEVEL:
        of_base = request.getfixturevalue("database")
    else:
        of_base = request.getfixturevalue("committed")
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
    if level == 3:  # a read waits for a row that is written, and in vain
        assert seen != AA
        assert asked == 0
        return
    assert (seen, missing) == ((b"VALUE AA 8 7\r\nchanged\r\nEND\r\n", b"END\r\n") if level == 0 else (AA, AA))
    assert (asked > 0) == ((level == 0) == (of_threads == handlersocket.LEVEL))


@pytest.fixture(scope="module")
def committed() -> Iterator[Base]:
    with base("REPEATABLE-READ") as started:
        yield started


def test_a_level_that_was_set_since_the_start_is_not_guessed(database: Base) -> None:
    with serving(f"{database.server.dsn}?handlersocket={database.port}") as served, served.connect() as client:
        before = database.rounds()
        assert ask(client, b"get AA\r\n" * 5) == AA * 5
        assert database.rounds() == before
        assert served.wait_for("handlersocket_level=").count("READ-UNCOMMITTED")


@pytest.mark.parametrize("idle", [False, True])
def test_ddl_waits_for_no_longer_than_a_moment(database: Base, served: Served, idle: bool) -> None:
    stop, replies = threading.Event(), set()

    def read() -> None:
        with served.connect() as client:
            while not stop.is_set():
                replies.add(ask(client, b"get AA\r\n"))

    with served.connect() as client:
        assert ask(client, b"get AA\r\n") == AA
    threads = [] if idle else [threading.Thread(target=read) for _ in range(4)]
    for each in threads:
        each.start()
    before, took = database.rounds(), []
    try:
        for _ in range(3):
            for statement in (
                "ALTER TABLE test.demo_test ADD COLUMN more INT", "ALTER TABLE test.demo_test DROP COLUMN more",
                "LOCK TABLES test.demo_test WRITE", "OPTIMIZE TABLE test.demo_test",
                "ALTER TABLE test.demo_test MODIFY c2 VARCHAR(900)", "ALTER TABLE test.demo_test MODIFY c2 VARCHAR(1024)",
            ):  # fmt: skip
                begun = time.monotonic()
                sql(database.server, statement)
                took.append(time.monotonic() - begun)
                time.sleep(0.1)
    finally:
        stop.set()
        for each in threads:
            each.join(timeout=30)
    assert max(took) < 5, took
    if not idle:
        assert replies == {AA}
        assert database.rounds() > before + 10
    with served.connect() as client:
        assert ask(client, b"get AA\r\n") == AA


def test_ddl_counts_at_once(database: Base) -> None:
    map_table(database.server, "renamed", "v", "k VARCHAR(5) PRIMARY KEY", "v VARCHAR(9)", "w VARCHAR(9)")
    sql(database.server, "INSERT INTO test.renamed VALUES ('abcde', 'v', 'w'), ('abc', 'x', 'y')")
    with serving(database.dsn) as served, Crowd(served, 4) as crowd:
        crowd.ask([b"get @@renamed\r\n"] * 4)
        before = database.rounds()
        for value in (b"v", b"w") * 4:
            assert crowd.ask([b"get abcde\r\n"] * 4) == [b"VALUE abcde 0 1\r\n%s\r\nEND\r\n" % value] * 4
            sql(database.server, "ALTER TABLE test.renamed RENAME COLUMN v TO w, RENAME COLUMN w TO v")
        sql(database.server, "DELETE FROM test.renamed WHERE k = 'abcde'")
        sql(database.server, "ALTER TABLE test.renamed MODIFY k VARCHAR(3)")
        # It would be cut, and the row of `abc` found.
        assert crowd.ask([b"get abcde\r\n"] * 4) == [b"END\r\n"] * 4
        assert crowd.ask([b"get abc\r\n"] * 4) == [b"VALUE abc 0 1\r\nx\r\nEND\r\n"] * 4
        assert database.rounds() > before + 5


def test_a_table_that_is_emptied_dropped_and_made_again(database: Base) -> None:
    map_table(database.server, "again", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(20)")
    with serving(database.dsn) as served, served.connect() as client:
        ask(client, b"get @@again\r\n")
        for number, change in enumerate(("TRUNCATE TABLE test.again", "DROP TABLE test.again")):
            assert ask(client, put("k", b"1")) == b"STORED\r\n"
            assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
            sql(database.server, change)
            gone = ask(client, b"get k\r\n")
            assert gone == b"END\r\n" if number == 0 else b"SERVER_ERROR" in gone, gone
        sql(database.server, "CREATE TABLE test.again (k VARCHAR(20) PRIMARY KEY, v VARCHAR(20)) ENGINE = InnoDB")
        sql(database.server, "INSERT INTO test.again VALUES ('k', '2')")
        assert ask(client, b"get k\r\n") == b"VALUE k 0 1\r\n2\r\nEND\r\n"


def test_a_table_that_sql_has_locked_is_in_nobody_elses_way(database: Base) -> None:
    map_table(database.server, "held", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(20)")
    sql(database.server, "INSERT INTO test.held VALUES ('k', '1')")
    with (
        serving(database.dsn) as served, served.connect() as waits, served.connect() as client,
        closing(database.server.connect(30)) as other, other.cursor() as cursor,
    ):  # fmt: skip
        assert ask(waits, b"get @@held.k\r\n") == b"VALUE @@held.k 0 1\r\n1\r\nEND\r\n"
        cursor.execute("LOCK TABLES test.held WRITE")
        waits.sendall(b"get k\r\n")
        assert ask(client, b"get AA\r\n") == AA
        begun = time.monotonic()
        for _ in range(50):
            assert ask(client, b"get AA\r\n") == AA
        assert time.monotonic() - begun < 0.9
        before = database.rounds()
        assert ask(client, b"get AA\r\n") == AA
        assert database.rounds() > before  # its threads do not wait for that table
        cursor.execute("UNLOCK TABLES")
        assert answer(waits) == b"VALUE k 0 1\r\n1\r\nEND\r\n"


def test_a_row_that_sql_has_locked_is_read(database: Base, served: Served) -> None:
    with served.connect() as client, closing(database.server.connect(30)) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM test.demo_test WHERE c1 = 'AA' FOR UPDATE")
        before = database.rounds()
        assert ask(client, b"get AA\r\n") == AA
        assert database.rounds() > before


def test_an_account_sees_no_more_than_by_sql(database: Base) -> None:
    map_table(database.server, "hidden", "v", "k VARCHAR(20) PRIMARY KEY", "v VARCHAR(20)")
    grants = [
        f"GRANT SELECT ON {table} TO 'few'@'%'" for table in ("innodb_memcache.*", "test.demo_test", "test.hidden")
    ]
    sql(database.server, "CREATE USER 'few'@'%'", *grants, "INSERT INTO test.hidden VALUES ('k', 'secret')")
    with serving(database.dsn.replace("root@", "few@")) as served, served.connect() as client:
        assert b"secret" in ask(client, b"get @@hidden.k\r\n")
        sql(database.server, "REVOKE SELECT ON test.hidden FROM 'few'@'%'")
        time.sleep(0.5)
        assert b"denied" in ask(client, b"get k\r\n")
        assert ask(client, b"get @@aaa.AA\r\n") == AA.replace(b"AA", b"@@aaa.AA")


def test_the_server_goes_and_comes_back(served: Served, database: Base) -> None:
    with served.connect() as client:
        for end in (database.server.kill, database.server.stop):
            assert ask(client, b"get AA\r\n") == AA
            end()
            assert b"SERVER_ERROR" in ask(client, b"get AA\r\n")
            database.server.start()
            sql(database.server, handlersocket.AS_USUAL)
            assert ask(client, b"get AA\r\n") == AA
            deadline, before = time.monotonic() + 20, database.rounds()
            while database.rounds() == before:
                assert time.monotonic() < deadline
                assert ask(client, b"get AA\r\n") == AA
                time.sleep(0.05)


def test_its_threads_are_gone(database: Base, served: Served) -> None:
    """What an administrator ends stays away until the next start; every get is answered by SQL meanwhile."""
    with served.connect() as client:
        assert ask(client, b"get AA\r\n") == AA
        listed = sql(
            database.server, "SELECT id FROM information_schema.processlist WHERE state LIKE 'handlersocket%%'"
        )
        sql(database.server, *(f"KILL {number}" for (number,) in listed))
        begun = time.monotonic()
        for _ in range(20):
            assert ask(client, b"get AA\r\n") == AA
        assert time.monotonic() - begun < 5
        assert "SQL answers for" in served.wait_for("HandlerSocket at")
    database.server.stop()
    database.server.start()
    sql(database.server, handlersocket.AS_USUAL)


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


def test_mysql_has_none() -> None:
    with sql_server_or_skip("mysql-8.0") as server:
        ended = kvref("serve", "--listen", "127.0.0.1:0", "--store", f"{server.dsn}?handlersocket=9998")
    assert ended.returncode == 2
    assert "this server has no HandlerSocket" in ended.stderr
