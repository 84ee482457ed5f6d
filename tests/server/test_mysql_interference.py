"""What comes between commands that share statements over InnoDB: bad rows, SQL, locks, triggers, DDL, lost connections."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import closing, suppress

import pytest
from helpers.database import map_table, sql
from helpers.serving import Served, ask, serving
from helpers.waiting import until, until_equal, until_risen
from server.at_once import Crowd, answer, common_statements, got, put, serving_without_pauses

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def tables(database: SQLServer) -> SQLServer:
    """Map tables of their own to this module's tests, read by `@@NAME`."""
    value = "v VARCHAR(100)"
    map_table(database, "checked", "v", "k VARCHAR(30) PRIMARY KEY", f"{value} NOT NULL")
    sql(
        database,
        "CREATE TRIGGER test.checks BEFORE INSERT ON test.checked FOR EACH ROW"
        " IF NEW.v = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no such value';"
        " ELSEIF NEW.v = 'slow' THEN DO SLEEP(0.5); END IF",
    )
    map_table(database, "audited", "v", "k VARCHAR(30) PRIMARY KEY", value)
    sql(database, "CREATE TABLE test.audit (n INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(30), v VARCHAR(100))")
    for event in ("INSERT", "UPDATE"):
        sql(
            database,
            f"CREATE TRIGGER test.audits_{event} AFTER {event} ON test.audited FOR EACH ROW"
            " INSERT INTO test.audit (k, v) VALUES (NEW.k, NEW.v)",
        )
    map_table(database, "twice", "v|w", "k VARCHAR(30) PRIMARY KEY", value, "w VARCHAR(30) UNIQUE")
    return database


def inserting(database: SQLServer) -> int:
    """Wait until the trigger of test.checked sleeps, and return the number of the connection that inserts."""
    query = (
        "SELECT id FROM information_schema.processlist"
        " WHERE info LIKE 'DO SLEEP%%' OR (info LIKE 'INSERT%%' AND info NOT LIKE '%%processlist%%')"
    )
    found: list[tuple[int]] = []

    def one() -> bool:
        found[:] = sql(database, query)
        return len(found) == 1

    until(one)
    return int(found[0][0])


def test_a_bad_row_among_good_ones(tables: SQLServer, served: Served) -> None:
    with Crowd(served, 20) as crowd:
        crowd.ask([b"get @@checked\r\n"] * 20)
        replies = crowd.ask([put(f"b{who}", "bad" if who in (3, 11) else "good") for who in range(20)])
        bad = b"SERVER_ERROR 1644 no such value\r\n"
        assert replies == [bad if who in (3, 11) else b"STORED\r\n" for who in range(20)]
    assert sql(tables, "SELECT COUNT(*), MIN(v) FROM test.checked WHERE k LIKE 'b%%'") == [(18, "good")]


def test_a_command_that_takes_its_write_back_takes_no_others(database: SQLServer) -> None:
    """An mg that creates the row without an expiry time and then gives it one that the column cannot hold."""
    requests = [put(f"v{who}", "1") if who != 4 else b"mg v4 N0 T2000000000\r\n" for who in range(10)]
    sql(database, "ALTER TABLE test.demo_test MODIFY c5 SMALLINT")
    try:
        with serving(f"{database.dsn}?coalesce=0") as single, Crowd(single, 10) as crowd:
            alone = crowd.ask(requests)
        assert alone == [b"STORED\r\n" if who != 4 else alone[4] for who in range(10)]
        assert b"_ERROR" in alone[4], alone[4]
        sql(database, "DELETE FROM test.demo_test WHERE c1 LIKE 'v%%'")
        with serving(database.dsn) as served, Crowd(served, 10) as crowd:
            for _ in range(2):
                assert crowd.ask(requests) == alone
        assert sql(database, "SELECT COUNT(*), SUM(c1 = 'v4') FROM test.demo_test WHERE c1 LIKE 'v%%'") == [(9, 0)]
    finally:
        sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'", "ALTER TABLE test.demo_test MODIFY c5 INT")


def test_a_value_that_another_index_has(tables: SQLServer, served: Served) -> None:
    with Crowd(served, 12) as crowd:
        crowd.ask([b"get @@twice\r\n"] * 12)
        replies = crowd.ask([put(f"t{who}", f"v|{who // 2}") for who in range(12)])
        stored = [reply for reply in replies if reply == b"STORED\r\n"]
        refused = [reply for reply in replies if reply.startswith(b"SERVER_ERROR 1062 Duplicate entry")]
        assert (len(stored), len(refused)) == (6, 6)
    assert sql(tables, "SELECT COUNT(DISTINCT w), COUNT(*) FROM test.twice") == [(6, 6)]


def test_sql_inserts_the_row_meanwhile(tables: SQLServer, served: Served) -> None:
    with Crowd(served, 6) as crowd:
        crowd.ask([b"get @@checked\r\n"] * 6)
        crowd.send([put("s0", "slow"), put("s1", "x"), put("s2", "x"), put("s3", "x", "add"), b"get s0\r\n"])
        inserting(tables)  # the rows are looked up, and the first is being inserted
        sql(tables, "INSERT INTO test.checked VALUES ('s2', 'by SQL'), ('s3', 'by SQL')")
        replies = [answer(client) for client in crowd.clients[:4]]
    assert replies == [b"STORED\r\n"] * 3 + [b"NOT_STORED\r\n"]
    found = dict(sql(tables, "SELECT k, v FROM test.checked WHERE k LIKE 's%%'"))
    assert found == {"s0": "slow", "s1": "x", "s2": "x", "s3": "by SQL"}


def test_the_common_connection_is_killed_in_the_middle(tables: SQLServer, served: Served) -> None:
    with Crowd(served, 8) as crowd:
        crowd.ask([b"get @@checked\r\n"] * 8)
        crowd.send([put(f"m{who}", "slow" if who == 4 else "x") for who in range(8)])
        number = inserting(tables)
        sql(tables, f"KILL {number}")
        assert [answer(client) for client in crowd.clients] == [b"STORED\r\n"] * 8
    assert sql(tables, "SELECT COUNT(*) FROM test.checked WHERE k LIKE 'm%%'") == [(8,)]


@pytest.mark.parametrize("row", ["there", "being inserted"])
def test_a_row_that_sql_has_locked(database: SQLServer, served: Served, row: str) -> None:
    with Crowd(served, 20) as crowd, closing(database.connect(30)) as other, other.cursor() as cursor:
        crowd.ask([put(f"l{who}", "1") for who in range(20) if who != 5 or row == "there"])
        cursor.execute("BEGIN")
        if row == "there":
            cursor.execute("UPDATE test.demo_test SET c2 = 'SQL' WHERE c1 = 'l5'")
        else:
            cursor.execute("INSERT INTO test.demo_test VALUES ('l5', 'SQL', 0, 0, 0)")
        sql(database, "SET GLOBAL general_log = ON")
        crowd.send([put(f"l{who}", "2", "append") for who in range(20)])
        others = [answer(client) for who, client in enumerate(crowd.clients) if who != 5]
        # What is not locked stays together.
        updates = [keys for verb, keys in common_statements(database) if verb == "UPDATE"]
        assert len(updates) <= 4
        assert 16 <= sum(updates) <= 19  # a single one is an UPDATE of the ordinary kind
        for number in range(5):  # and they go on
            assert crowd.clients[0] not in _ready(crowd.clients[5:6])
            assert [ask(client, put(f"l{who}", str(number))) for who, client in enumerate(crowd.clients[:5])] == [
                b"STORED\r\n"
            ] * 5
        assert others == [b"STORED\r\n"] * 19
        assert _ready(crowd.clients[5:6]) == []
        cursor.execute("COMMIT")
        assert answer(crowd.clients[5]) == b"STORED\r\n"
    assert sql(database, "SELECT c2 FROM test.demo_test WHERE c1 = 'l5'") == [("SQL2",)]


def _ready(clients: list[socket.socket]) -> list[socket.socket]:
    return select.select(clients, [], [], 0)[0]


def test_a_table_that_sql_has_locked_delays_no_commands_of_other_tables(tables: SQLServer) -> None:
    with (
        serving_without_pauses(tables) as served,
        Crowd(served, 12) as crowd,
        closing(tables.connect(30)) as other,
        other.cursor() as cursor,
    ):
        crowd.ask([b"get @@audited\r\n"] * 4)
        cursor.execute("LOCK TABLES test.audited WRITE, test.audit WRITE")
        first = [b"get a\r\n", b"", put("a", "1"), b"", *[put(f"o{who}", "1") for who in range(8)]]
        crowd.send(first)
        assert [answer(client) for client in crowd.clients[4:]] == [b"STORED\r\n"] * 8
        assert ask(crowd.clients[4], b"get o0\r\n") == got("o0", "1")
        sql(tables, "TRUNCATE TABLE mysql.general_log", "SET GLOBAL general_log = ON")
        crowd.send([b"", b"get a\r\n", b"", put("a", "1")])
        for number in range(20):
            assert ask(crowd.clients[4], put("o0", str(number))) == b"STORED\r\n"
            assert ask(crowd.clients[4], b"get o0\r\n") == got("o0", str(number))
        assert _ready(crowd.clients[:4]) == []
        cursor.execute("UNLOCK TABLES")
        assert answer(crowd.clients[2]) == answer(crowd.clients[3]) == b"STORED\r\n"
        for client in crowd.clients[:2]:
            assert answer(client) in (got("a", "1"), b"END\r\n")
        sql(tables, "SET GLOBAL general_log = OFF")
        waited, carried_out = (_connections_with(tables, table) for table in ("audited", "demo_test"))
        assert len(carried_out) == 2  # one reads and one writes for all that share statements
        assert waited.isdisjoint(carried_out)  # the commands of the locked table are tried alone
    sql(tables, "TRUNCATE TABLE mysql.general_log", "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def _connections_with(database: SQLServer, table: str) -> set[int]:
    """Return the connections that have run logged statements about rows of a table."""
    found = sql(
        database,
        "SELECT DISTINCT thread_id FROM mysql.general_log WHERE argument NOT LIKE 'SHOW%'"
        f" AND argument LIKE '%`test`.`{table}`%'",
    )
    return {thread for (thread,) in found}


def test_triggers_see_every_write(tables: SQLServer, served: Served) -> None:
    sql(tables, "DELETE FROM test.audited", "DELETE FROM test.audit")
    with Crowd(served, 24) as crowd:
        crowd.ask([b"get @@audited\r\n"] * 24)
        for number in range(3):
            replies = crowd.ask([put(f"t{who % 8}", f"{number}.{who}") for who in range(24)])
            assert replies == [b"STORED\r\n"] * 24
    written = {(f"t{who % 8}", f"{number}.{who}") for number in range(3) for who in range(24)}
    logged = sql(tables, "SELECT k, v FROM test.audit ORDER BY n")
    assert len(logged) == len(written)
    assert set(logged) == written
    # What a row is in the end is what was written last.
    assert dict(logged) == dict(sql(tables, "SELECT k, v FROM test.audited"))


def test_ddl_meanwhile(database: SQLServer, served: Served) -> None:
    stop = threading.Event()
    failures: list[bytes] = []
    counts = [0] * 12

    def count(who: int) -> None:
        with served.connect() as client:
            client.sendall(put(f"d{who}", "0"))
            answer(client)
            while not stop.is_set():
                client.sendall(f"incr d{who} 1\r\n".encode())
                reply = answer(client)
                counts[who] += 1
                if reply != b"%d\r\n" % counts[who]:
                    failures.append(reply)
                    return

    threads = [threading.Thread(target=count, args=(who,)) for who in range(12)]
    for each in threads:
        each.start()
    for width in (1100, 900, 1050, 1024):
        sql(database, f"ALTER TABLE test.demo_test MODIFY c2 VARCHAR({width})")
        until_risen(lambda: [each + len(failures) for each in counts])
        sql(
            database,
            f"ALTER TABLE test.demo_test ADD COLUMN extra{width} INT",
            "CREATE TABLE IF NOT EXISTS test.z (a INT)",
        )
        sql(database, f"ALTER TABLE test.demo_test DROP COLUMN extra{width}")
    stop.set()
    for each in threads:
        each.join(timeout=30)
    assert failures == []
    found = dict(sql(database, "SELECT c1, c2 FROM test.demo_test WHERE c1 LIKE 'd%%'"))
    assert found == {f"d{who}": str(counts[who]) for who in range(12)}


def test_a_width_that_ddl_has_changed_cuts_nothing(database: SQLServer) -> None:
    refusals = [
        b"SERVER_ERROR 1406 Data too long for column 'c2' at row 1\r\n",
        b"SERVER_ERROR object too large for cache: column c2 takes 5 characters\r\n",
    ]
    puts = [put(f"y{who}", "12345678") for who in range(10)]
    with serving(database.dsn, "--set", "oversized_set_removes=0") as served, Crowd(served, 10) as crowd:
        crowd.ask(puts)
        sql(database, "UPDATE test.demo_test SET c2 = LEFT(c2, 5)")
        try:
            sql(database, "ALTER TABLE test.demo_test MODIFY c2 VARCHAR(5)")
            # Until the table is looked at the database refuses in its own words.
            at_once = crowd.ask(puts)
            until_equal(lambda: (crowd.ask([b"get AA\r\n"] * 10), crowd.ask(puts))[1], refusals[1:] * 10)
            found = sql(database, "SELECT DISTINCT c2 FROM test.demo_test WHERE c1 LIKE 'y_'")
        finally:
            sql(database, "ALTER TABLE test.demo_test MODIFY c2 VARCHAR(1024)")
            sql(database, "UPDATE test.demo_test SET c2 = 'HELLO, HELLO' WHERE c1 = 'AA'")
    assert {*at_once} <= {*refusals}
    assert found == [("12345",)]


def test_nothing_waits_without_bound(database: SQLServer, served: Served) -> None:
    """A connection that has a command on its way reads no further: what it sends meanwhile stays with it."""
    with served.connect() as client, closing(database.connect(30)) as other, other.cursor() as cursor:
        assert ask(client, put("p", "1")) == b"STORED\r\n"
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM test.demo_test WHERE c1 = 'p' FOR UPDATE")
        client.settimeout(1)
        request = put("p", "2") + b"get AA\r\n" * 1000
        sent = 0
        with suppress(TimeoutError):
            for _ in range(10_000):
                client.sendall(request)
                sent += len(request)
        cursor.execute("ROLLBACK")
    assert sent < 32 << 20, f"{sent} bytes were taken"
