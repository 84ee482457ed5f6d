"""Faults of a Vitess cluster under writes: no acknowledged write is lost, and service returns as soon as without kvref.

`KVREF_FAULT_LENGTH=full` runs ten cycles of each fault; KVREF_FAULTS names a file that gets a line for each.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from cluster.generator import CLIENTS, NumberWriter, Writer, started, without_service
from cluster.sql_writer import SQLWriter
from cluster.vitess import FOUR_SHARDS, vitess_cluster_or_skip
from helpers.serving import Served, serving

from kvref_testbed.targets import VitessCluster
from kvref_testbed.targets.vitess_cluster import TABLETS

CYCLES = 10 if os.environ.get("KVREF_FAULT_LENGTH") == "full" else 1
TIMEOUT = 3
SHARD = "-80"

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(900 + 120 * CYCLES)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[VitessCluster]:
    with vitess_cluster_or_skip(TABLETS) as made:
        yield made


@contextmanager
def served_by(cluster: VitessCluster) -> Iterator[Served]:
    with serving(f"{cluster.dsn}?timeout={TIMEOUT}", "--set", "innodb_lock_wait_timeout=5") as running:
        yield running


@dataclass(frozen=True)
class Fault:
    """What happens to a cluster, and what is to be seen of it.

    name: in the record.
    come: lets it come, and returns what ends it.
    expected: in words.
    shard: whose rows it concerns; empty: all.
    """

    name: str
    come: Callable[[VitessCluster], Callable[[], None]]
    expected: str
    shard: str = SHARD


def nothing() -> None:
    """End a fault that is over."""


def reparent(cluster: VitessCluster) -> Callable[[], None]:
    cluster.take_over(SHARD)
    return nothing


def lose_primary(cluster: VitessCluster) -> Callable[[], None]:
    return partial(cluster.rejoin, cluster.lose_primary(SHARD))


def kill_gate(cluster: VitessCluster) -> Callable[[], None]:
    cluster.gates[0].kill()
    return cluster.gates[0].start


def hang_gate(cluster: VitessCluster) -> Callable[[], None]:
    cluster.gates[0].pause()
    return cluster.gates[0].resume


FAULTS = [
    Fault(
        "vitess-reparent",
        reparent,
        "vtgate holds writes back until the shard has its new primary, and none fails, if the previous change ended at least"
        " a minute ago (--buffer-min-time-between-failovers). After one that comes earlier, writes fail until then.",
    ),
    Fault(
        "vitess-kill-primary",
        lose_primary,
        "Writes of the shard fail until the operator has made another tablet the primary; those in their COMMIT get the"
        " reply that it is not known whether they were written. Other shards go on.",
    ),
    Fault(
        "vitess-kill-gate",
        kill_gate,
        "kvref continues with the next vtgate. Transactions of the killed one keep the locks of their rows until the shard"
        " ends them, 30 s by default: writes of these rows get a lock wait timeout.",
        shard="",
    ),
    Fault(
        "vitess-sigstop-gate",
        hang_gate,
        "kvref leaves the vtgate timeout= (3 s) after its last reply; commands in their COMMIT get the reply that it is"
        " not known whether they were written.",
        shard="",
    ),
]


@dataclass
class Clients:
    """Connections to kvref, and as many to vtgate itself."""

    with_kvref: list[Writer]
    without: list[SQLWriter]

    @property
    def all(self) -> list[NumberWriter]:
        return [*self.with_kvref, *self.without]

    def wait_until_served(self) -> None:
        for each in self.all:
            each.wait_for_an_acknowledgement()


@contextmanager
def writing(cluster: VitessCluster, served: Served, name: str) -> Iterator[Clients]:
    """Write with kvref and without it for the block."""
    connects = [partial(each.connect, TIMEOUT) for each in cluster.gates]
    clients = Clients(
        [Writer(served, f"{name}k{number}") for number in range(CLIENTS)],
        [SQLWriter(connects, f"{name}s{number}") for number in range(CLIENTS)],
    )
    with started(clients.all):
        yield clients


@dataclass
class Seen:
    """Figures of the cycles of a fault."""

    fault: str
    expected: str
    began: float = field(default_factory=time.monotonic)
    cycles: int = 0
    acknowledged: int = 0
    refused: int = 0
    refused_without_kvref: int = 0
    lost: list[str] = field(default_factory=list)
    gap: float = 0.0
    gap_without_kvref: float = 0.0

    def add(self, cluster: VitessCluster, clients: Clients, shard: str) -> None:
        """Compare the rows with what was acknowledged, and add a cycle."""
        assert [wrong for each in clients.all for wrong in each.wrong] == []
        rows = {each: rows_of(cluster, each) for each in cluster.shards()}
        assert all(rows.values()), "the keys are in all shards"
        together = {key: value for each in rows.values() for key, value in each.items()}
        assert len(together) == sum(map(len, rows.values())), "a row is in two shards"
        self.lost += [text for each in clients.with_kvref for text in each.differences(together)]
        keys = rows[shard] if shard else together
        self.cycles += 1
        self.acknowledged += sum(len(each.times) for each in clients.with_kvref)
        self.refused += sum(len(each.refusals) for each in clients.with_kvref)
        self.refused_without_kvref += sum(len(each.refusals) for each in clients.without)
        self.gap = max(self.gap, without_service(clients.with_kvref, keys))
        self.gap_without_kvref = max(self.gap_without_kvref, without_service(clients.without, keys))

    def tell(self) -> None:
        """Write a line to the file, if one is configured."""
        line = {
            "fault": self.fault,
            "expected": self.expected,
            "seconds": round(time.monotonic() - self.began, 1),
            "cycles": self.cycles,
            "acknowledged": self.acknowledged,
            "lost": len(self.lost),
            "refused": self.refused,
            "refused_to_clients_of_vtgate": self.refused_without_kvref,
            "without_service_s": round(self.gap, 2),
            "without_service_of_clients_of_vtgate_s": round(self.gap_without_kvref, 2),
        }
        print(json.dumps(line))  # noqa: T201 - for `pytest -rP`
        if path := os.environ.get("KVREF_FAULTS"):
            with Path(path).open("a", encoding="utf-8") as record:
                record.write(json.dumps(line) + "\n")


def rows_of(cluster: VitessCluster, shard: str) -> dict[str, str]:
    """Return the rows that the primary of a shard has."""
    found = cluster.primary(shard).database.query("SELECT c1, c2 FROM vt_test.demo_test WHERE c1 <> 'AA'")
    return dict(found)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_acknowledged_is_lost(fault: Fault, cluster: VitessCluster) -> None:
    seen = Seen(fault.name, fault.expected)
    with served_by(cluster) as served:
        for cycle in range(CYCLES):
            with writing(cluster, served, f"{fault.name}{cycle}") as clients:
                end = fault.come(cluster)
                clients.wait_until_served()
                end()
                clients.wait_until_served()
            seen.add(cluster, clients, fault.shard)
    seen.tell()
    assert seen.lost == []


def test_resharding_loses_nothing() -> None:
    seen = Seen(
        "vitess-reshard",
        "vtgate holds writes back while they are switched to the new shards. kvref finds the new shards of keys by itself.",
    )
    with vitess_cluster_or_skip(1) as cluster, served_by(cluster) as served:
        with writing(cluster, served, "reshard") as clients:
            cluster.reshard(FOUR_SHARDS)
            clients.wait_until_served()
        assert sorted(cluster.shards()) == sorted(FOUR_SHARDS)
        seen.add(cluster, clients, "")
    seen.tell()
    assert seen.lost == []
