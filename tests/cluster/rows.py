"""What the nodes of a cluster have, and which of them a kvref uses."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from helpers.commands import kvref
from pymysql import OperationalError

from kvref_testbed.targets import GaleraCluster
from kvref_testbed.targets.galera import GaleraNode
from kvref_testbed.targets.group import Member
from kvref_testbed.targets.mysqld import RestartableServer
from kvref_testbed.targets.router import Router

ACCOUNT = "kv"


def prepare(server: RestartableServer, all_of_them: str, *grants: str) -> None:
    """Create the plugin's schema, and an account of kvref's own with these rights.

    Args:
        server: of the cluster, which accepts writes.
        all_of_them: the cluster's DSN.
        grants: as GRANT has them, without the account.
    """
    made = kvref("init", "--demo", "--store", all_of_them)
    assert made.returncode == 0, made.stderr
    with closing(server.connect(30)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE USER {ACCOUNT}")
        for each in grants:
            cursor.execute(f"GRANT {each} TO {ACCOUNT}")


def dsn(*nodes: RestartableServer | Router, options: str = "") -> str:
    """Return the DSN of some servers of a cluster, as kvref's own account."""
    return f"mysql://{ACCOUNT}@{','.join(f'{each.host}:{each.port}' for each in nodes)}/{options}"


def query(node: GaleraNode, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements on a node that has caught up, and return what the last one found."""
    with closing(node.connect(60)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION wsrep_sync_wait = 1")
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def rows(node: GaleraNode) -> dict[str, str]:
    """Return the values of the demo table by key."""
    return dict(query(node, "SELECT c1, c2 FROM test.demo_test"))


def used(cluster: GaleraCluster) -> GaleraNode:
    """Return the one node to which kvref has connections."""
    question = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{ACCOUNT}'"
    (found,) = [node for node in cluster.nodes if query(node, question) != [(0,)]]
    return found


def is_expelled(member: Member) -> bool:
    """Return whether a member has given up its group; then it ends the connections that it has."""
    try:
        return member.state()[0] == "ERROR"
    except OperationalError:
        return False
