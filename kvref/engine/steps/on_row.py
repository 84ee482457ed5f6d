"""Carry out a command on one row by steps: its decider says what the reply is, and what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from kvref.engine.cache.dispatch import note, note_removed
from kvref.engine.cache.memory import Policy
from kvref.engine.counters import STORED_ITEM
from kvref.engine.failures import refused_write
from kvref.engine.items import storage
from kvref.engine.mapping import Column, Mapping
from kvref.engine.operations import Insert, Lookup, OperationGen, ReadAlong, Remove, Row, Update
from kvref.engine.plans.bound import EXPIRED, ProbedBound, counts_itself
from kvref.engine.plans.plan import (
    ABSENT,
    CAS,
    EXPIRY,
    CachedRow,
    Parameters,
    Plan,
    RemovedError,
    Renewal,
    written_row,
)
from kvref.engine.plans.prefixes import PrefixCounting
from kvref.engine.plans.retrieve import TOUCHED
from kvref.engine.session import Session
from kvref.engine.values import as_stored
from kvref.protocol import commands as c
from kvref.protocol.replies import Reply, ServerError

# The reply to a command; the rest as of `plan.Decision`.
StepDecision = tuple[Reply, CachedRow | None, Parameters | None]
Written = Insert | Update | Remove


class StepBound(ProbedBound):
    """A mapping for one command of a session, whose `written_cas` is the number that the command takes."""

    def __init__(self, session: Session, mapping: Mapping) -> None:
        super().__init__(session, mapping)
        self.session = session
        self.next_cas = partial(storage.new_cas, session, mapping)


Decide = Callable[[StepBound, CachedRow, bytes], StepDecision]


def run_on_row(
    session: Session,
    mapping: Mapping,
    key: bytes,
    command: c.Command,
    now: int,
    decide: Decide,
    along: Callable[[Row], tuple[Column, ...]] | None = None,
) -> OperationGen:
    """Carry out a command on one row, and return its Reply.

    Args:
        key: empty for no row.
        decide: decides the command, as a `plan.Decide` does, of what a `StepBound` counts.
        along: returns further columns that the decider needs of a row.

    Raises:
        RefusedError: as the decider raises it.
        UnfitError: the table does not fit its mapping any more.
    """
    yield from session.check(mapping)
    bound = StepBound(session, mapping)
    bound.now = now
    bound.reaches_row(partial(decide, bound, ABSENT, key))
    yield from session.batch.write()
    cell = session.key_to_find(mapping, key) if key else None
    found: Row | None = None if cell is None else (yield Lookup(mapping, cell, for_update=True))
    bound.now = time_found(session, now)
    if found is not None and along is not None and (columns := along(found)):
        bound.further = dict(zip(columns, (yield ReadAlong(mapping, found.key, columns)), strict=False))
    by_decider = counts_itself(command)
    if by_decider and bound.counters.prefixes.counting:
        decide = _counting(decide, command)
    try:
        reply, written, removed = _decide(bound, decide, key, found)
        cause = None if written is None else (yield written)
    except BaseException:
        _count(bound, None if by_decider else {*EXPIRED})
        bound.discard()
        raise
    if cause is not None:
        bound.keep_refused(command)
        _count(bound, None)
        return ServerError(cause) if removed else refused_write(session, command, cause, reply)
    _count(bound, None if by_decider else {*EXPIRED} if removed else {*EXPIRED, *STORED_ITEM})
    touched = TOUCHED in bound.counted  # by a command that may write nothing, because the time is the same
    if written is not None or (touched and found is not None):
        yield from _note(bound, command, written, found)
    if removed:
        reason = yield from session.batch.wrote(failed=False)
        return reply if reason is None else ServerError(reason)
    if bound.events:
        bound.accesses.at(bound.now)
        bound.accesses.noted_all(bound.events)
    return reply


def time_found(session: Session, now: int) -> int:
    """Return the time at which a row is found: its lookup may have waited for a lock since `now`."""
    return max(now, session.shared.clock())


def _decide(bound: StepBound, decide: Decide, key: bytes, found: Row | None) -> tuple[Reply, Written | None, bool]:
    """Return the reply, what is written, and whether the command is rejected and removes its row."""
    row = ABSENT
    if found is not None:
        row = bound.row(key, found.values, 0, found.flags, found.cas, found.expiry)
    try:
        reply, new, parameters = decide(bound, row, key)
    except RemovedError as removed:
        assert found is not None, "a row that is removed is there"
        return removed.reply, Remove(bound.mapping, found.key), True
    return reply, _operation(bound, key, found, new, parameters), False


def _counting(decide: Decide, command: c.Command) -> Decide:
    """Return what decides a command, and counts the prefix of its key."""

    def counting(bound: StepBound, row: CachedRow, word: bytes) -> Any:
        plan: Plan = (lambda row, word, _: decide(bound, row, word)), word, command, [], 0
        return PrefixCounting(bound, plan, command).decide(row, word, None)

    return counting


def _operation(
    bound: StepBound, key: bytes, found: Row | None, new: CachedRow | None, parameters: Parameters | None
) -> Written | None:
    """Return the operation that leaves a row as its command has decided, None if the command writes nothing."""
    mapping = bound.mapping
    if new is None:
        return None
    if parameters is None:
        assert found is not None, "a row that is deleted is there"
        return Remove(mapping, found.key)
    if found is not None and isinstance(parameters, Renewal):
        row = replace(found, cas=new[CAS], expiry=new[EXPIRY])
        return Update(mapping, found.key, row, clear_unmapped=False, value_unchanged=True)
    clears = bound.rules.clears_unmapped
    stored_key = bound.key(key) if found is None or bound.rules.renames_key else found.key
    row = as_stored(mapping, written_row(mapping, stored_key, parameters))
    return Insert(mapping, row, clears) if found is None else Update(mapping, found.key, row, clears)


def _count(bound: StepBound, names: set[str] | None) -> None:
    """Count what a command has counted of some names, None: of all; and the prefix of its key."""
    defer = bound.session.defer_count
    for each in bound.counted:
        chosen = [name for name in each if names is None or name in names]
        if chosen:
            defer(bound.counters.add, chosen)
    for effect in bound.effects:
        defer(effect)


def _note(bound: StepBound, command: c.Command, written: Written | None, row: Row | None) -> OperationGen:
    """Let the memory cache have the row with the commit, where the policy of its command is that.

    Args:
        row: what the command has found, which it leaves so if it has written nothing.
    """
    session, mapping = bound.session, bound.mapping
    policies = session.shared.directory.policies
    deletes = isinstance(command, c.Delete) or (isinstance(command, c.MetaDelete) and not command.stale)
    policy = policies.delete if deletes else policies.set
    if policy is not Policy.BOTH or not session.rules.cache_holds_rows:
        return
    if isinstance(written, Remove):
        row = None
    elif written is not None:
        row = yield Lookup(mapping, written.row.key)  # the table may have changed it
    if row is not None:
        note(session, mapping, row, bound.now)
    elif written is not None:
        note_removed(session, mapping, written.key if isinstance(written, Remove) else written.row.key)
