"""One scheduler for all planned commands of a store: read the rows of a group, decide each in order, write, commit.

Commands of all connections that are parsed in one turn of the event loop are carried out together at its end, by
mapping, up to `WIDTH` at once. A later command of a row sees what an earlier one of the group leaves (`Overlay`). If a
group fails, halves of it are carried out, down to single commands, whose errors are those of a command by steps.

A database server has another scheduler (`executors/mysql/planned.py`), which waits: each step of a group
awaits a statement in a thread, while other clients' commands arrive. A coroutine and a task for each group would be
most of what a planned get costs over SQLite. What both decide alike is here: order, refusals and halves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final, Generic, TypeVar, cast

from kvref.engine.plans import record
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, HIT, ROWID, CachedRow, Decision, Plan, RemovedError, Renewal
from kvref.engine.values import RefusedError
from kvref.errors import KvrefError
from kvref.protocol.hits import renamed
from kvref.protocol.replies import Reply, ServerError
from kvref.server.slots import Commits, Replies, Slots, decided, settled
from kvref.storage.planned_rows import KnownRows, Overlay, PlannedRows, RefusedWriteError, Write, WriteKind

_log = logging.getLogger("kvref.server")

WIDTH: Final = 64  # commands of a group
RETRY_AFTER: Final = 0.005  # seconds between two tries to begin to write while another process does
FAILED: Final = ServerError("internal error, see the server's log")
_INSERT: Final = WriteKind.INSERT
_UPDATE: Final = WriteKind.UPDATE
_RENEW: Final = WriteKind.RENEW
_DELETE: Final = WriteKind.DELETE

T = TypeVar("T")
R = TypeVar("R", bound=KnownRows)
R_co = TypeVar("R_co", bound=KnownRows, covariant=True)


class Work(Generic[R_co]):
    """The planned commands of one mapping.

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


def may_begin(*, writes: bool, running: int, running_write: bool, waits: bool) -> bool:
    """Return whether a planned command may be carried out while earlier ones of its connection have no reply.

    The one rule of overtaking. Replies leave in the order of the commands in any case, and commands that are not
    planned, or that are for another mapping, wait for all before them.

    * Behind a command that `waits` for a lock or for another writer, all wait: a connection reads what it has written.
    * Gets pass gets: none changes what another one shows. But a get that needs no plan does not pass one that waits
      (`Slots.direct`): what it shows is older than what the other one is to show.
    * Writes go along with writes: they are carried out in their order in one transaction.
    * A get waits for writes, whose rows it must show, and a write for gets, which must show no later state.
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


class BaseScheduler(ABC, Generic[R]):
    """Takes what the connections plan in one turn of the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._works: list[Work[R]] = []
        self._slots: list[Slots] = []
        self._scheduled = False

    def add(self, work: Work[R], slots: Slots) -> None:
        """Carry out the plans of a mapping at the end of this turn, and complete the current replies of a connection.

        Called once in each turn for each connection that plans something.
        """
        slots.planned = True
        self._slots.append(slots)
        if work not in self._works:
            self._works.append(work)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.run)

    @abstractmethod
    def run(self) -> None:
        """Carry out all plans, or queue them for groups."""


class Scheduler(BaseScheduler[PlannedRows]):
    """Carry out planned commands over one store, where a write waits `lock_wait` seconds for another writer."""

    def __init__(self, commits: Commits, lock_wait: float) -> None:
        super().__init__()
        self._commits = commits
        self._lock_wait = lock_wait
        self._retrying = False  # commands wait for another writer, and are tried again soon

    def run(self) -> None:
        self._scheduled = False
        works, self._works = self._works, []
        writes = False
        for work in works:
            writes = writes or bool(work.writers)
            self._carry_out(work)
        slots, self._slots = self._slots, []
        if self._works:  # commands wait for another writer
            self._slots = [each for each in slots if any(each.current in work.writers for work in self._works)]
            slots = [each for each in slots if each not in self._slots]
        waiting = decided(slots)
        if waiting or writes:  # a commit ends the transaction even if nothing was written
            number = self._commits.unsettled
            if number is None:
                settled(waiting, "")
            else:
                # A command alone in its turn has no others to share its commit with.
                self._commits.when_settled(number, partial(settled, waiting), at_once=len(slots) == 1)

    def _carry_out(self, work: Work[PlannedRows]) -> None:
        plans, work.plans = work.plans, []
        work.bound.now = int(time.time())
        if work.writers:
            try:
                begun = work.rows.begin()
            except KvrefError as error:
                self._fail_each(work, plans, error)
                plans, begun = [], True
            if not begun:
                plans = self._park(work, plans)
        width = 1 if work.writers and work.rows.separate else WIDTH
        for start in range(0, len(plans), width):
            self._group(work, plans[start : start + width])
        if not work.plans:
            work.writers.clear()
            work.rows.release()

    def _park(self, work: Work[PlannedRows], plans: list[Plan]) -> list[Plan]:
        """Keep the plans of connections with a write until it can begin; return those of the others."""
        now = self._loop.time()
        ready: list[Plan] = []
        for plan in plans:
            out = plan[3]
            assert isinstance(out, Replies), "a connection plans with its slots"
            writes = record.may_write(plan)
            if may_begin(writes=writes, running=0, running_write=False, waits=out in work.writers):
                ready.append(plan)
                continue
            if out.deadline is None:
                out.deadline = now + self._lock_wait
            if now < out.deadline:
                work.plans.append(plan)
            elif writes:
                reject(work, plan, record.lock_wait_timeout(work.bound, plan))
            else:
                ready.append(plan)
        work.writers = {plan[3] for plan in work.plans if isinstance(plan[3], Replies)}
        if work.plans:
            self._works.append(work)
            if not self._retrying:
                self._retrying = True
                self._loop.call_later(RETRY_AFTER, self._retry)
        return ready

    def _retry(self) -> None:
        self._retrying = False
        if not self._scheduled:
            self.run()

    def _group(self, work: Work[PlannedRows], plans: Sequence[Plan]) -> None:
        """Carry out a group, or if that fails, each half of it."""
        words = [plan[1] for plan in plans]
        several = tuple in set(map(type, words))
        try:
            overlay = work.rows.read_many(
                _single(words) if several else words,  # type: ignore[arg-type]  # then each is a word
                written=bool(work.writers) and len(plans) > 1,
            )
            writes = self._decide(work, plans, overlay)
            if writes:
                work.rows.apply_many(writes)
        except Exception as error:  # noqa: BLE001 - a server never ends because of a request
            if len(plans) > 1:
                work.bound.discard()
                for half in halves(plans):
                    self._group(work, half)
            elif isinstance(error, RefusedWriteError):
                reply = record.refused_write(work.bound, plans[0], str(error))
                if reply is None:
                    work.bound.settle()
                else:
                    reject(work, plans[0], reply)
            else:
                work.bound.discard()
                self._fail_each(work, plans, error)
            return
        work.bound.settle()

    def _decide(self, work: Work[PlannedRows], plans: Sequence[Plan], overlay: Overlay) -> list[Write]:
        """Decide the plans of a group in order; fill their places, and return what they write."""
        rows, late, aliases, all_late = overlay.rows, overlay.not_durable, overlay.aliases, overlay.all_not_durable
        writes: list[Write] = []
        for plan in plans:
            decide, word, command, out, place = plan
            if isinstance(word, tuple):
                self._decide_many(work, plan, overlay)
                continue
            key = aliases.get(word, word) if aliases else word
            row = rows[key] if key is word else _as(rows[key], key, word)
            try:
                out[place], new, parameters = decide(row, word, command)
            except RefusedError as refusal:
                out[place], new, parameters = refused(work, plan, refusal)
            if new is not None:
                if parameters is None:
                    kind = _DELETE
                elif not row[HIT]:
                    kind = _INSERT
                else:
                    kind = _RENEW if isinstance(parameters, Renewal) else _UPDATE
                writes.append((kind, key, word, new, row[ROWID], parameters or ()))
                rows[key] = new if key is word else _as(new, word, key)
                late.add(key)
                out.late = True  # type: ignore[attr-defined]  # of `Replies`
            elif all_late or key in late:
                out.late = True  # type: ignore[attr-defined]
        return writes

    def _decide_many(self, work: Work[PlannedRows], plan: Plan, overlay: Overlay) -> None:
        decide, words, command, out, place = plan
        assert isinstance(out, Replies), "a connection plans with its slots"
        found = []
        for word in words:
            assert isinstance(word, bytes), "a word of several"
            key = overlay.aliases.get(word, word)
            found.append(_as(overlay.rows[key], key, word))
            if key in overlay.not_durable or overlay.all_not_durable:
                out.late = True
        try:
            out[place] = decide(found, words, command)
        except RefusedError as refusal:
            out[place], _, _ = refused(work, plan, refusal)

    def _fail_each(self, work: Work[PlannedRows], plans: Sequence[Plan], error: Exception) -> None:
        """Reply to commands that the store has not carried out."""
        for plan in plans:
            if isinstance(error, KvrefError):
                reply = ServerError(str(error))
            else:
                _log.error("a command failed", exc_info=error)
                reply = FAILED
            reject(work, plan, reply)


def _single(words: list[bytes | tuple[bytes, ...]]) -> list[bytes]:
    return [*chain.from_iterable([word if isinstance(word, tuple) else (word,) for word in words])]


def _as(row: CachedRow, key: bytes, word: bytes) -> CachedRow:
    """Return a row that shows its key as it is shown for another word."""
    if key == word or not row[HIT]:
        return row
    return renamed(row[HIT], key, word), *row[1:]
