"""The SQL leg: prepared statements on the generator's own sockets.

A driver would be measured with the server. For a SELECT by key of 100 bytes on one connection PyMySQL 1.2 used 30 to 42
us of CPU and had 9,200 to 15,100 answers a second; this room used 12.1 to 15.8 us, three quarters of it in the kernel,
and had 15,600 to 31,200 (MySQL 8.0.33 and MariaDB 10.11, in turn, eight times, on two shared cores). Nor has PyMySQL
prepared statements, which the articles had.

So PyMySQL logs in, which it can in all ways there are, and its socket is taken over. Each connection prepares the
work's statements. Each COM_STMT_EXECUTE is encoded before the clock starts, and so is the reply it should have: the
bytes around a row are read from the server once. Several in one write are answered one after the other.

Reading path: `login.py` (DSNs), `packets.py` (frames and statements), `connection.py` (prepare, execute), `codec.py`
(verbs, replies and outcomes).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kvref_bench.errors import BenchError
from kvref_bench.load.records import Plan
from kvref_bench.peers.base_tables import DATABASE
from kvref_bench.sql import connection, login
from kvref_bench.sql.codec import SQL, learn
from kvref_bench.sql.packets import statements
from kvref_bench.workload.commands import Fits, Kinds, Reader
from kvref_bench.workload.exchanges import Exchanges
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from kvref_bench.load.work import Task


def plan_of(task: Task) -> Plan:
    """Return the plan of one worker for the protocol `mysql`; reads the bytes around rows from the server.

    Raises:
        BenchError: the server is not reachable or rejects a statement, or the parts of the work are incompatible.
    """
    work = task.work
    if work.multiget > 1:
        raise BenchError(f"protocol mysql: multiget = {work.multiget}: a statement has one :key; leave it out")
    where, texts = login.parse(task.address), statements(work)
    kinds = Kinds(work.verbs)
    with connection.take_over(where, DATABASE) as first:
        handles = connection.prepare(first, texts)
        codec = SQL(texts, handles, learn(first, work, texts, handles))
    exchanges = Exchanges(task, codec, kinds)
    connections = connection.Connections(partial(connection.take_over, where, DATABASE), texts, handles, kinds)
    return Plan(
        kinds=kinds.all,
        connect=connections.open,
        exchanges=lambda session: connections.numbered(session, exchanges.of(session)),
        reader=Reader(codec, kinds, Fits(work.verbs, partial(value, work.values))),
    )
