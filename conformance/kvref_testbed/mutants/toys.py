"""Toy servers: each replies as if it had run a command or applied a setting, and does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

from kvref.engine import dispatch
from kvref.engine.batch import Limits
from kvref.engine.mapping import DEFAULT_DELIMITER, Switch, split_word
from kvref.engine.operations import Clear, Insert, Remove, Update
from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.retrieve import Touching
from kvref.engine.plans.store import Deletion, Storage
from kvref.engine.plans.words import Words
from kvref.engine.rules import Rules
from kvref.engine.session import Session
from kvref.engine.steps import retrieve
from kvref.protocol import commands, replies
from kvref.server.connection import Connection
from kvref_testbed.mutants.mutant import Decide, OperationGen, breaks, put, put_decisions

Handler = Callable[..., OperationGen]
WRITING: Final = (Insert, Update, Remove, Clear)


def _without_writes(handler: Handler, when: Callable[[Any], bool] = lambda command: True) -> Handler:
    """Return a handler with the same replies that reads rows and writes none.

    Args:
        handler: of a command.
        when: returns whether a command is one that writes nothing.
    """

    def run(session: Session, command: Any, now: int) -> OperationGen:
        steps = handler(session, command, now)
        if not when(command):
            return (yield from steps)
        result: Any = None
        while True:
            try:
                operation = steps.send(result)
            except StopIteration as end:
                return end.value
            # None is the result of a write that succeeds.
            result = None if isinstance(operation, WRITING) else (yield operation)

    return run


def _write_nothing(when: Callable[[Any], bool], *kinds: type) -> None:
    for kind in kinds:
        dispatch.HANDLERS[kind] = _without_writes(dispatch.HANDLERS[kind], when)


def _decide_nothing(when: Callable[[bytes, Any], bool], *deciders: Decide) -> None:
    """Let planned commands write nothing.

    Args:
        when: given the reply and the command of a decider.
        deciders: see `put_decisions`.
    """

    def changed(decide: Decide) -> Decide:
        def decided(self: Any, row: Any, word: bytes, command: Any) -> Any:
            reply, new, parameters = decide(self, row, word, command)
            return (reply, None, None) if when(reply, command) else (reply, new, parameters)

        return decided

    put_decisions(changed, *deciders)


@breaks("KV-TOUCH-003")
def touches_nothing() -> None:
    """`touch`, `gat` and `gats` leave the expiry time as it is."""
    _write_nothing(lambda command: True, commands.Touch, commands.GetAndTouch)
    touching = Touching.touch, Touching.get_and_touch, Touching.get_and_touch_one
    _decide_nothing(lambda reply, command: True, *touching)


@breaks("KV-FLUSH-001")
def flushes_nothing() -> None:
    """`flush_all` leaves all rows."""
    _write_nothing(lambda command: True, commands.FlushAll)


@breaks("KV-STATS-026")
def sets_no_verbosity() -> None:
    """`verbosity` leaves the level as it is."""
    dispatch.ANSWERS[commands.Verbosity] = lambda session, command: replies.Status.OK


@breaks("KV-EXP-001")
def expires_nothing() -> None:
    """Expiry times are stored, and no item expires."""
    put(Rules, "is_expired", lambda self, expiry, now: False)


@breaks("KV-CAS-001")
def stores_nothing_by_cas() -> None:
    """`cas` compares the numbers and leaves the item as it is."""
    _write_nothing(lambda command: command.verb == "cas", commands.Store)
    _decide_nothing(lambda reply, command: command[0] == "cas", Storage.conditional)


@breaks("KV-CONN-001")
def ignores_silent_commands() -> None:
    """Commands with noreply have no effect."""
    silent = (commands.Store, commands.Arithmetic, commands.Delete, commands.Touch, commands.FlushAll)
    _write_nothing(lambda command: command.noreply, *silent)
    storing = Storage.set, Storage.conditional, Storage.append
    _decide_nothing(lambda reply, command: not reply, *storing, Deletion.delete, Arithmetic.add, Touching.touch)


@breaks("KV-DELIM-001")
def separates_by_dots_only() -> None:
    """`table_map_delimiter` is read and has no effect."""

    def split(self: Session, word: bytes) -> Switch | None:
        return split_word(word, DEFAULT_DELIMITER, self.rules)

    put(Session, "split", split)


@breaks("KV-BIND-001")
def binds_nothing() -> None:
    """`bind` leaves the binding of the connection as it is."""
    bind = dispatch.HANDLERS[commands.Bind]
    dispatch.HANDLERS[commands.Bind] = lambda session, command, now: bind(session.clone(), command, now)


@breaks("KV-BATCH-003")
def commits_no_full_batch() -> None:
    """A batch of several commands is never full."""
    full = Limits.full
    put(Limits, "full", lambda self, reads, writes: self.reads == self.writes == 1 and full(self, reads, writes))


@breaks("KV-IDLE-001")
def resets_idle_batches() -> None:
    """The background commit resets the counts of a batch without a commit."""
    commit_idle = Connection.commit_idle

    def reset(self: Session) -> OperationGen:
        yield from ()
        self.batch.reset()
        return replies.Status.OK

    def idle(self: Connection) -> None:
        with patch.object(Session, "end_batch", reset):
            commit_idle(self)

    put(Connection, "commit_idle", idle)


@breaks("KV-RANGE-001")
def finds_nothing_in_a_range() -> None:
    """A range query is accepted and returns no row."""

    def empty(*_: Any, **__: Any) -> OperationGen:
        yield from ()
        return [], False

    put(retrieve, "scan", empty)


@breaks("KV-CORE-001")
def writes_nothing() -> None:
    """All tables are read-only, and every write is answered as if it had succeeded."""
    for kind, handler in dispatch.HANDLERS.items():
        dispatch.HANDLERS[kind] = _without_writes(handler)
    put(Words, "runs", _only_gets(Words.runs))


def _only_gets(runs: Callable[[Any, commands.Command], bool]) -> Callable[[Any, commands.Command], bool]:
    return lambda words, command: isinstance(command, commands.Get | commands.MetaGet) and runs(words, command)
