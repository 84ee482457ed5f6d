"""From commands that run by steps to their generators; `kvref.engine.plans` decides those that are planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kvref.engine.access import UNLIMITED
from kvref.engine.cache.dispatch import Verb, run_by_policy
from kvref.engine.cache.memory import Policy
from kvref.engine.failures import failed, lock_wait_reply
from kvref.engine.operations import LockWaitError, OperationGen, RollBack, TransactionLostError
from kvref.engine.session import Session, UnfitError, conflict
from kvref.engine.steps import arithmetic, crawler, delete, meta, retrieve, stats, store
from kvref.engine.values import RefusedError
from kvref.errors import StoreError
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.command_table import ROWS

_TEMPORARY: Final = r.ServerError("temporary failure", r.Fault.UNFIT_TABLE)
_STOPS: Final = (RefusedError, UnfitError, LockWaitError, TransactionLostError, StoreError)
# Handlers of commands that look for items, read the store or depend on the mapping in force.
HANDLERS: Final[dict[type, Verb]] = {
    c.Get: retrieve.get,
    c.Store: store.store,
    c.Arithmetic: arithmetic.arithmetic,
    c.Delete: delete.delete,
    c.Touch: retrieve.touch,
    c.GetAndTouch: retrieve.get_and_touch,
    c.FlushAll: delete.flush_all,
    c.Bind: delete.bind,
    c.Refused: delete.refused,
    c.Stats: stats.stats,
    c.KeyDump: crawler.dump,
    **meta.VERBS,
}
# What answers the others at once, whatever the store does.
ANSWERS: Final[dict[type, Callable[[Session, Any], r.Reply]]] = {
    c.Version: lambda session, _command: r.Release(session.rules.release),
    c.Verbosity: stats.verbosity,
    **dict.fromkeys((c.CacheMemlimit, c.TuneCrawler, c.Noop), lambda _session, _command: r.Status.OK),
    c.MetaNoop: lambda _session, _command: r.Status.NOOP,
    c.SwitchCrawler: crawler.switch,
    c.Crawl: crawler.crawl,
    c.VBucket: lambda session, command: session.shared.vbuckets.answer(command),
    **dict.fromkeys((c.Quit, c.Foreign), lambda _session, _command: r.Closed()),
}
if HANDLERS.keys() & ANSWERS.keys() or ROWS.keys() ^ (HANDLERS.keys() | ANSWERS.keys()):
    raise TypeError("each command of the table needs exactly one handler")
if any(ROWS[command].policies for command in ANSWERS):
    raise TypeError("a command that is answered at once cannot have policies: give it a handler of HANDLERS")


def execute(session: Session, command: c.Command, now: int) -> OperationGen:
    """Run one command: yield the operations it needs, return its Reply; `Session.settle` counts it then."""
    session.begin()
    if session.access is not UNLIMITED:
        refusal = session.access.refusal(command)
        if refusal is not None:
            return refusal
        command = session.access.cleared(command)
    answer = ANSWERS.get(type(command))
    if answer is not None:
        reply = answer(session, command)
    else:
        try:
            reply = yield from _run_handler(session, command, now)
        finally:
            session.restore_binding()
    count = session.shared.counters.count
    session.defer_count(count, command, reply, missing_counted=session.rules.answers_missing_key)
    return reply


def _run_handler(session: Session, command: c.Command, now: int) -> OperationGen:
    """Run a verb that looks for items; a command with a mapping for itself alone is a separate batch."""
    policy, verb = session.shared.directory.policies.of(command), HANDLERS[type(command)]
    if policy is Policy.TABLE:
        reply = yield from _in_table(verb, session, command, now)
    else:
        reply = yield from run_by_policy(session, command, now, verb, _in_table, policy)
    if session.temporarily_bound and session.batch.open:
        try:
            reason = yield from session.batch.switched()
        except _STOPS as stop:
            return (yield from _stopped(session, command, stop))
        if reason is not None:
            return r.ServerError(reason)
    return reply


def _in_table(verb: Verb, session: Session, command: c.Command, now: int) -> OperationGen:
    """Run a verb and count it in the connection's batch."""
    session.batch.writing = False  # a command that was given up may have left it
    try:
        reply = yield from verb(session, command, now)
    except _STOPS as stop:
        reply = yield from _stopped(session, command, stop)
    if not session.batch.writing:
        return reply
    try:
        reason = yield from session.batch.wrote(failed=not counts_in_batch(session, command, reply))
    except _STOPS as stop:
        return (yield from _stopped(session, command, stop))
    return reply if reason is None else r.ServerError(reason)


def _stopped(session: Session, command: c.Command, stop: Exception) -> OperationGen:
    """Return the reply to what stopped a command."""
    batch, rules = session.batch, session.rules
    if not (batch.open or batch.writing):
        yield RollBack()  # what it has read or locked is in no batch: nothing else would end that transaction
    match stop:
        case RefusedError():
            return stop.reply
        case UnfitError():
            return r.ServerError(str(stop)) if rules.unfit_table_is_error else failed(session, command, _TEMPORARY)
        case LockWaitError():
            return lock_wait_reply(session, command)
        case TransactionLostError():
            batch.writing = False
            reply = r.ServerError(batch.lost(str(stop)), conflict(stop))
            return reply if rules.lock_wait_is_error or reply.fault is None else failed(session, command)
        case _:
            return r.ServerError(str(stop))


def counts_in_batch(session: Session, command: c.Command, reply: r.Reply) -> bool:
    """Return whether a write counts in its batch: one that has written, and those that always count."""
    if session.batch.counts_failed(command):
        return True
    if isinstance(reply, r.Meta):
        return reply.code is r.MetaCode.DONE
    return isinstance(reply, r.Number) or reply in (r.Status.STORED, r.Status.DELETED, r.Status.TOUCHED)
