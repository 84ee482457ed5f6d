"""No get is older than a commit that was answered before it."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack

import pytest
from helpers.database import database_or_skip, sql
from helpers.live import MYSQL_8, MYSQL_9, nightly
from helpers.proxy import proxy_to
from helpers.row_cache_checker import OPTIONS, SERVE, StaleError, Stepper, create_tables, local_dsn
from helpers.serving import Served, ask, command, running, serving
from server.row_cache import defects
from server.row_cache.checks import check, crashing, fill, logs_cascades

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


# The local log sees what the query of the position sees, and at night both are tested.
@pytest.mark.parametrize("dsn", [nightly("address"), "socket"], indirect=True)
def test_no_get_is_older_than_a_commit_before_it(database: SQLServer, cached: Served) -> None:
    found = check(database, cached, 28, 120, 1.5)
    assert found["hits"] > 300


@pytest.mark.parametrize("dsn", ["address", nightly("socket")], indirect=True)
def test_no_get_is_older_after_a_crash_of_kvref_or_of_the_database(database: SQLServer, dsn: str) -> None:
    assert crashing(database, dsn, 3, 15, 3) > 1000


REPLICATION = {
    "mysql": (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {port}, SOURCE_USER = 'follower',"
        " SOURCE_PASSWORD = 'f', SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = {offset}, GET_SOURCE_PUBLIC_KEY = 1",
        "SELECT SOURCE_POS_WAIT('{file}', {offset}, 60)",
    ),
    "mariadb": (
        "CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}, MASTER_USER = 'follower',"
        " MASTER_PASSWORD = 'f', MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {offset}",
        "SELECT MASTER_POS_WAIT('{file}', {offset}, 60)",
    ),
}


def log_position(database: SQLServer) -> dict[str, object]:
    newest = database.version.startswith("9")
    ((file, offset, *_),) = sql(database, "SHOW BINARY LOG STATUS" if newest else "SHOW MASTER STATUS")
    return {"host": database.host, "port": database.port, "file": file, "offset": offset}


@pytest.mark.parametrize("name", [MYSQL_8, MYSQL_9, "mariadb"])
@pytest.mark.parametrize(
    "crashes", [pytest.param(False, id="switchover", marks=pytest.mark.nightly), pytest.param(True, id="crash")]
)
def test_no_get_is_older_after_a_failover_to_a_replica(name: str, crashes: bool) -> None:
    start, wait = REPLICATION["mariadb" if name == "mariadb" else "mysql"]
    replica_options = [*OPTIONS[name], "--server-id=2"]
    with (
        database_or_skip(name, OPTIONS[name]) as source,
        database_or_skip(name, replica_options) as replica,
        proxy_to(source.host, source.port) as proxy,
    ):
        sql(
            source,
            "CREATE USER 'follower'@'%' IDENTIFIED BY 'f'",
            "GRANT REPLICATION SLAVE ON *.* TO 'follower'@'%'",
        )
        sql(replica, start.format(**log_position(source)), "START REPLICA")
        create_tables(source)

        def switch() -> None:
            ((waited,),) = sql(replica, wait.format(**log_position(source)))
            assert waited is not None
            assert waited >= 0
            sql(replica, "STOP REPLICA")
            if crashes:
                source.kill()
            proxy.redirect((replica.host, replica.port))

        dsn = source.dsn.replace(str(source.port), str(proxy.port))
        with serving(dsn, *SERVE) as one, serving(dsn, *SERVE) as other, ExitStack() as stack:
            servers = [one, other]

            def connect(number: int) -> socket.socket:
                return stack.enter_context(servers[number].connect())

            for each in servers:
                each.wait_for("following the binary log")
            stepper = Stepper(source, connect, 5, stack, len(servers))
            stepper.run(60)
            stepper.move(replica, switch)
            stepper.run(60)
            for each in servers:
                client = stack.enter_context(each.connect())
                ask(client, b"bind raced\r\n")
                sql(replica, "REPLACE INTO test.raced VALUES ('r', '1')")
                fill(client, "r")


LOCAL = ("end_of_log_not_compared",)


@pytest.mark.nightly
@pytest.mark.parametrize("defect", defects.DEFECTS)
def test_each_defect_is_found(database: SQLServer, defect: str) -> None:
    if defect == "cascade_missed" and logs_cascades(database):
        pytest.skip("no cascade can be missed: the log has them")
    dsn = local_dsn(database) if defect in LOCAL else database.dsn
    words = [
        sys.executable,
        defects.__file__,
        defect,
        *command(dsn)[3:],
        "--listen",
        "127.0.0.1:0",
        *SERVE,
    ]
    with running(words, dsn) as served:
        served.wait_for("following the binary log")
        with pytest.raises(StaleError):
            for seed in range(20):
                check(database, served, seed, 60, 2)
