"""What only a database does: foreign keys, triggers, CHECK. What the wire answers, and the rows that SQL sees then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, map_table, sql
from helpers.live import MYSQL_8
from helpers.serving import ask, serving

from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
STORED, DELETED, OK = b"STORED\r\n", b"DELETED\r\n", b"OK\r\n"
NOT_STORED, NOT_FOUND, MISS = b"NOT_STORED\r\n", b"NOT_FOUND\r\n", b"END\r\n"
NOT_FLUSHED = b"SERVER_ERROR failed to flush cache\r\n"
TABLES = ("restrict_child", "cascade_child", "parent", "watched", "checked")


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param) as database:
        yield database


@pytest.fixture
def database(server: SQLServer) -> Iterator[SQLServer]:
    """Yield a server with a parent, a child of each kind, a table with triggers and one with a CHECK, all mapped."""
    map_table(server, "parent", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)")
    for rule in ("restrict", "cascade"):
        map_table(
            server, f"{rule}_child", "p", "k VARCHAR(9) PRIMARY KEY", "p VARCHAR(9)",
            f"CONSTRAINT {rule}_rule FOREIGN KEY (p) REFERENCES parent (k) ON DELETE {rule} ON UPDATE {rule}",
        )  # fmt: skip
    map_table(server, "watched", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)")
    map_table(server, "checked", "v", "k VARCHAR(9) PRIMARY KEY", "v VARCHAR(9)", "CONSTRAINT short CHECK (v < 'x')")
    sql(server, "CREATE TABLE test.audit (what VARCHAR(99)) ENGINE = InnoDB")
    for what, row in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD")):
        sql(
            server,
            f"CREATE TRIGGER test.{what}_seen AFTER {what} ON test.watched FOR EACH ROW"
            f" INSERT INTO test.audit VALUES (CONCAT('{what} ', {row}.k))",
        )
    sql(
        server,
        "CREATE TRIGGER test.changed BEFORE INSERT ON test.watched FOR EACH ROW"
        " IF NEW.v = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'bad is refused';"
        " ELSE SET NEW.v = UPPER(NEW.v); END IF",
        "INSERT INTO test.parent VALUES ('a', '1'), ('b', '2'), ('c', '3')",
        "INSERT INTO test.restrict_child VALUES ('r', 'a')",
        "INSERT INTO test.cascade_child VALUES ('s', 'b')",
    )
    yield server
    sql(
        server,
        *[f"DROP TABLE test.{table}" for table in (*TABLES, "audit")],
        "DELETE FROM innodb_memcache.containers WHERE name <> 'aaa'",
    )


PLUGIN = ["mysql-8.0", "mysql-5.6"]


def test_foreign_keys_with_the_cause(database: SQLServer) -> None:
    with serving(database.dsn) as served, served.connect() as client:
        missing = ask(client, b"set @@restrict_child.x 0 0 1\r\n?\r\n")
        assert missing.startswith(b"SERVER_ERROR 1452 Cannot add or update a child row: a foreign key constraint fails")
        assert b"restrict_rule" in missing
        assert ask(client, b"set r 0 0 1\r\n?\r\n").startswith(b"SERVER_ERROR 1452 ")
        assert ask(client, b"get r\r\nset r 0 0 1\r\na\r\n") == b"VALUE r 0 1\r\na\r\nEND\r\n" + STORED
        assert ask(client, b"bind parent\r\nset a 0 0 1\r\n9\r\n") == b"SUCCEED\r\n" + STORED
        refused = ask(client, b"delete a\r\n")
        assert refused.startswith(b"SERVER_ERROR 1451 Cannot delete or update a parent row")
        assert b"restrict_rule" in refused
        assert ask(client, b"delete b\r\n") == DELETED
        assert sql(database, "SELECT * FROM test.cascade_child") == []
        # Nothing of a flush that fails is done.
        assert ask(client, b"flush_all\r\n").startswith(b"SERVER_ERROR 1451 ")
        assert sql(database, "SELECT k, v FROM test.parent ORDER BY k") == [("a", "9"), ("c", "3")]
        assert ask(client, b"bind restrict_child\r\nflush_all\r\nbind parent\r\nflush_all\r\n").count(OK) == 2
        assert sql(database, "SELECT * FROM test.parent") == []


@pytest.mark.parametrize(
    ("profile", "flushed", "left"), [("mysql-8.0", OK, ["a"]), ("mysql-5.6", NOT_FLUSHED, ["a", "c"])]
)
def test_foreign_keys_as_the_plugin_answers(database: SQLServer, profile: str, flushed: bytes, left: list[str]) -> None:
    with serving(database.dsn, "--profile", profile) as served, served.connect() as client:
        assert ask(client, b"set @@restrict_child.x 0 0 1\r\n?\r\nset r 0 0 1\r\n?\r\n") == NOT_STORED * 2
        assert ask(client, b"bind parent\r\ndelete a\r\ndelete b\r\n") == b"SUCCEED\r\n" + NOT_FOUND + DELETED
        assert sql(database, "SELECT * FROM test.cascade_child") == []
        assert ask(client, b"flush_all\r\n") == flushed
        assert sql(database, "SELECT k FROM test.parent ORDER BY k") == [(key,) for key in left]


def test_no_key_with_the_bytes_of_a_surrogate_is_found(database: SQLServer) -> None:
    # The plugin of 5.6 stores them as text; SQL servers refuse every statement that has them.
    sql(database, "ALTER TABLE test.parent CONVERT TO CHARACTER SET utf8mb4")
    key = b"\xed\xa0\x80"
    with serving(database.dsn, "--profile", "mysql-5.6") as served, served.connect() as client:
        assert ask(client, b"get @@parent.%s\r\nget a %s c\r\n" % (key, key)) == MISS + (
            b"VALUE a 0 1\r\n1\r\nVALUE c 0 1\r\n3\r\nEND\r\n"
        )
        assert ask(client, b"delete %s\r\nincr %s 1\r\n" % (key, key)) == NOT_FOUND * 2
        errors = [
            b"SERVER_ERROR column %s holds utf8mb4 text, byte 0 of the data is none\r\n" % name for name in (b"k", b"v")
        ]
        assert ask(client, b"set %s 0 0 1\r\n1\r\nset a 0 0 3\r\n%s\r\n" % (key, key)) == b"".join(errors)
        assert ask(client, b"get a\r\n") == b"VALUE a 0 1\r\n1\r\nEND\r\n"


def test_foreign_keys_that_the_account_may_just_see(database: SQLServer) -> None:
    sql(
        database,
        "CREATE USER 'kv'@'%'",
        "GRANT SELECT ON innodb_memcache.* TO 'kv'@'%'",
        *[f"GRANT SELECT, INSERT, UPDATE, DELETE ON test.{table} TO 'kv'@'%'" for table in ("parent", "demo_test")],
        "GRANT REFERENCES ON test.cascade_child TO 'kv'@'%'",
        "DELETE FROM test.restrict_child",
    )
    dsn = f"mysql://kv@{database.host}:{database.port}/"
    try:
        with serving(dsn, "--profile", "mysql-5.6") as served, served.connect() as client:
            assert ask(client, b"bind parent\r\nflush_all\r\n") == b"SUCCEED\r\n" + NOT_FLUSHED
        assert sql(database, "SELECT k FROM test.cascade_child") == [("s",)]
    finally:
        sql(database, "DROP USER 'kv'@'%'")


@pytest.mark.parametrize("profile", ["kvref", *PLUGIN])
def test_triggers_fire(database: SQLServer, profile: str) -> None:
    # The plugin fires none (columns:trig-*): what a table's triggers do begins with kvref.
    with serving(database.dsn, "--profile", profile) as served, served.connect() as client:
        assert ask(client, b"set @@watched.k 0 0 3\r\nabc\r\nget k\r\n") == STORED + b"VALUE k 0 3\r\nABC\r\nEND\r\n"
        assert ask(client, b"set k 0 0 1\r\nx\r\nincr k 1\r\ndelete k\r\n").endswith(DELETED)
        refused = ask(client, b"set n 0 0 3\r\nbad\r\n")
        assert refused == (b"SERVER_ERROR 1644 bad is refused\r\n" if profile == "kvref" else NOT_STORED)
        assert ask(client, b"get n\r\nadd m 0 0 1\r\n1\r\nflush_all\r\n") == MISS + STORED + OK
    seen = [what for (what,) in sql(database, "SELECT what FROM test.audit")]
    updates = 1 if profile == "kvref" else 2  # a text that is not a number counts as 0 for the plugin
    flushed = [] if profile == "mysql-8.0" else ["delete m"]  # its flush_all is a TRUNCATE (columns:flush-009)
    assert seen == ["insert k", *["update k"] * updates, "delete k", "insert m", *flushed]


@pytest.mark.parametrize("profile", ["kvref", *PLUGIN])
def test_checks_hold(database: SQLServer, profile: str) -> None:
    # As the plugin passes them by; MySQL has no such switch.
    off = profile != "kvref" and "MariaDB" in database.version
    with serving(database.dsn, "--profile", profile) as served, served.connect() as client:
        assert ask(client, b"set @@checked.k 0 0 1\r\na\r\n") == STORED
        for write in (b"set k 0 0 1\r\ny\r\n", b"set n 0 0 1\r\ny\r\n", b"prepend k 0 0 1\r\nz\r\n"):
            refused = ask(client, write)
            if profile == "kvref":
                number = b"4025" if "MariaDB" in database.version else b"3819"
                assert refused.startswith(b"SERVER_ERROR " + number)
                assert b"short" in refused
            else:
                assert refused == (STORED if off else NOT_STORED)
    assert sql(database, "SELECT * FROM test.checked ORDER BY k") == (
        [("k", "zy"), ("n", "y")] if off else [("k", "a")]
    )
