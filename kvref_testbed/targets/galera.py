"""A Galera cluster: three MariaDB servers on loopback with the same rows; it answers SQL, and no memcached command.

What kvref serves from, not what is judged. What of it is stopped, cut off and started again: `galera_cluster.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_testbed.targets.builds import MARIADB
from kvref_testbed.targets.galera_node import Plan, lay_out
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_testbed.targets.galera_node import GaleraNode
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run

NODES = 3


@dataclass(frozen=True, slots=True)
class Galera:
    """Three nodes, each on a port of loopback and a socket; see `recipe.Recipe` for the fields."""

    name: str = "galera"
    summary: str = "three MariaDB servers as a Galera cluster, from mariadb-server-core and galera-4; SQL only"
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the nodes one after the other on fresh data folders.

        options: of each mariadbd. Raises TargetError.
        """
        nodes = started(run, options, progress)
        first = nodes[0].server
        return Endpoint(address=None, version=first.version(), sql=dsn(nodes), socket=first.socket)


def started(run: Run, options: Sequence[str], progress: Progress) -> list[GaleraNode]:
    """Start the nodes of a new cluster; each is synced when the next one begins."""
    nodes = lay_out(run, Plan(MARIADB, NODES, tuple(options)), progress)
    for each in nodes:
        progress.step(f"starting {each.name} of {NODES}")
        each.start(new_cluster=each is nodes[0])
    return nodes


def dsn(nodes: Sequence[GaleraNode]) -> str:
    """Return the DSN that names all nodes, the first one first."""
    return f"mysql://root@{','.join(f'{each.host}:{each.port}' for each in nodes)}/"
