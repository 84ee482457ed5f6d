"""What a replica gets of batches: in ROW format the binary log has one transaction for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8
from helpers.serving import ask, serving

from kvref_testbed.targets import SQLServer

pytestmark = pytest.mark.live
STORED = b"STORED\r\n"
OPTIONS = ("--server-id=1", "--log-bin=binlog", "--binlog-format=ROW")
# Names of row events: those of MariaDB end in _v1.
ROWS = {"Write_rows": "W", "Update_rows": "U", "Delete_rows": "D"}


@pytest.fixture(scope="module", params=[MYSQL_8, "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[SQLServer]:
    with database_or_skip(request.param, OPTIONS) as server:
        yield server


def transactions(database: SQLServer, since: int) -> list[str]:
    """Return the transactions logged behind a position: a letter for each event of rows, in their order."""
    ((file, *_),) = sql(database, "SHOW MASTER STATUS")
    found = []
    for _, _, kind, _, _, _ in sql(database, f"SHOW BINLOG EVENTS IN '{file}' FROM {since}"):
        if kind in ("Gtid", "Anonymous_Gtid"):
            found.append("")
        elif kind.removesuffix("_v1") in ROWS:
            found[-1] += ROWS[kind.removesuffix("_v1")]
    return found


def position(database: SQLServer) -> int:
    ((_, number, *_),) = sql(database, "SHOW MASTER STATUS")
    return int(number)


@pytest.mark.parametrize("batch", [1, 8, 32])
def test_there_are_as_many_transactions_as_batches(database: SQLServer, batch: int) -> None:
    since = position(database)
    settings = ("--set", f"daemon_memcached_w_batch_size={batch}", "--set", "innodb_api_bk_commit_interval=1000")
    with serving(database.dsn, *settings) as served, served.connect() as one, served.connect() as two:
        for client, key in ((one, "a"), (two, "b")):
            for number in range(32):
                assert ask(client, b"set %s%d 0 0 1\r\nx\r\n" % (key.encode(), number)) == STORED
        assert transactions(database, since) == ["W" * batch] * (2 * 32 // batch)
        since = position(database)
        # Own changes of one batch, or of a group that arrives together, in their order; reads of others and what fails
        # log nothing.
        assert ask(
            one, b"set a1 0 0 1\r\ny\r\nadd a1 0 0 1\r\ny\r\ndelete b1\r\ndelete none\r\nset c 0 0 1\r\nx\r\n"
        ) == (STORED + b"NOT_STORED\r\nDELETED\r\nNOT_FOUND\r\n" + STORED)
        assert ask(two, b"get a1 c\r\n").endswith(b"END\r\n")
        assert transactions(database, since) == (["UDW"] if batch == 1 else [])
        one.close()
        two.close()
        served.process.terminate()
        served.process.wait(timeout=60)
    assert transactions(database, since) == ["UDW"]
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")


def test_a_batch_that_is_taken_back_is_not_logged(database: SQLServer) -> None:
    since = position(database)
    settings = ("--profile", "mysql-8.0", "--set", "daemon_memcached_w_batch_size=8")
    with serving(database.dsn, *settings) as served, served.connect() as client:
        assert ask(client, b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\ndelete none\r\n") == STORED * 2 + b"NOT_FOUND\r\n"
        assert ask(client, b"set c 0 0 1\r\nx\r\nget c\r\n").startswith(STORED + b"VALUE c")
    assert transactions(database, since) == ["W"]
    assert sql(database, "SELECT c1 FROM test.demo_test WHERE c1 <> 'AA'") == [("c",)]
    sql(database, "DELETE FROM test.demo_test WHERE c1 <> 'AA'")
