"""A cluster for the tests of a module, with the plugin's schema and an account of kvref's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from cluster.rows import ACCOUNT
from database import kvref
from live import missing_skips

from kvref_testbed import targets
from kvref_testbed.targets import GaleraCluster, Group


@pytest.fixture(scope="module")
def galera() -> Iterator[GaleraCluster]:
    with ExitStack() as stack:
        with missing_skips():
            cluster = stack.enter_context(targets.galera_cluster())
        made = kvref("init", "--demo", "--store", cluster.dsn)
        assert made.returncode == 0, made.stderr
        with closing(cluster.nodes[0].connect(30)) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {ACCOUNT}")
            cursor.execute(f"GRANT ALL ON *.* TO {ACCOUNT}")
        yield cluster


@pytest.fixture(scope="module")
def group() -> Iterator[Group]:
    with ExitStack() as stack:
        with missing_skips():
            made = stack.enter_context(targets.mysql_group())
        done = kvref("init", "--demo", "--store", made.dsn)
        assert done.returncode == 0, done.stderr
        with closing(made.primary().connect(30)) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {ACCOUNT}")
            cursor.execute(f"GRANT SELECT ON innodb_memcache.* TO {ACCOUNT}")
            cursor.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON test.demo_test TO {ACCOUNT}")
            cursor.execute(f"GRANT SELECT ON performance_schema.replication_group_members TO {ACCOUNT}")
        yield made
