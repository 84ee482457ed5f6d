"""Planned commands of connections with batches: each is carried out in the open transaction of its connection.

The commands of one turn of the event loop are carried out at its end, those of a connection in their order, as
`Scheduler` does. A reply waits for a commit only if its command fills the batch, or shows or follows what a commit has
not made durable. What cannot be carried out at once (a row that another connection has locked, a file that another
program writes to) and what is unusual runs by steps, and the commands of its connection behind it wait.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, Protocol, cast

from kvref.engine.batch import Ending
from kvref.engine.dispatch import execute
from kvref.engine.operations import Operation, OperationGen, TransactionLostError
from kvref.engine.plans import record
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.frames import FrameReads
from kvref.engine.plans.meta import MetaReads
from kvref.engine.plans.plan import HIT, CachedRow, Plan
from kvref.engine.plans.retrieve import Retrieval, Touching
from kvref.engine.plans.store import Deletion, Storage
from kvref.engine.session import Session
from kvref.engine.values import RefusedError
from kvref.errors import KvrefError
from kvref.protocol.replies import Reply, ServerError
from kvref.server.executors.base import count_write, decided_write, encoded_reply
from kvref.server.planner import Planner
from kvref.server.planners.base import InputPlanner, Stop
from kvref.server.planners.binary import BinaryPlanner
from kvref.server.scheduler import BaseScheduler, Work
from kvref.server.slots import Commits, Replies, Slots, decided, settled
from kvref.server.telemetry.command_times import CommandTimes
from kvref.storage.isolation import Isolation
from kvref.storage.sqlite.batched_rows import BatchedRows
from kvref.storage.sqlite.transactions import Transaction, Transactions

_log = logging.getLogger("kvref.server")

WIDTH: Final = 64  # words whose rows are read together
_READERS: Final = frozenset((Retrieval, MetaReads, FrameReads))
_WRITERS: Final = frozenset((Storage, Deletion, Touching))

BatchWork = Work[BatchedRows]
_Counted = tuple[int, int, int, int]


class StepRunner(Protocol):
    """Runs single commands by steps, see `SQLiteExecutor`."""

    @property
    def transactions(self) -> Transactions: ...
    def run(
        self, transaction: Transaction, begin: Callable[[], OperationGen], done: Callable[[Reply], None]
    ) -> Reply | None: ...
    def ended(self) -> None: ...
    def refresh(self, now: float) -> bool: ...


class BatchLine:
    """The planned commands of one connection.

    Attributes:
        slots: of its replies; None until the first of its input is planned.
        stepped: the command that runs by steps and has no reply yet, with its work; None: there is none.
        waiting: the commands behind it.
    """

    __slots__ = ("batch", "session", "slots", "stepped", "transaction", "waiting")

    def __init__(self, session: Session, transaction: Transaction) -> None:
        self.session = session
        self.batch = session.batch
        self.transaction = transaction
        self.slots: Slots | None = None
        self.stepped: tuple[BatchWork, Plan] | None = None
        self.waiting: deque[tuple[BatchWork, Plan]] = deque()

    def count_direct(self, reads: int) -> None:
        """Count gets that were answered without a plan: the connection has written nothing since its last commit."""
        batch = self.batch
        if not batch.reads_unbatched:
            batch.read_apart(reads)
            self.note()

    def note(self) -> None:
        """Note that a command of the connection was answered, which may have begun or ended its batch."""
        self.slots_of_replies.owner.note_batch()

    @property
    def stepped_place(self) -> int:
        assert self.stepped is not None, "a command runs by steps"
        return self.stepped[1][4]

    @property
    def slots_of_replies(self) -> Slots:
        assert self.slots is not None, "its input was planned"
        return self.slots


class LinePlanner:
    """Plan commands of one connection with a batch, see `Planner`."""

    def __init__(
        self,
        planner: Planner | BinaryPlanner,
        rows: BatchedRows,
        line: BatchLine,
        scheduler: BatchScheduler,
        isolation: Isolation,
    ) -> None:
        self._planner = planner
        self._rows = rows
        self._line = line
        self._scheduler = scheduler
        self._isolation = isolation
        self.fresh, self.gets = planner.fresh, planner.gets

    @property
    def frames(self) -> InputPlanner:
        assert isinstance(self._planner, Planner), "of the text commands"
        return LinePlanner(self._planner.frames, self._rows, self._line, self._scheduler, self._isolation)

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to a get of a known row, see `Planner.hit`; None while something of a batch is pending."""
        rows, batch = self._rows, self._line.batch
        if batch.writes or self._line.slots is None or not rows.may_show or self._isolation.keeps_snapshot:
            return None  # `take` answers it, too
        rows.show_directly(shown=True)
        reply = self._planner.hit(data)
        if reply is not None:
            self._line.count_direct(1)
        return reply

    def take(self, data: bytes, slots: Slots, times: CommandTimes | None) -> tuple[int, Stop]:
        """Plan or answer the commands at the beginning of the input, see `Planner.take`."""
        line, planner = self._line, self._planner
        if line.stepped or self._isolation.keeps_snapshot:
            return 0, Stop.UNUSUAL  # the parser's path waits
        line.slots = slots
        nothing_first = not (line.batch.writes or slots.planned)
        self._rows.show_directly(shown=nothing_first and self._rows.may_show)
        taken, stop = planner.take(data, slots, times)
        if planner.direct_reads:
            line.count_direct(planner.direct_reads)
            planner.direct_reads = 0
        if slots.planned and slots.current is not None:
            self._scheduler.lines[slots.current] = line
        return taken, stop


class BatchScheduler(BaseScheduler[BatchedRows]):
    """Carry out the planned commands of all connections with batches over one store.

    Attributes:
        lines: the connections, by their current replies.
    """

    def __init__(self, runner: StepRunner, commits: Commits) -> None:
        super().__init__()
        self._runner = runner
        self._transactions = runner.transactions
        self._commits = commits
        self.lines: dict[Replies, BatchLine] = {}
        self._begun = False  # the write lock is taken: a commit is to end the transaction of the file

    def run(self) -> None:
        self._scheduled = False
        slots, self._slots = self._slots, []
        works, self._works = self._works, []
        lines, self.lines = self.lines, {}
        for work in works:
            plans, work.plans = work.plans, []
            for start in range(0, len(plans), WIDTH):
                self._carry_out(work, plans[start : start + WIDTH], lines)
            work.writers.clear()
        waiting: list[tuple[Slots, Replies]] = []
        free: list[Slots] = []
        for each in slots:
            line = lines[cast(Replies, each.current)]
            if line.stepped is None:
                free.append(each)
            else:
                waiting += _split(line)
        waiting += decided(free)
        for line in lines.values():
            line.note()
        self._settle(waiting, at_once=len(slots) == 1)

    def _settle(self, waiting: list[tuple[Slots, Replies]], *, at_once: bool) -> None:
        """Let lists of replies leave after the commit that they wait for."""
        begun, self._begun = self._begun, False
        if not (waiting or begun):
            return
        number = self._commits.unsettled
        if number is None:
            settled(waiting, "")
        else:
            self._commits.when_settled(number, partial(settled, waiting), at_once=at_once)

    def _carry_out(self, work: BatchWork, plans: Sequence[Plan], lines: dict[Replies, BatchLine]) -> None:
        bound = work.bound
        bound.now = int(time.time())
        work.rows.seek(_words(plans))
        out: object = None
        line: BatchLine | None = None
        for plan in plans:
            if plan[3] is not out:
                out = plan[3]
                line = lines[cast(Replies, out)]
            assert line is not None, "the line of the replies"
            if line.stepped is not None:
                line.waiting.append((work, plan))
            elif not self._is_carried_out(work, plan, line):
                self._step(work, plan, line)
        bound.settle()

    def _is_carried_out(self, work: BatchWork, plan: Plan, line: BatchLine) -> bool:
        """Carry out a planned command; return False if it must run by steps, of which nothing is done then."""
        if not work.rows.source.live:
            return False
        bound = work.bound
        before = len(bound.counted), len(bound.events), len(bound.effects), len(bound.undo)
        try:
            kind = type(getattr(plan[0], "__self__", None))
            if isinstance(plan[1], tuple) or kind in _READERS or (kind not in _WRITERS and not record.may_write(plan)):
                done = self._get(work, plan, line)
            else:
                done = self._write(work, plan, line)
        except KvrefError:
            done = False  # the store's error, which the command by steps meets again
        except Exception:  # noqa: BLE001 - a server never ends because of a request
            _log.exception("a planned command failed")
            done = False
        if not done:
            _take_back(bound, before)
        return done

    def _get(self, work: BatchWork, plan: Plan, line: BatchLine) -> bool:
        decide, word, command, out, place = plan
        batch, one = line.batch, isinstance(word, bytes)
        reads = 0 if batch.reads_unbatched else 1 if one else batch.reads_of(len(word))
        if reads and not self._may_read(work, line, reads):
            return False
        found: list[CachedRow] = []
        late = False
        for each in (word,) if isinstance(word, bytes) else word:
            seen = work.rows.read(line.transaction, each)
            if seen is None:
                return False
            row, durable = seen
            found.append(row)
            late = late or not durable
        try:
            out[place] = decide(found[0], word, command)[0] if one else decide(found, word, command)
        except RefusedError:
            return False
        if late:
            out.late = True  # type: ignore[attr-defined]  # of `Replies`
        for _ in range(reads):
            if batch.count_read():
                self._commit(work, plan, line)
        return True

    def _may_read(self, work: BatchWork, line: BatchLine, reads: int) -> bool:
        """Return whether so many reads fill no batch, or one that can be committed at once."""
        if not (line.transaction.operations and line.batch.fills(reads=reads)):
            return True
        if work.bound.rules.counts_each_key and work.rows.may_be_refused:
            return False  # a key whose read ends in a failed commit is not counted in `stats`
        return self._begin(work)

    def _begin(self, work: BatchWork) -> bool:
        if work.rows.begin():
            self._begun = True
            return True
        return False

    def _write(self, work: BatchWork, plan: Plan, line: BatchLine) -> bool:
        _, word, command, out, place = plan
        assert isinstance(word, bytes), "a write has one word"
        rows, transaction, batch = work.rows, line.transaction, line.batch
        if batch.fills(writes=1) and not self._begin(work):
            return False
        found = rows.find(transaction, word)
        if found is None:
            return False
        named, row, durable = found
        reply, new, parameters = decided_write(work, plan, row)
        if new is not None and not rows.add(transaction, named, word, row, new, parameters or ()):
            return False
        if not (durable and (new is None or not self._transactions.dirty)):
            out.late = True  # type: ignore[attr-defined]
        out[place] = reply
        if work.bound.writing:
            if new is None and row[HIT]:
                self._transactions.pending.lock(transaction, named.identity)
            ending = count_write(work.bound, batch, command, new)
            if ending is Ending.COMMIT:
                self._commit(work, plan, line)
            elif ending is Ending.ROLL_BACK:
                self._transactions.roll_back(transaction)
                batch.reset()
                self._runner.ended()
        return True

    def _commit(self, work: BatchWork, plan: Plan, line: BatchLine) -> None:
        """Commit a batch that a command has filled; if that fails, the reply of the command says so."""
        out, wrote = cast(Replies, plan[3]), bool(line.transaction.operations)
        try:
            reason = self._answered(line, line.batch.commit())
        except TransactionLostError as lost:
            reason = line.batch.lost(str(lost))
        except KvrefError as error:
            reason = str(error)
        self._runner.ended()
        if wrote:
            work.rows.forget()
            out.late = True
        if reason is not None:
            out[plan[4]] = encoded_reply(plan, ServerError(reason), 0)

    def _answered(self, line: BatchLine, steps: Generator[Operation, Any, str | None]) -> str | None:
        """Answer the operations of some steps, and return their result; raises as `Transactions.execute`."""
        answer: Any = None
        error: Exception | None = None
        while True:
            try:
                operation = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as stop:
                reason: str | None = stop.value
                return reason
            answer = error = None
            try:
                answer = self._transactions.execute(line.transaction, operation)
            except KvrefError as failure:
                error = failure

    def _step(self, work: BatchWork, plan: Plan, line: BatchLine) -> None:
        """Run a command by steps, which wait for locks, in the transaction of its connection."""
        several = record.several_of(plan)
        if several is not None and several.ends_before(plan[2][1]):
            return  # a word of a gat behind one that was refused
        work.bound.settle()  # before the next command, which may be for `stats`
        line.stepped = work, plan
        command = record.record_of(plan)
        begin = partial(execute, line.session, command, int(time.time()))
        reply = self._runner.run(line.transaction, begin, partial(self._finish, line))
        if reply is not None:
            self._fill(line, reply)
        work.rows.forget()  # it may have committed a batch also if it waits now

    def _fill(self, line: BatchLine, reply: Reply) -> Replies:
        """Put the reply of the command by steps into its place, and return the list of that."""
        assert line.stepped is not None, "of it"
        (_, plan), line.stepped = line.stepped, None
        line.session.settle()
        out = cast(Replies, plan[3])
        out[plan[4]] = encoded_reply(plan, reply, line.session.written_cas)
        out.late = out.late or self._commits.unsettled is not None
        return out

    def _finish(self, line: BatchLine, reply: Reply) -> None:
        """Go on after a command by steps that has waited: carry out the commands behind it."""
        out = self._fill(line, reply)
        while line.waiting and line.stepped is None:
            work, plan = line.waiting.popleft()
            work.bound.now = int(time.time())
            work.rows.seek(_words([plan]))
            if not (self._runner.refresh(self._loop.time()) and self._is_carried_out(work, plan, line)):
                self._step(work, plan, line)
            work.bound.settle()
        if line.stepped is None:
            waiting = _completed(line, out)
        elif line.stepped_place:
            line.slots_of_replies.wait_for(_tail(line, out))
            waiting = _completed(line, out)
        else:
            waiting = []
        line.note()
        self._settle(waiting, at_once=True)


def _take_back(bound: Bound, before: _Counted) -> None:
    """Forget what a command has noted that runs by steps instead, and take its marks back."""
    counted, events, effects, undo = before
    del bound.counted[counted:], bound.events[events:], bound.effects[effects:]
    while len(bound.undo) > undo:
        bound.undo.pop()()


def _words(plans: Sequence[Plan]) -> list[bytes]:
    words = [plan[1] for plan in plans]
    return [*dict.fromkeys(chain.from_iterable([each if isinstance(each, tuple) else (each,) for each in words]))]


def _split(line: BatchLine) -> list[tuple[Slots, Replies]]:
    """Detach the replies of a connection from a command that waits on; return those before it if they wait, too."""
    slots = line.slots_of_replies
    current = slots.current
    assert current is not None, "the connection has planned in this turn"
    if not line.stepped_place:
        slots.detach()
        return []
    tail = _tail(line, current)
    slots.planned = False
    waiting: list[tuple[Slots, Replies]] = []
    if current.late:
        slots.detach(undecided=False)
        waiting.append((slots, current))
    else:
        slots.send_or_queue(current)
    slots.wait_for(tail)
    return waiting


def _tail(line: BatchLine, out: Replies) -> Replies:
    """Move the places of a list from the command that waits on to another list, and return that."""
    assert line.stepped is not None, "a command waits"
    work, stepped = line.stepped
    place = stepped[4]
    tail = Replies(out[place:])
    tail.owner = out.owner
    if out.names is not None:
        tail.names, tail.started = out.names[place:], out.started
        del out.names[place:]
    del out[place:]
    line.stepped = work, (*stepped[:3], tail, 0)
    line.waiting = deque((each, (*plan[:3], tail, plan[4] - place)) for each, plan in line.waiting)
    return tail


def _completed(line: BatchLine, out: Replies) -> list[tuple[Slots, Replies]]:
    """Let a detached list leave whose places are filled; return it if it waits for a commit."""
    slots = line.slots_of_replies
    out.undecided = False
    if out.late:
        slots.notify()
        return [(slots, out)]
    slots.completed(out)
    return []
