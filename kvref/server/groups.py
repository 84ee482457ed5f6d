"""What the schedulers of planned commands have in common: order, refusals, and halves of a group that has failed.

There are two schedulers because one waits and the other does not. Over SQLite and memory a group is carried out in one
call within a turn of the event loop. Over a database server each of its steps awaits a statement in a thread, while
other clients' commands arrive; a coroutine and a task for each group would be most of what a planned get costs over
SQLite. What they decide is the same and is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from kvref.engine.plans.plan import ABSENT, Decision, Plan, RemovedError
from kvref.engine.values import RefusedError
from kvref.protocol.replies import Reply
from kvref.server.work import Work
from kvref.storage.plans import KnownRows

T = TypeVar("T")
R = TypeVar("R", bound=KnownRows)


def may_begin(*, writes: bool, running: int, running_write: bool, waits: bool) -> bool:
    """Return whether a planned command may be carried out while earlier ones of its connection have no reply.

    The one rule of overtaking. Replies leave in the order of the commands in any case, and commands that are not
    planned, or that are for another mapping, wait for all before them.

    * Behind a command that waits for a lock or for another writer, all wait: a connection reads what it has written.
    * Gets pass gets: none changes what another one shows.
    * Writes go along with writes: they are carried out in their order in one transaction.
    * A get waits for writes, whose rows it must show, and a write for gets, which must show no later state.

    Args:
        writes: it may write.
        running: how many earlier ones are carried out.
        running_write: these may write.
        waits: an earlier one waits for others than its own connection.
    """
    return not waits and (not running or running_write is writes)


def halves(of: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Return the parts in which a group of several commands that has failed is carried out again, in order.

    In the end the command that fails is alone, its error is that of one command, and the others succeed.
    """
    middle = len(of) // 2
    return of[:middle], of[middle:]


def refused(work: Work[R], plan: Plan, refusal: RefusedError) -> Decision:
    """Return the decision on a command that its own decider rejects, and note and count it."""
    return work.rejected(plan, refusal.reply), ABSENT if isinstance(refusal, RemovedError) else None, None


def reject(work: Work[R], plan: Plan, reply: Reply) -> None:
    """Reply to a command that is not carried out."""
    plan[3][plan[4]] = work.rejected(plan, reply)
    work.bound.settle()
