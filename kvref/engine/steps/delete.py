"""delete, flush_all and bind."""

from __future__ import annotations

from kvref.engine.cache.dispatch import note_removed
from kvref.engine.cache.memory import Policy
from kvref.engine.failures import NOT_FLUSHED
from kvref.engine.operations import Clear, Commit, OperationGen, Remove, RollBack
from kvref.engine.plans.plan import CachedRow
from kvref.engine.plans.store import Deletion
from kvref.engine.session import Session
from kvref.engine.steps.on_row import StepBound, StepDecision, run_on_row
from kvref.protocol import commands as c
from kvref.protocol.replies import ClientError, Line, ServerError, Status


def delete(session: Session, command: c.Delete, now: int) -> OperationGen:
    target = yield from session.resolve(command.word, switches=session.rules.all_verbs_switch)
    if isinstance(target, Status):
        return target
    mapping, key = target

    def decide(bound: StepBound, row: CachedRow, _word: bytes) -> StepDecision:
        status, new = Deletion(bound).removed(row, command.cas)
        return status, new, None

    return (yield from run_on_row(session, mapping, key, command, now, decide))


def refused(session: Session, command: c.Refused, _now: int) -> OperationGen:
    """Answer a refused line; a set that is too large removes the row first, so that no stale value stays (tail-002)."""
    if command.removes:
        target = yield from session.resolve(command.removes, switches=session.rules.all_verbs_switch)
        row = None
        if not isinstance(target, Status):
            mapping, key = target
            row = yield from session.existing(mapping, key, 0)
            if row is not None:
                yield Remove(mapping, row.key)
                if session.shared.directory.policies.delete is Policy.BOTH and session.rules.cache_holds_rows:
                    note_removed(session, mapping, row.key)
        reason = yield from session.batch.wrote(failed=row is None)
        if reason is not None:
            return ServerError(reason)
    return Line(command.line)


def flush_all(session: Session, command: c.FlushAll, _now: int) -> OperationGen:
    """Empty the table of the bound mapping, and no other (map-053)."""
    if command.delay and not session.rules.ignores_delay:
        return ClientError("delayed flush_all is not supported: send flush_all or flush_all 0")
    mapping = yield from session.mapping()
    yield from session.check(mapping)
    cause = yield from session.batch.commit()
    if cause is not None:
        return ServerError(cause)
    cause = yield Clear(mapping, session.rules.flush_on_reference)
    session.batch.reopened()
    if cause is None:
        cause = yield Commit()
    else:
        yield RollBack()
    if cause is not None:
        return ServerError(cause) if session.rules.refusal_is_error else NOT_FLUSHED
    session.flushed = True
    return Status.OK


def bind(session: Session, command: c.Bind, _now: int) -> OperationGen:
    """Bind the connection to a mapping by its bare name; an unknown one binds nothing (core:bind-005)."""
    mapping = yield from session.switch(command.name)
    return Status.NOT_FOUND if mapping is None else Status.SUCCEED
