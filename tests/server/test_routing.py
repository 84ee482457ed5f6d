"""Commands over several executors: where each operation goes, and commands that an executor starts again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kvref import profiles
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import (
    Commit,
    FixSnapshot,
    LoadMapping,
    Lookup,
    OperationGen,
    RollBack,
    Update,
)
from kvref.errors import StoreError
from kvref.protocol.replies import Line, Reply, ServerError
from kvref.server.executors.base import Execution
from kvref.server.executors.routing import MAX_STARTS, RoutingExecutor
from kvref.storage.memory import MemoryStore
from kvref.storage.several import Placement, SeveralStores


def mapping(name: str) -> Mapping:
    return Mapping(name, "s", "t", "t", Column("k", Kind.BYTES), (Column("v", Kind.TEXT),), None, None, None)


A, B = mapping("a"), mapping("b")


class Executor:
    """Answers each operation by its name, or starts the command again, or fails.

    Args:
        log: gets the name of each operation with the name of the store.
        name: of the store.
        again: how often a command that is there starts again.
    """

    def __init__(self, log: list[str], name: str, again: int = 0, failure: Exception | None = None) -> None:
        self._log = log
        self._name = name
        self._again = again
        self._failure = failure
        self._waiting: list[tuple[Execution, Callable[[Reply], None]]] = []
        self.later = False  # it answers when `go_on` is called
        self.left: Callable[[], object] = lambda: None  # what happens between its part of a command and the reply
        self.change: Callable[[], None] = lambda: None  # what another program does before a command is there

    def planner(self, transaction: str, session: object, wire_rules: object) -> tuple[str, object, object]:
        return transaction, session, wire_rules

    def begin(self, reads: str = "") -> str:
        self._log.append(f"{self._name}: begin {reads}".rstrip())
        return self._name

    def commits_of(self, transaction: object) -> Any:
        return SimpleNamespace(unsettled=None)

    def run(self, transaction: str, begin: Callable[[], OperationGen], done: Callable[[Reply], None]) -> Reply | None:
        assert transaction == self._name
        self.change()
        command = Execution(begin, done)
        if self.later:
            self._waiting.append((command, done))
            return None
        return self._carry_out(command)

    async def close(self) -> None:
        self._log.append(f"{self._name}: close")
        if self._failure:
            raise self._failure

    def go_on(self) -> None:
        ((command, done),) = self._waiting
        self._waiting.clear()
        reply = self._carry_out(command)
        self.left()
        done(reply)

    def _carry_out(self, command: Execution) -> Reply:
        waits = command.start()
        while waits:
            operation = command.operation
            if self._again:
                self._again -= 1
                waits = command.start()
                continue
            self._log.append(f"{self._name}: {type(operation).__name__}")
            waits = (
                command.send(None, self._failure)
                if self._failure and isinstance(operation, Lookup)
                else command.send(type(operation).__name__)
            )
        return command.reply


def router(*executors: Executor) -> RoutingExecutor:
    profile = profiles.load("kvref")
    placed = Placement({"one": "", "two": ""}, {"b": "two"})
    stores = SeveralStores(placed, [MemoryStore("memory://", profile) for _ in range(2)], profile)
    stores._placed = {"b": 1}
    stores.loaded(0, A)
    stores.loaded(1, B)
    return RoutingExecutor(stores, cast("Any", executors))


def played(steps: Callable[[], OperationGen], *executors: Executor) -> list[Reply | None]:
    """Return what was replied, at once and later."""
    replies: list[Reply | None] = []
    routing = router(*executors)
    replies.append(routing.run(routing.begin(), steps, replies.append))
    for each in executors:
        if each.later:
            each.go_on()
    return replies


def two_gets() -> OperationGen:
    one = yield Lookup(A, "x")
    two = yield Lookup(B, "y")
    lost = yield Commit()
    return Line(f"{one} {two} {lost}".encode())


def test_each_operation_goes_to_the_store_of_its_mapping_and_a_commit_to_all() -> None:
    log: list[str] = []
    assert played(two_gets, Executor(log, "one"), Executor(log, "two")) == [Line(b"Lookup Lookup Commit")]
    assert log == ["one: begin", "one: Lookup", "two: begin", "two: Lookup", "two: Commit", "one: Commit"]


def test_commands_are_planned_in_the_store_of_their_mapping() -> None:
    routing: Any = router(Executor([], "one"), Executor([], "two"))
    for mapped, store in ((A, "one"), (B, "two")):
        session = SimpleNamespace(plannable_mapping=mapped)
        assert routing.planner(routing.begin(), session, "rules") == (store, session, "rules")
    assert routing.planner(routing.begin(), SimpleNamespace(plannable_mapping=None), "rules") is None


def test_an_executor_may_answer_later() -> None:
    log: list[str] = []
    one, two = Executor(log, "one"), Executor(log, "two")
    two.later = True
    routing = router(one, two)
    replies: list[Reply | None] = []
    assert routing.run(routing.begin(), two_gets, replies.append) is None
    assert (replies, log[-1]) == ([], "two: begin")
    two.go_on()
    assert replies == [Line(b"Lookup Lookup Commit")]


def test_a_command_starts_again_as_a_whole() -> None:
    log: list[str] = []
    assert played(two_gets, Executor(log, "one"), Executor(log, "two", again=2)) == [Line(b"Lookup Lookup Commit")]
    assert log.count("one: Lookup") == 3
    assert log[-3:] == ["two: Lookup", "two: Commit", "one: Commit"]


def test_a_command_that_starts_again_and_again_ends() -> None:
    replies = played(two_gets, Executor([], "one"), Executor([], "two", again=1000))
    assert replies == [ServerError(f"store two: the command was started {MAX_STARTS} times and did not end")]


def test_a_command_that_comes_to_a_table_that_has_changed_starts_again() -> None:
    log: list[str] = []
    two, starts = Executor(log, "two"), 0

    def change() -> None:
        B.fault = "no such column"

    def steps() -> OperationGen:
        nonlocal starts
        starts += 1
        fault = B.fault
        yield Lookup(A, "x")
        if fault:
            return Line(fault.encode())
        yield Lookup(B, "y")
        return Line(b"old")

    two.change = change
    try:
        assert played(steps, Executor(log, "one"), two) == [Line(b"no such column")]
    finally:
        B.fault = ""
    assert starts == 2


def test_errors_are_raised_in_the_command() -> None:
    def steps() -> OperationGen:
        yield Lookup(A, "x")
        try:
            yield Lookup(B, "y")
        except StoreError as error:
            yield RollBack()
            return ServerError(str(error))
        return Line(b"")

    log: list[str] = []
    assert played(steps, Executor(log, "one"), Executor(log, "two", failure=StoreError("gone"))) == [
        ServerError("gone")
    ]
    assert log[-2:] == ["two: RollBack", "one: RollBack"]


def test_mappings_are_loaded_where_they_are_placed_and_snapshots_fixed_where_the_command_goes_on() -> None:
    def steps() -> OperationGen:
        routing.stores.loaded = lambda number, found: seen.append((number, found))  # type: ignore[method-assign]
        yield LoadMapping("b")
        yield LoadMapping("other")
        yield FixSnapshot()
        yield Update(B, "x", cast("Any", None), clear_unmapped=False)
        yield Commit()
        yield Commit()
        return Line(b"done")

    log: list[str] = []
    seen: list[object] = []
    routing = router(Executor(log, "one"), Executor(log, "two"))
    assert routing.run(routing.begin(), steps, seen.append) == Line(b"done")
    assert [each for each in log if "begin" not in each] == [
        "two: LoadMapping", "one: LoadMapping", "two: FixSnapshot", "two: Update", "two: Commit",
    ]  # fmt: skip
    assert seen == [(1, "LoadMapping"), (0, "LoadMapping")]


def test_a_mapping_stays_in_its_store_when_its_table_has_changed() -> None:
    placed = mapping("b")
    placed.assign_store("two")
    placed.become(mapping("b"))
    assert (placed.store, placed.identity) == ("two", "two:t")


def test_a_reply_may_leave_while_a_command_moves_to_a_store() -> None:
    """The executor that a command leaves may say so later; meanwhile earlier replies of the connection are sent."""
    seen: list[object] = []

    def steps() -> OperationGen:
        yield Lookup(A, "x")
        yield Lookup(B, "y")
        return Line(b"done")

    one, two = Executor([], "one"), Executor([], "two")
    one.later = True
    one.left = lambda: seen.append(transactions.unsettled)
    routing = router(one, two)
    transactions = routing.begin()
    assert routing.run(transactions, steps, seen.append) is None
    one.go_on()
    assert seen == [None, Line(b"done")]


def test_all_stores_are_closed_also_if_one_fails() -> None:
    log: list[str] = []
    routing = router(Executor(log, "one", failure=StoreError("gone")), Executor(log, "two", failure=StoreError("lost")))
    with pytest.raises(StoreError):
        asyncio.run(routing.close())
    assert sorted(log) == ["one: close", "two: close"]
