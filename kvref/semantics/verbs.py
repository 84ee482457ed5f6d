"""Commands to verbs: the one way into semantics."""

from __future__ import annotations

from typing import Final

from kvref.semantics import arithmetic, change, retrieve, store
from kvref.semantics.ports import LockWaitError, Steps
from kvref.semantics.session import Session, UnfitError
from kvref.semantics.stats import report
from kvref.semantics.through import Verb, through
from kvref.semantics.values import RefusedError
from kvref.wire import commands as c
from kvref.wire import replies as r

LOCK_WAIT: Final = "lock wait timeout"
_VERBS: Final[dict[type, Verb]] = {
    c.Get: retrieve.get,
    c.Store: store.store,
    c.Arithmetic: arithmetic.arithmetic,
    c.Delete: change.delete,
    c.FlushAll: change.flush_all,
    c.Bind: change.bind,
    c.Refused: change.refused,
}


def execute(session: Session, command: c.Command, now: int) -> Steps:
    """Carry out one command: yield the operations it needs, return its Reply.

    Args:
        session: the connection's state.
        command: what the client asked.
        now: UNIX time in whole seconds.
    """
    verb = _VERBS.get(type(command))
    if verb is None:
        return _without_rows(session, command)
    reply = yield from through(session, command, now, verb, _in_table)
    session.shared.counters.count(command, reply, missing_counted=session.rules.answers_missing_key)
    return reply


def _in_table(verb: Verb, session: Session, command: c.Command, now: int) -> Steps:
    try:
        reply = yield from verb(session, command, now)
        session.pending.committed()
    except RefusedError as refused:
        reply = refused.reply
    except UnfitError as unfit:
        error = session.rules.unfit_table_is_error
        reply = r.ServerError(str(unfit)) if error else _failed(session, command, r.ServerError("temporary failure"))
    except LockWaitError:
        reply = (
            r.ServerError(LOCK_WAIT)
            if session.rules.lock_wait_is_error or isinstance(command, c.Get)
            else _failed(session, command, r.Status.NOT_FOUND)
        )
    return reply


def _failed(session: Session, command: c.Command, delete: r.Reply) -> r.Reply:
    """Answer a write that could not be tried, as the plugin does (runtime-016, runtime-017, side-005..007)."""
    match command:
        case c.Store():
            return r.Status.NOT_STORED
        case c.Delete():
            return delete
        case c.FlushAll():
            return r.ServerError(change.NOT_FLUSHED) if session.rules.flush_tells_failure else r.Status.OK
        case _:
            return r.ServerError(arithmetic.NOT_COUNTED)


def _without_rows(session: Session, command: c.Command) -> r.Reply:
    match command:
        case c.Version():
            return r.Release(session.rules.release)
        case c.Verbosity():
            return r.Status.OK
        case c.Stats():
            return report(command.words, session.shared.counters, session.shared.process)
        case c.Quit():
            return r.Closed()
        case _:
            raise TypeError(f"no verb for {command!r}")
