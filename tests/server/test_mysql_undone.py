"""Transactions that the server rolls back by itself: their writes run again, or are not acknowledged.

A node of a Galera cluster does so for another node's write at any moment, and reports it in the reply to the next
statement; with innodb_rollback_on_timeout any server does so if a row stays locked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8, MYSQL_9
from helpers.proxy import PING, Proxy, proxy_to
from helpers.serving import Served, ask, serving, stats
from server.at_once import Crowd, answer, put

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture(scope="module", params=[MYSQL_8, MYSQL_9, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param, ("--innodb-rollback-on-timeout=ON",)) as server:
        sql(server, "CREATE USER 'kv'@'%'", "GRANT ALL ON *.* TO 'kv'@'%'")
        yield server


@pytest.fixture(scope="module")
def proxy(database: SQLServer) -> Iterator[Proxy]:
    with proxy_to(database.host, database.port) as between:
        yield between


def dsn(database: SQLServer, proxy: Proxy, options: str = "") -> str:
    return f"mysql://kv@{database.host}:{proxy.port}/{options}"


@pytest.fixture(scope="module")
def together(database: SQLServer, proxy: Proxy) -> Iterator[Served]:
    with serving(dsn(database, proxy)) as running:
        yield running


@pytest.fixture(scope="module")
def one_by_one(database: SQLServer, proxy: Proxy) -> Iterator[Served]:
    with serving(dsn(database, proxy, "?coalesce=0")) as running:
        yield running


@pytest.fixture(autouse=True)
def empty(database: SQLServer) -> Iterator[None]:
    yield
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


UPDATE = b"UPDATE `"
FIRST = 10  # what both rows have


@dataclass(frozen=True)
class Case:
    """A command that four connections send at once on row `a`.

    request: it may name the row's cas number.
    replies: of one after the other, sorted.
    left: in the row in the end.
    write: the beginning of the statement that writes.
    """

    request: bytes
    replies: list[bytes]
    left: str | None
    write: bytes = UPDATE


CASES = {
    "incr": Case(b"incr a 1\r\n", [b"11\r\n", b"12\r\n", b"13\r\n", b"14\r\n"], "14"),
    "decr": Case(b"decr a 1\r\n", [b"6\r\n", b"7\r\n", b"8\r\n", b"9\r\n"], "6"),
    "append": Case(put("a", "x", "append"), [b"STORED\r\n"] * 4, "10xxxx"),
    "prepend": Case(put("a", "x", "prepend"), [b"STORED\r\n"] * 4, "xxxx10"),
    "cas": Case(b"cas a 0 0 1 %d\r\nx\r\n", [b"EXISTS\r\n"] * 3 + [b"STORED\r\n"], "x"),
    "set": Case(put("a", "x"), [b"STORED\r\n"] * 4, "x"),
    "replace": Case(put("a", "x", "replace"), [b"STORED\r\n"] * 4, "x"),
    "add": Case(put("new", "x", "add"), [b"NOT_STORED\r\n"] * 3 + [b"STORED\r\n"], "10", b"INSERT INTO"),
    "delete": Case(b"delete a\r\n", [b"DELETED\r\n"] + [b"NOT_FOUND\r\n"] * 3, None, b"DELETE FROM"),
}
COUNTED = CASES["incr"].replies  # of clients that increment row `b` at the same time


def prepared(served: Served, verb: str) -> bytes:
    """Write the rows and return the command."""
    with served.connect() as client:
        for key in ("a", "b"):
            assert ask(client, put(key, str(FIRST))) == b"STORED\r\n"
        cas = int(ask(client, b"gets a\r\n").split()[4])
    return CASES[verb].request % cas if verb == "cas" else CASES[verb].request


def check(database: SQLServer, verb: str, replies: list[bytes]) -> None:
    """Compare replies and rows with those of the commands one after the other."""
    assert sorted(replies) == CASES[verb].replies
    rows = dict(sql(database, "SELECT c1, c2 FROM test.demo_test"))
    assert (rows.get("a"), rows.get("new")) == (CASES[verb].left, "x" if verb == "add" else None)


@contextmanager
def locked(database: SQLServer, key: str) -> Iterator[None]:
    """Lock a row for the block."""
    with closing(database.connect(30)) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM test.demo_test WHERE c1 = %s FOR UPDATE", (key,))
        yield
        cursor.execute("COMMIT")


@pytest.mark.parametrize("verb", CASES)
@pytest.mark.parametrize("received", [None, PING], ids=["server", "ping"])
def test_a_locked_row_ends_the_transaction_of_others(
    database: SQLServer, proxy: Proxy, together: Served, verb: str, received: bytes | None
) -> None:
    """Each turn of one group meets the locked row: the server itself ends the transaction, or the ping reports it."""
    request = prepared(together, verb)
    with Crowd(together, 8) as crowd:
        with locked(database, "b"):
            if received is not None:
                proxy.trap(received, "abort")
            crowd.send([request, b"incr b 1\r\n"] * 4)
            replies = [answer(client) for client in crowd.clients[::2]]
        assert sorted(answer(client) for client in crowd.clients[1::2]) == COUNTED
    assert proxy.trapped
    check(database, verb, replies)


@pytest.mark.parametrize("verb", CASES)
@pytest.mark.parametrize("received", [b" FOR UPDATE NOWAIT", b"", b"\x03COMMIT"], ids=["look-up", "write", "commit"])
def test_a_statement_ends_the_transaction_of_all(
    database: SQLServer, proxy: Proxy, together: Served, verb: str, received: bytes
) -> None:
    request = prepared(together, verb)
    with Crowd(together, 8) as crowd:
        proxy.trap(received or CASES[verb].write, "abort")
        replies = crowd.ask([request, b"incr b 1\r\n"] * 4)
    assert proxy.trapped
    assert sorted(replies[1::2]) == COUNTED
    check(database, verb, replies[::2])


@pytest.mark.parametrize("verb", CASES)
@pytest.mark.parametrize("received", [b" FOR UPDATE", b"", b"\x03COMMIT"], ids=["look-up", "write", "commit"])
def test_a_statement_ends_the_transaction_of_one(
    database: SQLServer, proxy: Proxy, one_by_one: Served, verb: str, received: bytes
) -> None:
    request = prepared(one_by_one, verb)
    with Crowd(one_by_one, 4) as crowd:
        proxy.trap(received or CASES[verb].write, "abort")
        replies = crowd.ask([request] * 4)
    assert proxy.trapped
    check(database, verb, replies)


@pytest.mark.parametrize(
    "received", [b" FOR UPDATE", b"INSERT INTO", b"\x03COMMIT"], ids=["look-up", "write", "commit"]
)
def test_a_command_that_runs_again_counts_once(proxy: Proxy, one_by_one: Served, received: bytes) -> None:
    with one_by_one.connect() as client:
        before = stats(client)
        proxy.trap(received, "abort")
        assert ask(client, put("new", "x")) == b"STORED\r\n"
        assert proxy.trapped
        after = stats(client)
    for name in ("cmd_set", "total_items"):
        assert int(after[name]) - int(before[name]) == 1, name


@pytest.mark.parametrize(
    "received", [b" FOR UPDATE", UPDATE, b"\x03COMMIT", PING], ids=["look-up", "write", "commit", "ping"]
)
def test_a_batch_is_lost_whole_and_reported(database: SQLServer, proxy: Proxy, received: bytes) -> None:
    settings = ("--set", "daemon_memcached_w_batch_size=3", "--set", "innodb_lock_wait_timeout=1")
    with serving(dsn(database, proxy), *settings) as served, served.connect() as client:
        sql(database, "INSERT INTO test.demo_test (c1, c2) VALUES ('a', '10'), ('b', '10'), ('c', '10')")
        assert ask(client, b"incr a 1\r\n") == b"11\r\n"
        assert ask(client, b"incr b 1\r\n") == b"11\r\n"
        proxy.trap(received, "abort")
        with locked(database, "c") if received == PING else nullcontext():
            reply = ask(client, b"incr c 1\r\n")
        assert proxy.trapped
        assert re.match(rb"SERVER_ERROR .*: [23] pending writes are lost\r\n", reply)
        assert ask(client, b"incr a 1\r\n" * 3) == b"11\r\n12\r\n13\r\n"
    assert sql(database, "SELECT c2 FROM test.demo_test WHERE c1 IN ('a', 'b', 'c')") == [("13",), ("10",), ("10",)]


def test_a_get_without_a_row_does_not_hide_that_a_batch_is_lost(database: SQLServer, proxy: Proxy) -> None:
    batches = ("--set", "daemon_memcached_w_batch_size=5", "--set", "daemon_memcached_r_batch_size=9")
    with serving(dsn(database, proxy), *batches) as served, served.connect() as client:
        assert ask(client, put("a", "1")) == b"STORED\r\n"
        proxy.trap(b"FROM `test`.`demo_test`", "abort")
        # No row can have the first key: the error of the SELECT for both gets is not raised in its steps.
        replies = ask(client, b"get " + b"k" * 40 + b"\r\nget a\r\n")
        assert proxy.trapped
        assert re.fullmatch(rb"END\r\nSERVER_ERROR .*: 1 pending writes are lost\r\n", replies), replies
    assert sql(database, "SELECT c2 FROM test.demo_test WHERE c1 = 'a'") == []
