"""A Vitess cluster for tests, with kvref's configuration and the demo rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from helpers.commands import kvref
from helpers.live import missing_skips

from kvref_testbed import targets
from kvref_testbed.targets import VitessCluster

FOUR_SHARDS = "-40", "40-80", "80-c0", "c0-"


@contextmanager
def vitess_cluster_or_skip(tablets: int) -> Iterator[VitessCluster]:
    """Start a cluster with so many tablets in each shard; skip the test where the machine lacks what it needs."""
    with ExitStack() as stack:
        with missing_skips():
            made = stack.enter_context(targets.vitess_cluster(tablets))
        gate = made.gates[0]
        created = kvref("init", "--demo", "--store", f"mysql://root@{gate.host}:{gate.port}/")
        assert created.returncode == 0, created.stderr
        yield made
