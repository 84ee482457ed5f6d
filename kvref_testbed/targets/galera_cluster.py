"""A Galera cluster whose nodes' lives are in their caller's hands.

    with galera_cluster() as cluster:
        ...                                  # cluster.dsn: all nodes; cluster.nodes[0].connect()
        cluster.nodes[0].kill()
        cluster.nodes[0].start()             # it joins again: pause, resume, cut_off and reunite are the other faults
        for node in cluster.nodes: node.kill()
        cluster.bootstrap()                  # after all of them are gone

A target (`galera.py`) is the plain case: booted once and left alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref_testbed.targets import galera
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_testbed.targets.galera_node import GaleraNode
    from kvref_testbed.targets.progress import Progress


class GaleraCluster:
    """Nodes with the same rows; made by `galera_cluster`.

    nodes: in the order of the DSN.
    """

    def __init__(self, nodes: list[GaleraNode]) -> None:
        self.nodes = nodes

    @property
    def dsn(self) -> str:
        """Return the DSN that names all nodes, `mysql://root@127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT/`."""
        return galera.dsn(self.nodes)

    def bootstrap(self) -> None:
        """Start the cluster again after all nodes are gone, beginning with the one that has most.

        Raises TargetError, also while one of them runs.
        """
        if running := [each.name for each in self.nodes if each.running()]:
            raise TargetError(f"{', '.join(running)} runs: stop all nodes before you bootstrap the cluster")
        first = max(self.nodes, key=lambda each: each.last_number())
        first.start(new_cluster=True)
        for each in self.nodes:
            if each is not first:
                each.start()


@contextmanager
def galera_cluster(options: Sequence[str] = (), progress: Progress = QUIET) -> Iterator[GaleraCluster]:
    """Start a private cluster of three nodes; it is killed with the block.

    options: of each mariadbd, at every start. Raises TargetError.
    """
    run = Run.create()
    try:
        yield GaleraCluster(galera.started(run, options, progress))
    finally:
        run.stop(0)
