"""Who the measured servers are, and what a point needs of each: settings, a filled table, counters.

    with peers.open(PeerSpec(endpoint="mysql-8.0-plugin"), progress) as peer:
        peer.start({"daemon_memcached_w_batch_size": 32})
        peer.prepare(scenario.table)
        with peer.sample() as sampling:
            ...  # the point: peer.address, peer.sql_dsn
        sampling.sample, sampling.resources, peer.peer

Reading path: `opening.py` (which of these it is), `opened.py` (what is done with it), then `settings.py` (ways to
start), `base_tables.py`, `mysql_tables.py`, `sqlite_tables.py` and `wire.py` (where rows go), `processes.py`
(what is sampled).
"""

from __future__ import annotations

from kvref_bench.peers.opened import OpenPeer
from kvref_bench.peers.opening import PeerSpec
from kvref_bench.peers.opening import open_peer as open  # noqa: A004 - peers.open(...)
from kvref_bench.peers.processes import Sampling

__all__ = ["OpenPeer", "PeerSpec", "Sampling", "open"]
