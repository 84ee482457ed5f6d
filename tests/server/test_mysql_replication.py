"""A source and its replica: what is written through kvref arrives, and kvref over the replica reads but does not write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from helpers.database import database_or_skip, sql
from helpers.serving import ask, serving

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.nightly]
STORED = b"STORED\r\n"
ROWS = "SELECT c1, c2, c3, c4, c5 FROM test.demo_test ORDER BY c1"
# Each is refused by a server that takes no writes.
WRITES = (b"set a 0 0 1\r\nx\r\n", b"add z 0 0 1\r\nx\r\n", b"incr n 1\r\n", b"delete a\r\n", b"flush_all\r\n")


@dataclass(frozen=True)
class Pair:
    """A source and a replica that follows it from now on."""

    source: SQLServer
    replica: SQLServer

    def follow(self) -> None:
        """Wait until the replica has what the source has written."""
        ((file, position, *_),) = sql(self.source, "SHOW MASTER STATUS")
        ((waited,),) = sql(self.replica, f"SELECT SOURCE_POS_WAIT('{file}', {position}, 30)")
        assert waited is not None, sql(self.replica, "SHOW REPLICA STATUS")
        assert waited >= 0

    def dsn(self) -> str:
        """Return the replica's DSN for an account that may not write to a server that is read-only."""
        return f"mysql://kv@{self.replica.host}:{self.replica.port}/"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with (
        database_or_skip("mysql-8.0", ["--server-id=1", "--log-bin=binlog"]) as source,
        database_or_skip("mysql-8.0", ["--server-id=2", "--relay-log=relay"]) as replica,
    ):
        ((file, position, *_),) = sql(source, "SHOW MASTER STATUS")
        sql(
            source,
            "CREATE USER 'follower'@'%' IDENTIFIED WITH mysql_native_password BY 'f'",
            "GRANT REPLICATION SLAVE ON *.* TO 'follower'@'%'",
            "CREATE USER 'kv'@'%'",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO 'kv'@'%'",
        )
        sql(
            replica,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{source.host}', SOURCE_PORT = {source.port},"
            f" SOURCE_USER = 'follower', SOURCE_PASSWORD = 'f', SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {position}",
            "START REPLICA",
        )
        yield Pair(source, replica)


@pytest.fixture
def written(pair: Pair) -> Iterator[Pair]:
    with serving(pair.source.dsn) as served, served.connect() as client:
        reply = (
            b"set a 7 0 6\r\nh\xc3\xa9llo\r\nset n 0 0 2\r\n41\r\nincr n 1\r\nset gone 0 0 1\r\nx\r\ndelete gone\r\n"
        )
        assert ask(client, reply) == STORED * 2 + b"42\r\n" + STORED + b"DELETED\r\n"
        assert ask(client, b"append a 0 0 1\r\n!\r\nset late 0 2000000000 1\r\nx\r\n") == STORED * 2
    pair.follow()
    yield pair
    sql(pair.source, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")
    pair.follow()


def test_what_kvref_writes_arrives_on_the_replica(written: Pair) -> None:
    rows = sql(written.source, ROWS)
    assert [row[:3] for row in rows] == [
        ("a", "héllo!", 7),
        ("AA", "HELLO, HELLO", 8),
        ("late", "x", 0),
        ("n", "42", 0),
    ]
    assert sql(written.replica, ROWS) == rows
    with serving(written.source.dsn) as served, served.connect() as client:
        assert ask(client, b"flush_all\r\nset AA 8 0 12\r\nHELLO, HELLO\r\n") == b"OK\r\n" + STORED
    written.follow()
    assert sql(written.replica, ROWS) == sql(written.source, ROWS)


@pytest.mark.parametrize("option", ["read_only", "super_read_only"])
def test_kvref_over_a_replica_reads_and_says_why_it_does_not_write(written: Pair, option: str) -> None:
    requests = b"gets a n AA gone\r\nget @>=a@<=n\r\nget @@aaa.a\r\n"
    with serving(written.source.dsn) as served, served.connect() as client:
        of_the_source = ask(client, requests)
        assert of_the_source.count(b"VALUE ") == 8
    before = sql(written.replica, ROWS)
    sql(written.replica, f"SET GLOBAL {option} = 1")
    # Root may write where only read_only is set, as the replication does.
    dsn = written.dsn() if option == "read_only" else written.replica.dsn
    try:
        with serving(dsn) as served, served.connect() as client:
            assert ask(client, requests) == of_the_source
            for write in WRITES:
                answer = ask(client, write)
                assert answer.startswith(b"SERVER_ERROR 1290 The MySQL server is running with the --"), write
                assert option.replace("_", "-").encode() in answer
            assert sql(written.replica, ROWS) == before
            sql(written.source, "UPDATE test.demo_test SET c2 = 'newer' WHERE c1 = 'a'")
            written.follow()
            assert ask(client, b"get a\r\n") == b"VALUE a 7 5\r\nnewer\r\nEND\r\n"
    finally:
        sql(written.replica, "SET GLOBAL super_read_only = 0, GLOBAL read_only = 0")


def test_a_replica_becomes_the_source(written: Pair) -> None:
    sql(written.replica, "SET GLOBAL super_read_only = 1")
    try:
        with serving(written.replica.dsn) as served, served.connect() as client:
            assert ask(client, b"incr n 1\r\n").startswith(b"SERVER_ERROR 1290 ")
            sql(written.replica, "STOP REPLICA", "SET GLOBAL super_read_only = 0, GLOBAL read_only = 0")
            assert ask(client, b"incr n 1\r\ndecr n 1\r\n") == b"43\r\n42\r\n"
    finally:
        sql(written.replica, "SET GLOBAL super_read_only = 0, GLOBAL read_only = 0", "START REPLICA")


def test_a_log_of_statements_is_refused_with_the_cause(pair: Pair) -> None:
    sql(pair.source, "SET GLOBAL binlog_format = 'STATEMENT'")
    try:
        with serving(pair.source.dsn) as served, served.connect() as client:
            answer = ask(client, b"set a 0 0 1\r\nx\r\n")
            assert answer.startswith(b"SERVER_ERROR 1665 Cannot execute statement: impossible to write to binary log")
            assert ask(client, b"get a\r\n") == b"END\r\n"
    finally:
        sql(pair.source, "SET GLOBAL binlog_format = 'ROW'")
