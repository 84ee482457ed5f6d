"""Requests of a worker: keys and values, their encodings, and the expected replies.

    plan = plan_of(task)
    connection = plan.connect()
    for exchange in plan.exchanges(0): ...

Reading path: `keys` and `values`, `commands` (verbs and outcomes), `text` and `binary` (one codec each), `exchanges`
(pools), `connect` (routes), `check` (incompatible parts).
"""

from __future__ import annotations

import ssl
from functools import partial
from typing import TYPE_CHECKING

from kvref_bench.load.records import Plan
from kvref_bench.workload.binary import Binary
from kvref_bench.workload.check import check
from kvref_bench.workload.commands import Fits, Kinds, Reader
from kvref_bench.workload.connect import connect
from kvref_bench.workload.exchanges import Exchanges, prefix
from kvref_bench.workload.text import Text
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from kvref_bench.load.work import Task, Work
    from kvref_bench.workload.commands import Codec

__all__ = ["check", "plan_of"]


def plan_of(task: Task) -> Plan:
    """Make the plan of one worker: all requests that it repeats are encoded, and all replies that it expects.

    Raises:
        BenchError: the parts of its work do not go together.
    """
    work = task.work
    check(work)
    if work.protocol == "mysql":
        # It encodes with this package's keys and values.
        from kvref_bench import sql  # noqa: PLC0415

        return sql.plan_of(task)
    kinds = Kinds(work.verbs)
    codec: Codec = Text(work.expiry) if work.protocol == "text" else Binary(work.expiry)
    return Plan(
        kinds=kinds.all,
        connect=partial(connect, task.address, work),
        exchanges=Exchanges(task, codec, kinds).of,
        reader=Reader(codec, kinds, Fits(work.verbs, partial(_value_of, work))),
        tls=ssl.create_default_context(cafile=work.tls) if work.tls else None,
    )


def _value_of(work: Work, name: bytes) -> bytes:
    return value(work.values, name[len(prefix(work)) :])
