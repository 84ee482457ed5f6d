"""The record of a planned command, for replies that are not usual: rejections and errors of the store."""

from __future__ import annotations

from typing import Any

from kvref.engine import failures
from kvref.engine.counters import counted
from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.frames import FrameReads, FrameWrites
from kvref.engine.plans.meta import MetaReads, MetaWrites
from kvref.engine.plans.plan import Plan
from kvref.engine.plans.prefixes import PrefixCounting, note_rejected
from kvref.engine.plans.retrieve import Retrieval, SeveralTouched, Touching
from kvref.engine.plans.store import Deletion, Storage
from kvref.protocol import commands as c
from kvref.protocol.codec import encode
from kvref.protocol.hits import END
from kvref.protocol.replies import Items, Number, Reply


def record_of(plan: Plan) -> c.Command:
    """Return the record of a planned command, as the parser makes it."""
    decide, key, command, _, _ = _inner(plan)
    decider: Any = getattr(decide, "__self__", None)
    if isinstance(key, tuple):
        return c.Get(list(command[1]), with_cas=command[0])
    match decider:
        case Storage():
            verb, flags, exptime, data, number, quiet = command
            return c.Store(verb, key, flags, exptime, data, number, quiet)
        case Arithmetic():
            assert isinstance(command, c.Arithmetic)
            return command
        case Deletion():
            return c.Delete(key, command)
        case MetaReads() | FrameReads():
            record: c.Command = command
            return record
        case Touching() if decide.__name__ == "touch":
            return c.Touch(key, *command)
        case Touching() if decide.__name__ == "get_and_touch_one":
            several, _, word = command
            return c.GetAndTouch([word], several.exptime, several.cas)
        case Touching():
            exptime, cas, word = command
            return c.GetAndTouch([word], exptime, cas)
        case Retrieval():
            return c.Get([command], with_cas=decide.__name__ == "gets")
        case _:
            raise TypeError(f"{decide!r} decides no command that is known")


def _inner(plan: Plan) -> Plan:
    """Return a plan without what counts prefixes of its words."""
    decider = getattr(plan[0], "__self__", None)
    return decider.plan if isinstance(decider, PrefixCounting) else plan


def rejected(bound: Bound, plan: Plan, reply: Reply) -> bytes:
    """Count a command that is rejected with a reply, and return the reply's bytes."""
    record = record_of(plan)
    names = tuple(counted(record, reply, missing_counted=bound.rules.answers_missing_key))
    if names:
        bound.counted.append(names)
    if bound.counters.prefixes.counting:
        note_rejected(bound, record)
    cas, bound.refused_cas = bound.refused_cas, 0
    return encoded(plan, record, reply, cas)


def several_of(plan: Plan) -> SeveralTouched | None:
    """Return the command of which a plan is one word, None if it is a whole command."""
    if getattr(_inner(plan)[0], "__name__", "") != "get_and_touch_one":
        return None
    several: SeveralTouched = plan[2][0]
    return several


def encoded(plan: Plan, record: c.Command, reply: Reply, cas: int) -> bytes:
    """Return the bytes of the reply to a record; empty for a word of a gat whose reply another word has."""
    line = encode(record, reply, cas)
    several = several_of(plan)
    if several is None:
        return line
    index = plan[2][1]
    if several.ends_before(index):
        return b""
    if isinstance(reply, Items):
        shown: bytes = several.reply(index, line[: -len(END)])
        return shown
    several.refuse(index)
    return line


def refused_write(bound: Bound, plan: Plan, cause: str) -> Reply | None:
    """Return the reply to a command whose write the table refuses, None for the one that was decided.

    Forgets what the command has counted, which is the only decided one, as far as it is not carried out.
    """
    command = record_of(plan)
    bound.keep_refused(command)
    if failures.answers_refused(bound.session, command):
        bound.counted.append(tuple(counted(command, Number(0), missing_counted=False)))
        return None
    bound.refused_cas = bound.session.written_cas
    return failures.refused_write(bound.session, command, cause)


def lock_wait_timeout(bound: Bound, plan: Plan) -> Reply:
    """Return the reply to a command that has waited too long for another writer."""
    return failures.lock_wait_reply(bound.session, record_of(plan))


def blocks_gets(plan: Plan) -> bool:
    """Return whether gets of the row wait for a planned command: it may write, or shows accesses, as mg with h or l.

    For these the planner has called `KnownRows.plan_write`.
    """
    command = plan[2]
    return may_write(plan) or (isinstance(command, c.MetaGet) and command.shows_access)


def may_write(plan: Plan) -> bool:
    decider = getattr(_inner(plan)[0], "__self__", None)
    return isinstance(decider, MetaWrites | FrameWrites) or not isinstance(decider, Retrieval | MetaReads | FrameReads)
