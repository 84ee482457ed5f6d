"""Commands to verbs: the one way into semantics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kvref.semantics import change, retrieve, store
from kvref.semantics.ports import Steps
from kvref.semantics.session import Session
from kvref.semantics.stats import report
from kvref.semantics.values import RefusedError
from kvref.wire import commands as c
from kvref.wire import replies as r

_VERBS: Final[dict[type, Callable[[Session, Any, int], Steps]]] = {
    c.Get: retrieve.get,
    c.Store: store.store,
    c.Arithmetic: change.arithmetic,
    c.Delete: change.delete,
    c.FlushAll: change.flush_all,
    c.Bind: change.bind,
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
    try:
        return (yield from verb(session, command, now))
    except RefusedError as refused:
        return refused.reply


def _without_rows(session: Session, command: c.Command) -> r.Reply:
    match command:
        case c.Refused():
            return r.Line(command.line)
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
