"""incr and decr."""

from __future__ import annotations

from kvref.engine.failures import NOT_COUNTED
from kvref.engine.items import storage, sums
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, OperationGen, ReadAlong, Row, Update
from kvref.engine.session import Session
from kvref.engine.values import (
    RefusedError,
    as_stored,
    join_value,
    to_bytes,
)
from kvref.engine.verbs.store import write
from kvref.protocol import commands as c
from kvref.protocol.replies import Number, ServerError, Status


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
    row = yield from session.existing(mapping, key, now)
    if row is None:
        sums.check_missing(session, mapping, key, command)
        if command.initial is None:
            return Status.NOT_FOUND
        return (yield from _created(session, command, mapping, key, now))
    if session.is_another(row.cas, command.cas):
        return Status.EXISTS
    if session.rules.counts_leading_number:
        index = sums.column_used(mapping, row.flags)
        number = yield from _leading(session, mapping, row, index)
    else:
        index, number = 0, sums.whole_number(join_value(row.values, session.shared.directory.separator))
    result = sums.sum_of(session, command, number)
    cas = storage.new_cas(session, mapping)  # taken before the column is looked at (binary:bin-int-202)
    new = as_stored(mapping, storage.with_values(mapping, row, sums.cells_of_sum(session, mapping, result, index), cas))
    if session.rules.renames_key:
        new.key = session.key_to_find(mapping, key)
    cause = yield Update(mapping, row.key, new, session.rules.clears_unmapped)
    if cause is not None and not session.rules.answers_refused_sum:
        return ServerError(cause) if session.rules.refusal_is_error else NOT_COUNTED
    change = sums.change_of_sum(to_bytes(row.values[index]), result)
    session.shared.marks.changed(mapping, to_bytes(row.key), now, change)
    return Number(result)


def _created(session: Session, command: c.Arithmetic, mapping: Mapping, key: bytes, now: int) -> OperationGen:
    """Store the first number, which only the binary protocol sends along."""
    assert command.initial is not None
    exptime = command.exptime if session.rules.stores_created_expiry else 0  # columns:arith-011
    number = sums.first_number(session, mapping, command.initial)
    new = c.Store("add", command.word, 0, exptime, b"%d" % number)
    reply = yield from write(session, mapping, key, new, now, undivided=True)  # more:bin-215
    if reply is Status.STORED or (reply is Status.NOT_STORED and session.rules.answers_refused_sum):
        return Number(command.initial)
    return NOT_COUNTED if reply is Status.NOT_STORED else reply


def _leading(session: Session, mapping: Mapping, row: Row, index: int) -> OperationGen:
    cell, following = row.values[index], mapping.following[index]
    along: tuple[Cell, ...] = ()
    if sums.reads_along(mapping, index, cell):
        along = yield ReadAlong(mapping, row.key, following)
    return sums.leading(session, mapping, index, cell, along)
