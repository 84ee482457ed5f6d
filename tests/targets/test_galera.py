"""The cluster: it comes and goes as every target, its nodes have the same rows, and each comes back from every end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers.live import missing_skips
from helpers.waiting import until_equal

from kvref.errors import TargetError
from kvref.storage.mysql.login import parse
from kvref_testbed import targets
from kvref_testbed.targets import GaleraCluster
from kvref_testbed.targets.galera import GaleraNode

pytestmark = [pytest.mark.live, pytest.mark.nightly]


@pytest.fixture(scope="module")
def galera() -> Iterator[GaleraCluster]:
    with ExitStack() as stack:
        with missing_skips():
            cluster = stack.enter_context(targets.galera_cluster(["--max-connections=77"]))
        requests(cluster.nodes[0], "CREATE TABLE test.met (k INT PRIMARY KEY)")
        yield cluster


def requests(node: GaleraNode, *statements: str) -> list[tuple[Any, ...]]:
    with closing(node.connect(60)) as connection, connection.cursor() as cursor:
        for statement in ("SET SESSION wsrep_sync_wait = 1", *statements):
            cursor.execute(statement)
        return list(cursor.fetchall())


def met(cluster: GaleraCluster) -> list[int]:
    """Return the rows, which all nodes have."""
    seen = [[row[0] for row in requests(node, "SELECT k FROM test.met ORDER BY k")] for node in cluster.nodes]
    assert seen == [seen[0]] * 3
    return seen[0]


def wait_for_size(node: GaleraNode, count: int) -> None:
    """Wait until a node sees so many, itself with them."""
    until_equal(lambda: node.status("wsrep_cluster_size"), str(count))


def test_three_nodes_with_the_same_rows(galera: GaleraCluster) -> None:
    assert len(galera.nodes) == 3
    login = parse(galera.dsn, {})
    assert login.nodes == tuple((each.host, each.port) for each in galera.nodes)
    for number, node in enumerate(galera.nodes):
        assert node.status("wsrep_cluster_size") == "3"
        requests(node, f"INSERT INTO test.met VALUES ({number})")
        assert requests(node, "SELECT @@max_connections, @@innodb_flush_log_at_trx_commit, @@port") == [
            (77, 1, node.port)
        ]
    assert met(galera) == [0, 1, 2]
    with pytest.raises(TargetError, match=r"node2 runs already, pid \d+: stop or kill it first"):
        galera.nodes[1].start()
    with pytest.raises(TargetError, match="node1, node2, node3 runs: stop all nodes before you bootstrap"):
        galera.bootstrap()
    requests(galera.nodes[0], "DELETE FROM test.met")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (GaleraNode.kill, GaleraNode.start),
        (GaleraNode.stop, GaleraNode.start),
        (GaleraNode.pause, GaleraNode.resume),
        (GaleraNode.cut_off, GaleraNode.reunite),
    ],
    ids=["kill", "stop", "pause", "cut off"],
)
def test_a_node_comes_back(
    galera: GaleraCluster, begin: Callable[[GaleraNode], None], end: Callable[[GaleraNode], None]
) -> None:
    one, two, _ = galera.nodes
    begin(one)
    assert one.running() is (begin in (GaleraNode.pause, GaleraNode.cut_off))
    try:
        # Written by those that are left, as soon as they go on.
        requests(two, "REPLACE INTO test.met VALUES (7)")
        wait_for_size(two, 2)
    finally:
        end(one)
    one.wait_until_synced()
    assert met(galera) == [7]
    for node in galera.nodes:
        wait_for_size(node, 3)
    requests(two, "DELETE FROM test.met")


def test_a_node_that_has_nothing_gets_everything(galera: GaleraCluster) -> None:
    node = galera.nodes[2]
    requests(galera.nodes[0], "REPLACE INTO test.met VALUES (1), (2)")
    node.kill()
    for each in node.server.data.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    node.start()
    assert met(galera) == [1, 2]
    requests(node, "DELETE FROM test.met")


def test_the_cluster_comes_back_with_what_its_last_node_had(galera: GaleraCluster) -> None:
    one, two, three = galera.nodes
    one.stop()
    requests(two, "REPLACE INTO test.met VALUES (1)")
    two.stop()
    requests(three, "REPLACE INTO test.met VALUES (2)")
    three.kill()
    galera.bootstrap()
    assert met(galera) == [1, 2]
    requests(one, "DELETE FROM test.met")


def test_it_comes_and_goes(state: Path, kvref_json: Any, available: Callable[[str], None]) -> None:
    available("galera")
    up = kvref_json("up", "galera")
    assert (up["address"], up["profile"], up["store"]) == (None, None, None)
    assert "MariaDB" in up["version"]
    folder = Path(up["folder"])
    running = [
        each
        for each in psutil.process_iter(["name", "cmdline"])
        if each.info["name"] == "mariadbd" and f"--datadir={folder}" in str(each.info["cmdline"])
    ]
    assert len(running) == 3
    login = parse(up["sql"], {})
    assert len(login.nodes) == 3
    kvref_json("down", "galera")
    psutil.wait_procs(running, timeout=10)
    assert not any(each.is_running() for each in running)
    assert not folder.exists()
