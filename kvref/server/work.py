"""The planned commands of one mapping, between the planner and the scheduler of its store."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from kvref.engine.plans import record
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import Plan
from kvref.protocol.replies import Reply
from kvref.server.slots import Replies
from kvref.storage.plans import KnownRows

R_co = TypeVar("R_co", bound=KnownRows, covariant=True)


class Work(Generic[R_co]):
    """The planned commands of one mapping.

    Args:
        bound: by which rules they are decided.
        rows: the rows of the mapping.

    Attributes:
        plans: in the order in which they arrived.
        writers: the lists of replies that have a place of a command that may write.
    """

    __slots__ = ("bound", "plans", "rows", "writers")

    def __init__(self, bound: Bound, rows: R_co) -> None:
        self.bound = bound
        self.rows = rows
        self.plans: list[Plan] = []
        self.writers: set[Replies] = set()

    def rejected(self, plan: Plan, reply: Reply) -> bytes:
        """Note and count a command that is rejected with a reply, and return the reply's bytes."""
        cast(Replies, plan[3]).owner.rejected(reply)
        return record.rejected(self.bound, plan, reply)
