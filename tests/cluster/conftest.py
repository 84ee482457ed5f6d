"""A cluster for the tests of a module, with the plugin's schema and an account of kvref's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from cluster.rows import prepare
from helpers.live import missing_skips

from kvref_testbed import targets
from kvref_testbed.targets import GaleraCluster, Group


@pytest.fixture(scope="module")
def galera() -> Iterator[GaleraCluster]:
    with ExitStack() as stack:
        with missing_skips():
            cluster = stack.enter_context(targets.galera_cluster())
        prepare(cluster.nodes[0], cluster.dsn, "ALL ON *.*")
        yield cluster


@pytest.fixture(scope="module")
def group() -> Iterator[Group]:
    with ExitStack() as stack:
        with missing_skips():
            made = stack.enter_context(targets.mysql_group())
        prepare(
            made.primary(),
            made.dsn,
            "SELECT ON innodb_memcache.*",
            "SELECT, INSERT, UPDATE, DELETE ON test.demo_test",
            "SELECT ON performance_schema.replication_group_members",
        )
        yield made
