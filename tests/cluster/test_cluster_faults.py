"""Faults of a Galera cluster under writes: acknowledged writes survive, no reply is wrong, and service returns.

`KVREF_FAULT_LENGTH=full` runs ten cycles of each fault; KVREF_FAULTS names a file that gets a line for each.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster.generator import UNKNOWN, Writer, without_service, writing
from cluster.rows import ACCOUNT, dsn, query, rows, used
from helpers.serving import Served, serving
from helpers.waiting import until, until_equal

from kvref_testbed.targets import GaleraCluster
from kvref_testbed.targets.galera import GaleraNode

NONE_AVAILABLE = b"none of the 3 servers is available"
CYCLES = 10 if os.environ.get("KVREF_FAULT_LENGTH") == "full" else 1

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(120 + 60 * CYCLES)]


@dataclass(frozen=True)
class Fault:
    """What happens to a node, and what is to be seen of it.

    name: in the record.
    begin, end: of the fault; the node has joined again some time after its end.
    expected: in words.
    of_used: it hits the node that kvref uses; else another.
    """

    name: str
    begin: Callable[[GaleraNode], None]
    end: Callable[[GaleraNode], None]
    expected: str
    of_used: bool = True


FAULTS = [
    Fault(
        "galera-kill",
        GaleraNode.kill,
        GaleraNode.start,
        "Commands in their COMMIT get the reply that it is not known whether they were written; all others run on another"
        " node as soon as the cluster continues, evs.suspect_timeout (2 s) later.",
    ),
    Fault(
        "galera-sigstop",
        GaleraNode.pause,
        GaleraNode.resume,
        "kvref leaves the node timeout= (3 s) after its last reply; until then commands wait, and those in their COMMIT"
        " get the reply that it is not known whether they were written.",
    ),
    Fault(
        "galera-cut-off",
        GaleraNode.cut_off,
        GaleraNode.reunite,
        "The node stops serving after it has lost contact with the others (2 to 4 s), and kvref leaves it; the outcome of"
        " a COMMIT in progress is reported as unknown, or the command is repeated on another node if the node reports that"
        " it did nothing; while the others have not agreed on their members, commands get the reply that no server is"
        " available.",
    ),
    Fault(
        "galera-kill-other",
        GaleraNode.kill,
        GaleraNode.start,
        "kvref keeps its node; writes wait until the cluster continues without the other one (2 s), and none fails.",
        of_used=False,
    ),
]


@pytest.fixture
def served(galera: GaleraCluster) -> Iterator[Served]:
    with serving(dsn(*galera.nodes, options="?timeout=3"), "--set", "innodb_lock_wait_timeout=5") as running:
        yield running
    query(galera.nodes[0], "DELETE FROM test.demo_test")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_acknowledged_is_lost(fault: Fault, galera: GaleraCluster, served: Served) -> None:
    began = time.monotonic()
    acknowledged, gaps = 0, []
    lost: list[str] = []
    for cycle in range(CYCLES):
        with writing(served, f"c{cycle}w") as writers:
            before = used(galera)
            node = before if fault.of_used else next(each for each in galera.nodes if each is not before)
            fault.begin(node)
            for each in writers:
                each.wait_for_an_acknowledgement()
            now = used_of(galera, without=node)
            assert (now is before) is not fault.of_used
            fault.end(node)
            for each in galera.nodes:
                each.wait_until_synced()
            for each in writers:
                each.wait_for_an_acknowledgement()
        lost += differences(galera, writers)
        acknowledged += sum(len(each.times) for each in writers)
        gaps.append(without_service(writers))
        refusals = [reply for each in writers for reply in each.refusals]
        # A write that was not in its COMMIT runs again without an error, if there is a node for it.
        assert all(UNKNOWN in reply or NONE_AVAILABLE in reply for reply in refusals), set(refusals)
        assert fault.of_used or refusals == []
    tell(fault, time.monotonic() - began, acknowledged, len(lost), max(gaps))
    assert lost == []


def used_of(cluster: GaleraCluster, without: GaleraNode) -> GaleraNode:
    """Return the node that kvref uses, among those that answer."""
    return used(GaleraCluster([each for each in cluster.nodes if each is not without]))


def differences(cluster: GaleraCluster, writers: list[Writer]) -> list[str]:
    """Return acknowledged rows that differ on any node; no writer got a wrong reply, and all nodes agree."""
    assert [wrong for each in writers for wrong in each.wrong] == []
    seen = [rows(node) for node in cluster.nodes]
    assert seen == [seen[0]] * len(seen)
    return [text for each in writers for text in each.differences(seen[0])]


def tell(fault: Fault, seconds: float, acknowledged: int, lost: int, gap: float) -> None:
    """Write the line of a fault to the file, if one is configured."""
    line = {
        "fault": fault.name,
        "expected": fault.expected,
        "seconds": round(seconds, 1),
        "cycles": CYCLES,
        "acknowledged": acknowledged,
        "lost": lost,
        "without_service_s": round(gap, 2),
    }
    print(json.dumps(line))  # noqa: T201 - for `pytest -rP`
    if path := os.environ.get("KVREF_FAULTS"):
        with Path(path).open("a", encoding="utf-8") as record:
            record.write(json.dumps(line) + "\n")


def test_the_whole_cluster_is_killed_and_comes_back(galera: GaleraCluster, served: Served) -> None:
    with writing(served, "all") as writers:
        for node in galera.nodes:
            node.kill()
        until(lambda: all(any(NONE_AVAILABLE in each for each in writer.refusals) for writer in writers))
        galera.bootstrap()
        for each in writers:
            each.wait_for_an_acknowledgement()
    assert differences(galera, writers) == []


def test_several_processes_on_one_port_go_to_the_same_node(galera: GaleraCluster) -> None:
    options = ("--workers", "2", "--set", "innodb_lock_wait_timeout=5")
    with serving(dsn(*galera.nodes, options="?timeout=3"), *options) as served, writing(served, "w") as writers:
        node = used(galera)
        node.kill()
        for each in writers:
            each.wait_for_an_acknowledgement()
        assert used_of(galera, without=node) is not node
        node.start()
    assert differences(galera, writers) == []
    query(node, "DELETE FROM test.demo_test")


def test_a_node_that_is_made_read_only_is_left_without_a_word(galera: GaleraCluster, served: Served) -> None:
    with writing(served, "r") as writers:
        node = used(galera)
        # Whose account may write all the same: nothing fails while kvref changes over.
        query(node, "SET GLOBAL read_only = 1")
        try:
            idle = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{ACCOUNT}' AND time_ms < 1500"
            until_equal(lambda: query(node, idle), [(0,)])
            for each in writers:
                each.wait_for_an_acknowledgement()
        finally:
            query(node, "SET GLOBAL read_only = 0")
    assert differences(galera, writers) == []
    assert [each.refusals for each in writers] == [[]] * len(writers)
