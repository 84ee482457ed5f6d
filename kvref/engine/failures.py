"""Replies to commands that could not be carried out: the table refuses the write, or a lock is not free in time."""

from __future__ import annotations

from typing import Final

from kvref.engine.session import LOCK_WAIT, Session
from kvref.protocol import commands as c
from kvref.protocol import replies as r

NOT_COUNTED: Final = r.ServerError("failed to store item", r.Fault.NOT_STORED)
NOT_FLUSHED: Final = r.ServerError("failed to flush cache", r.Fault.NOT_FLUSHED)


def refused_by_table(session: Session, cause: str) -> r.Reply:
    """Return the answer to a write that the table refused."""
    return r.ServerError(cause) if session.rules.refusal_is_error else r.Status.NOT_STORED


def answers_refused(session: Session, command: c.Command) -> bool:
    """Return whether a command whose write the table refuses is answered as if it were written."""
    return isinstance(command, c.Arithmetic) and session.rules.answers_refused_sum


def refused_write(session: Session, command: c.Command, cause: str, reply: r.Reply | None = None) -> r.Reply:
    """Return the reply to a command whose write the table refuses.

    Args:
        cause: the table's reason.
        reply: what the command was to be answered; None: it is not known.
    """
    match command:
        case c.Store():
            return refused_by_table(session, cause)
        case c.Delete():
            return refused_by_table(session, cause) if session.rules.refusal_is_error else r.Status.NOT_FOUND
        case c.Arithmetic() if reply is not None and answers_refused(session, command):
            return reply
        case c.Arithmetic() if not session.rules.refusal_is_error:
            return NOT_COUNTED
        case _:
            return r.ServerError(cause)


def lock_wait_reply(session: Session, command: c.Command) -> r.Reply:
    """Return the reply to a command that has waited too long for another writer."""
    if session.rules.lock_wait_is_error:
        return r.ServerError(LOCK_WAIT, r.Fault.CONFLICT)
    return failed(session, command)


def failed(session: Session, command: c.Command, of_delete: r.Reply = r.Status.NOT_FOUND) -> r.Reply:
    """Answer a write that could not be tried, as the plugin does (runtime-016, runtime-017, side-005..007)."""
    match command:
        case c.Store():
            return r.Status.NOT_STORED
        case c.Delete():
            return of_delete
        case c.Get():
            return r.Items([], command.with_cas)  # a row that is there is missed (rbatch-070)
        case c.FlushAll():
            return NOT_FLUSHED if session.rules.flush_reports_failure else r.Status.OK
        case _:
            return NOT_COUNTED
