"""What all executors share: their interface, the one interpreter of verbs, and planned commands in batches.

A verb is a generator of storage operations. An executor sends it the answer of each operation, or throws the reason why
there is none. What differs between executors is how operations are answered, and when: at once, in a thread, or with
those of other commands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from kvref.engine.batch import Batch, Ending
from kvref.engine.mapping import Directory
from kvref.engine.operations import Operation, OperationGen
from kvref.engine.plans import record
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import CachedRow, Decision, Plan
from kvref.engine.session import Session
from kvref.engine.values import RefusedError
from kvref.protocol.replies import Reply, ServerError
from kvref.protocol.rules import WireRules
from kvref.server.planners.base import TextPlanner
from kvref.server.scheduler import FAILED, R, Work, refused
from kvref.server.slots import SETTLED, Commits, Replies

_log = logging.getLogger("kvref.server")


class Executor(Protocol):
    """Carries out the commands of all connections against one store; as it is, one that commits each write alone."""

    def begin(self, reads: str = "") -> Any:  # noqa: ARG002 - for others
        """Return the transaction of a new connection, one at a time; `reads` is as `Listener.reads`."""
        return None

    def run(self, transaction: Any, begin: Callable[[], OperationGen], done: Callable[[Reply], None]) -> Reply | None:
        """Run a command; None where `done` is called later with the reply."""

    def commits_of(self, transaction: Any) -> Commits:  # noqa: ARG002 - for others
        """Return the commits that the replies of a connection with this transaction wait for; none by default."""
        return SETTLED

    def planner(self, transaction: Any, session: Session, wire_rules: WireRules) -> TextPlanner | None:
        """Return what plans the commands of a connection; None if each of them is run alone."""

    def end(self, transaction: Any) -> None:  # noqa: ARG002 - for others
        """Forget the transaction of a connection that is gone; what it has not committed goes with it."""
        return

    def commit(self) -> None:
        """Commit what is open and notify everyone who waits for it."""
        return

    async def check(self) -> None:
        """Check that the store answers a query, without reading rows; raises StoreError if it does not."""
        return

    async def read_directory(self) -> Directory:
        """Read the configuration tables again."""

    async def close(self) -> None:
        """Finish running commands."""


class Execution:
    """One command during its execution.

    Attributes:
        operation: the operation that the command waits for; None before it begins and once it has a reply.
        done: called with the reply, if it is not available at once.
        failed: it raised an unexpected exception; the log has the traceback.
        reply: its reply, once it waits for no operation.
    """

    __slots__ = ("_begin", "_steps", "done", "failed", "operation", "reply")

    def __init__(self, begin: Callable[[], OperationGen], done: Callable[[Reply], None]) -> None:
        self._begin = begin
        self.done = done
        self._steps: OperationGen | None = None
        self.operation: Operation | None = None
        self.failed = False
        self.reply: Reply

    def start(self) -> bool:
        """Begin or restart the command; return whether it waits for an operation."""
        if self._steps is not None:
            self._steps.close()
            self.failed = False
        self._steps = self._begin()
        return self.send(None)

    def send(self, answer: Any, error: Exception | None = None) -> bool:
        """Pass the command the result of its operation, or its error; return whether it waits for another one."""
        assert self._steps is not None
        try:
            self.operation = self._steps.send(answer) if error is None else self._steps.throw(error)
        except StopIteration as stop:
            return self._end(stop.value)
        except Exception:  # noqa: BLE001 - logged whole
            return self.fail()
        return True

    def fail(self) -> bool:
        """End the command after an error that no command should meet, which is logged; return False."""
        # A server never ends because of a request.
        _log.exception("a command failed")
        self.failed = True
        return self._end(FAILED)

    def _end(self, reply: Reply) -> bool:
        self.operation, self.reply = None, reply
        return False


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
