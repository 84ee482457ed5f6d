"""Run sessions on several stores: each operation in the executor of its mapping's store.

A command runs in one executor as long as its operations are for that store, and moves to another one with the first
operation that is not. A commit goes to all stores that the connection has used since the last one; only one of them can
have writes, because a batch is committed before its connection selects another mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AsyncExitStack
from dataclasses import fields
from typing import Any, Final

from kvref.engine.mapping import Directory, Mapping
from kvref.engine.operations import (
    Commit,
    FixSnapshot,
    LoadMapping,
    LockWaitError,
    Lookup,
    Operation,
    OperationGen,
    RollBack,
    takes_lock,
)
from kvref.engine.session import Session
from kvref.protocol.replies import Line, Reply, ServerError
from kvref.protocol.rules import WireRules
from kvref.server.executors.base import Executor
from kvref.server.planners.base import TextPlanner
from kvref.storage.several import FIRST, SeveralStores

MAX_STARTS: Final = 50  # of one command, of which an executor starts one again that has lost a deadlock
_REROUTE: Final = Line(b"")  # in place of a reply: the command goes on in another executor

# The operations of a command, each with the number of its store.
_Steps = Generator[tuple[int, Operation], Any, Reply]


class Transactions:
    """The transactions of one connection, one in each store that it has used, and the commits its replies wait for.

    Attributes:
        current: number of the store that the connection has used last.
        open: numbers of the stores that it has used since its last commit, each with whether it has written there.
        fixes: the next operation fixes the snapshot of its store first.
    """

    def __init__(self, executors: Sequence[Executor], reads: str) -> None:
        self._executors = executors
        self._reads = reads
        self._begun: dict[int, Any] = {}
        self.current = FIRST
        self.open: dict[int, bool] = {}
        self.fixes = False
        self._read: set[int] = set()  # stores with rows that replies show, or with writes that they acknowledge
        self._waits: list[tuple[int, int]] = []  # stores, each with a commit that is not settled
        self._number = 0  # of these waits

    def use(self, store: int) -> Any:
        """Return the transaction in a store, which becomes the current one."""
        self.current = store
        return self.of(store)

    def of(self, store: int) -> Any:
        if store not in self._begun:
            self._begun[store] = self._executors[store].begin(self._reads)
        return self._begun[store]

    def note(self, store: int, operation: Operation) -> None:
        """Note that an operation is for a store."""
        self._read.add(store)
        writes = takes_lock(operation) and not isinstance(operation, Lookup)
        self.open[store] = writes or self.open.get(store, False)

    def ended(self, store: int) -> None:
        """Note that the transaction in a store has ended; replies wait for a commit that has writes."""
        if self.open.pop(store):
            self._read.add(store)

    def end(self) -> None:
        for store, each in self._begun.items():
            self._executors[store].end(each)

    @property
    def unsettled(self) -> int | None:
        """Return a number for the commits that replies must wait for, see `Commits`."""
        waits = []
        for store in sorted(self._read):
            number = self._executors[store].commits_of(self.of(store)).unsettled
            if number is not None:
                waits.append((store, number))
            else:
                self._read.discard(store)
        if waits and waits != self._waits:
            self._number += 1
        self._waits = waits
        return self._number if waits else None

    def when_settled(
        self, number: int, settled: Callable[[str], None], *, at_once: bool = False  # noqa: ARG002 - it is the last one
    ) -> None:  # fmt: skip
        left, lost = len(self._waits), ""

        def one(text: str) -> None:
            nonlocal left, lost
            left -= 1
            lost = lost or text
            if not left:
                settled(lost)

        for store, each in self._waits:
            self._executors[store].commits_of(self._begun[store]).when_settled(each, one, at_once=at_once)


class _Command:
    """A command that is carried out; `done` is called with the reply if `advance` does not return it."""

    def __init__(
        self,
        executor: RoutingExecutor,
        transactions: Transactions,
        begin: Callable[[], OperationGen],
        done: Callable[[Reply], None],
    ) -> None:
        self._executors = executor.executors
        self._stores = executor.stores
        self._transactions = transactions
        self._begin = begin
        self._done = done
        self._steps: _Steps | None = None
        self._starts = 0
        self._at = transactions.current  # the store that it runs in; most often its mapping is there
        self._entered = False  # this store's executor has begun with it
        self._operation: Operation  # that waits, in the store `_at`
        self._last_definition: tuple[object, ...] = ()  # the mapping as it was when the command moved
        self._reply: Reply

    def advance(self) -> Reply | None:
        """Run the command in one executor after another; return its reply, or None if `done` is called later."""
        while True:
            self._entered = False
            transaction = self._transactions.use(self._at)
            reply = self._executors[self._at].run(transaction, self._part, self._finish_later)
            if reply is not _REROUTE:
                return reply

    def _finish_later(self, reply: Reply) -> None:
        """Take what an executor returns later."""
        waits = self.advance() if reply is _REROUTE else reply
        if waits is not None:
            self._done(waits)

    def _part(self) -> OperationGen:
        """Yield operations for the executor that it runs in; begin again if that executor does."""
        here = self._at
        if self._entered or self._steps is None or self._last_definition != _definition(self._operation):
            self._starts += 1
            if self._starts > MAX_STARTS:
                store = self._stores.names[here]
                return ServerError(f"store {store}: the command was started {MAX_STARTS} times and did not end")
            self._steps = self._in_stores()
            waits = self._step(self._steps.send, None)
        else:
            waits = True
        self._entered = True
        steps = self._steps
        while waits:
            if self._at != here:
                self._last_definition = _definition(self._operation)
                return _REROUTE
            try:
                answer = yield self._operation
            except Exception as error:  # noqa: BLE001 - the command's to handle
                waits = self._step(steps.throw, error)
            else:
                waits = self._step(steps.send, answer)
        return self._reply

    def _step(self, resume: Callable[..., tuple[int, Operation]], value: object) -> bool:
        """Resume the steps with a value; return whether an operation waits, not the reply."""
        try:
            self._at, self._operation = resume(value)
        except StopIteration as stop:
            self._reply = stop.value
            return False
        return True

    def _in_stores(self) -> _Steps:
        """Run the command, and yield each of its operations with the store that it is for."""
        steps = self._begin()
        answer: object = None
        error: Exception | None = None
        while True:
            try:
                operation = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as stop:
                reply: Reply = stop.value
                return reply
            answer = error = None
            try:
                answer = yield from self._answered(operation)
            except Exception as failure:  # noqa: BLE001 - the command's to handle
                error = failure

    def _answered(self, operation: Operation) -> Generator[tuple[int, Operation], Any, Any]:
        transactions = self._transactions
        match operation:
            case Commit() | RollBack():
                return (yield from self._ended(operation))
            case FixSnapshot():
                # The next operation says in which store.
                transactions.fixes = True
                return None
            case LoadMapping(name):
                number = self._stores.store_named(name)
                mapping: Mapping | None = yield number, operation
                return None if mapping is None else self._stores.loaded(number, mapping)
        store = self._stores.store_of(operation.mapping)
        transactions.note(store, operation)
        if transactions.fixes:
            transactions.fixes = False
            yield store, FixSnapshot()
        return (yield store, operation)

    def _ended(self, how: Commit | RollBack) -> Generator[tuple[int, Operation], Any, str | None]:
        """End the transactions in all stores; return why what was written in one of them is lost.

        Raises:
            LockWaitError: a commit waited too long, and nothing of its transaction had been answered.
        """
        transactions = self._transactions
        transactions.fixes = False
        lost: str | None = None
        waited: LockWaitError | None = None
        # The current one first: what the command has written is there.
        for store in sorted(transactions.open, key=lambda each: each != self._at):
            try:
                reason: str | None = yield store, how
            except LockWaitError as error:
                waited = error
            else:
                lost = lost or reason
            transactions.ended(store)
        if waited is not None and lost is None:
            raise waited
        return lost


def _definition(operation: Operation) -> tuple[object, ...]:
    """Return the definition of an operation's mapping, which another program may change; empty without one."""
    mapping = getattr(operation, "mapping", None)
    return () if mapping is None else tuple(getattr(mapping, each.name) for each in fields(Mapping))


class RoutingExecutor:
    """Carries out the commands of all connections against several stores, each with one of the executors, in order."""

    def __init__(self, stores: SeveralStores, executors: Sequence[Executor]) -> None:
        self.stores = stores
        self.executors = executors

    def begin(self, reads: str = "") -> Transactions:
        return Transactions(self.executors, reads)

    def run(
        self, transaction: Transactions, begin: Callable[[], OperationGen], done: Callable[[Reply], None]
    ) -> Reply | None:
        return _Command(self, transaction, begin, done).advance()

    def commits_of(self, transaction: Transactions) -> Transactions:
        return transaction

    def planner(self, transaction: Transactions, session: Session, wire_rules: WireRules) -> TextPlanner | None:
        mapping = session.plannable_mapping
        if mapping is None:
            return None
        store = self.stores.store_of(mapping)
        return self.executors[store].planner(transaction.of(store), session, wire_rules)

    def end(self, transaction: Transactions) -> None:
        transaction.end()

    def commit(self) -> None:
        for each in self.executors:
            each.commit()

    async def check(self) -> None:
        for number, each in enumerate(self.executors):
            with self.stores.errors_of(number):
                await each.check()

    async def read_directory(self) -> Directory:
        """Read the configuration of all stores again, see `SeveralStores.read_directory`."""
        found = []
        for number, each in enumerate(self.executors):
            with self.stores.errors_of(number):
                found.append(await each.read_directory())
        return self.stores.joined(found)

    async def close(self) -> None:
        """Finish running commands, in each store also if another one fails."""
        async with AsyncExitStack() as stack:
            for each in self.executors:
                stack.push_async_callback(each.close)
