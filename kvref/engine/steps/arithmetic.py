"""incr and decr."""

from __future__ import annotations

from functools import partial

from kvref.engine.items import sums
from kvref.engine.operations import OperationGen
from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.plan import CachedRow
from kvref.engine.session import Session
from kvref.engine.steps.on_row import StepBound, StepDecision, run_on_row
from kvref.engine.values import RefusedError
from kvref.protocol import commands as c
from kvref.protocol.replies import Number, Status


def arithmetic(session: Session, command: c.Arithmetic, now: int) -> OperationGen:
    """Add to or subtract from a stored number; flags and expiry stay, the cas number is new (columns:arith-001)."""
    if command.frame is None or not session.rules.answers_missing_key:
        return (yield from _sum(session, command, now))
    # 5.6.14 reports no failure: the reply is a success with an arbitrary number (columns:arith-003, columns:arith-005).
    try:
        reply = yield from _sum(session, command, now)
    except RefusedError:
        return Number(0)
    return reply if isinstance(reply, Number) else Number(0)


def _sum(session: Session, command: c.Arithmetic, now: int) -> OperationGen:
    target = yield from session.resolve(command.word, switches=session.rules.all_verbs_switch)
    if isinstance(target, Status):
        return target
    mapping, key = target

    def decide(bound: StepBound, row: CachedRow, word: bytes) -> StepDecision:
        result, new, parameters = Arithmetic(bound).sum(row, word, command)
        return result if isinstance(result, Status) else Number(result), new, parameters

    along = partial(sums.columns_along, mapping) if session.rules.counts_leading_number else None
    return (yield from run_on_row(session, mapping, key, command, now, decide, along))
