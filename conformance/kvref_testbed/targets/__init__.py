"""Targets: real endpoints on loopback, booted with free ports and throw-away data folders.

    from kvref_testbed import targets

    with targets.running("mysql-8.0-plugin", ["--daemon_memcached_w_batch_size=10"]) as target:
        ...  # target.address, target.sql: a private instance, gone after the block

    with targets.private("kvref-sqlite") as instance:
        instance.restart({"daemon_memcached_w_batch_size": 4})   # the same address and data

    target = targets.up("memcached")     # stays after this process, as `kvref target up memcached`
    targets.find(target.address)         # the same target again, or None
    targets.status()                     # running, crashed or stopped, for every known name
    targets.down("memcached")

    with targets.sql_server("mariadb") as server:
        ...  # server.dsn; server.kill(), server.start(): the same data and port

    with targets.galera_cluster() as cluster:
        ...  # cluster.dsn; cluster.nodes[0].kill(), pause(), cut_off(), start()

Reading path: `lifecycle.py` (up, down, status), `catalogue.py` (which targets there are) with its recipes (`plugin.py`,
`mysqld.py`, `memcached.py`, `galera.py`, `kvref_server.py`), `servers.py` (servers that are
stopped, started and killed), `run.py` over `process.py` (what runs), `artifacts.py` and `builds.py` (where the programs
come from). Errors are `kvref.errors.TargetError`; its kind `MissingError` says that the machine lacks a tool, a library
or an artifact, or its user a right.
"""

from __future__ import annotations

from kvref_testbed.targets.galera import GaleraCluster, galera_cluster
from kvref_testbed.targets.group import Group, mysql_group
from kvref_testbed.targets.kvref_server import KvrefServer, kvref_server
from kvref_testbed.targets.lifecycle import Private, booted, down, find, names, private, running, status, up
from kvref_testbed.targets.needs import MissingError
from kvref_testbed.targets.progress import QUIET, Progress, Terminal
from kvref_testbed.targets.router import mysql_router
from kvref_testbed.targets.servers import (
    PluginServer,
    SQLServer,
    kvref_over_sql,
    kvref_over_vitess,
    over_sql,
    plugin_server,
    sql_server,
)
from kvref_testbed.targets.target import Status, Target
from kvref_testbed.targets.vitess import vitess
from kvref_testbed.targets.vitess_cluster import VitessCluster, vitess_cluster

__all__ = [
    "QUIET",
    "GaleraCluster",
    "Group",
    "KvrefServer",
    "MissingError",
    "PluginServer",
    "Private",
    "Progress",
    "SQLServer",
    "Status",
    "Target",
    "Terminal",
    "VitessCluster",
    "booted",
    "down",
    "find",
    "galera_cluster",
    "kvref_over_sql",
    "kvref_over_vitess",
    "kvref_server",
    "mysql_group",
    "mysql_router",
    "names",
    "over_sql",
    "plugin_server",
    "private",
    "running",
    "sql_server",
    "status",
    "up",
    "vitess",
    "vitess_cluster",
]
