"""What planned commands in batches have in common over every store: how a write is decided and counted, and replies."""

from __future__ import annotations

from typing import cast

from kvref.engine.batch import Batch, Ending
from kvref.engine.plans import record
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import CachedRow, Decision, Plan
from kvref.engine.values import RefusedError
from kvref.protocol.replies import Reply, ServerError
from kvref.server.scheduler import R, Work, refused
from kvref.server.slots import Replies


def decided_write(work: Work[R], plan: Plan, row: CachedRow) -> Decision:
    """Return the decision on a command that may write a row, also if it is rejected; `count_write` counts it."""
    decide, word, command, _, _ = plan
    bound = work.bound
    bound.writing, bound.succeeded = False, None
    try:
        decision: Decision = decide(row, word, command)
    except RefusedError as refusal:
        bound.succeeded = None
        decision = refused(work, plan, refusal)
    return decision


def count_write(bound: Bound, batch: Batch, command: object, new: CachedRow | None) -> Ending | None:
    """Count the write that was decided last, see `Batch.count_write`.

    Args:
        command: of its plan.
        new: the row as the command leaves it, None if it writes nothing.
    """
    done = new is not None if bound.succeeded is None else bound.succeeded
    batch.write_without_snapshot()
    return batch.count_write(failed=not (done or batch.counts_failed(command)))


def encoded_reply(plan: Plan, reply: Reply, cas: int) -> bytes:
    """Return the bytes of the reply to a planned command that was not decided as planned, and note an error.

    Args:
        cas: number that a binary reply shows.
    """
    if isinstance(reply, ServerError):
        cast(Replies, plan[3]).owner.rejected(reply)
    return record.encoded(plan, record.record_of(plan), reply, cas)
