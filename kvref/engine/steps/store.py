"""set, add, replace, append, prepend and cas."""

from __future__ import annotations

from kvref.engine.operations import OperationGen
from kvref.engine.plans.plan import CachedRow
from kvref.engine.plans.store import OUTCOMES, Storage
from kvref.engine.session import Session
from kvref.engine.steps.on_row import StepBound, StepDecision, run_on_row
from kvref.protocol import commands as c
from kvref.protocol.replies import Fault, ServerError, Status


def store(session: Session, command: c.Store, now: int) -> OperationGen:
    """Run one storage command; raises RefusedError if key, value or time do not fit and the profile does not cut."""
    if session.rules.first_store_opens_default and session.start() and session.default and session.default.fault:
        # innodb_allocate opens a mapping before `@@` is read.
        return ServerError("out of memory storing object", Fault.OUT_OF_MEMORY)
    target = yield from session.resolve(command.word, switches=True)
    if isinstance(target, Status):
        return target
    mapping, key = target
    if not key:
        return Status.NOT_STORED  # a switch word: innodb_store returns before it looks for a row
    stored = command.verb, command.flags, command.exptime, command.data, command.cas, False

    storage: Storage | None = None

    def decide(bound: StepBound, row: CachedRow, word: bytes) -> StepDecision:
        nonlocal storage
        storage = storage or Storage(bound)
        line, new, parameters = storage.decider(command.verb)(row, word, stored)
        return OUTCOMES[line], new, parameters

    return (yield from run_on_row(session, mapping, key, command, now, decide))
