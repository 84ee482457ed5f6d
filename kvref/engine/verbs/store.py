"""set, add, replace, append, prepend and cas."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from kvref.engine.access_log import Change
from kvref.engine.cache.memory import Policy
from kvref.engine.failures import refused_by_table
from kvref.engine.items import storage, times
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Insert, Lookup, Operation, OperationGen, Remove, Row, Update
from kvref.engine.session import Session
from kvref.engine.values import (
    RefusedError,
    as_stored,
    key_cell,
    only_column,
    split_value,
    to_bytes,
    value_cell,
)
from kvref.protocol import commands as c
from kvref.protocol.replies import Fault, Reply, ServerError, Status


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
    return (yield from write(session, mapping, key, command, now))


def write(
    session: Session, mapping: Mapping, key: bytes, command: c.Store, now: int, *, undivided: bool = False
) -> OperationGen:
    """Store under a key, which is not empty; if `undivided`, the value is the first column's, separators included."""
    yield from session.check(mapping)
    begun = session.rules.unfit_key_fails
    if begun:
        yield from session.batch.write()  # the plugin opens its table before it reads the key (more:keyfail-001)
    cell = _key(session, mapping, command, key)
    storage.check_numbers(session, mapping, command, now)
    if not begun:
        yield from session.batch.write()
    found: Row | None = None if mapping.unsearchable else (yield Lookup(mapping, cell, for_update=True))
    refused = refusal(session, command, found, now)
    if refused is not None:
        if found is not None and storage.found_by_add(command, refused):
            session.shared.marks.changed(mapping, to_bytes(found.key), now, Change.OVERWRITTEN)
        return refused
    try:
        row = as_stored(mapping, _new_row(session, mapping, command, cell, found, now, undivided=undivided))
    except RefusedError as unfit:
        if found is None or command.verb != "set" or not session.refused_set_removes:
            raise
        return (yield from _removed_instead(session, mapping, found, unfit.reply))
    if (
        mapping.expiry is None
        and command.verb not in storage.APPENDING
        and times.expires_at_once(session, command.exptime)
    ):
        cause = None if found is None else (yield from remove_row(session, mapping, found))
    elif found is None:
        cause = yield Insert(mapping, row, session.rules.clears_unmapped)
    else:
        if not session.rules.renames_key:
            row.key = found.key
        cause = yield Update(mapping, found.key, row, session.rules.clears_unmapped)
    if cause is not None:
        return refused_by_table(session, cause)
    session.defer_count(session.shared.counters.item_stored)
    session.shared.marks.changed(mapping, to_bytes(row.key), now, Change.STORED)
    return Status.STORED


def refusal(session: Session, command: c.Store, found: Row | None, now: int) -> Status | None:
    """Return the reply to a storage command whose condition does not hold for the row, None where it holds."""
    over = found is not None and session.rules.writes_check_expiry and _expired(session, command, found, now)
    present = found is not None and not over
    reply = storage.unmet(session, command.verb, present, None if found is None else found.cas, command.cas)
    if reply is not None and command.verb == "add":
        session.next_cas()  # only the index notices: the number is taken by then (more:clock-001)
    return reply


def _expired(session: Session, command: c.Store, found: Row, now: int) -> bool:
    # A set replaces whatever it finds, often without a look at it.
    check = session.is_expired if command.verb == "set" else session.count_expired
    return check(found.expiry, now)


def _key(session: Session, mapping: Mapping, command: c.Store, key: bytes) -> Cell:
    return storage.storage_key(partial(key_cell, mapping.key, rules=session.rules), command.verb, key, session.rules)


def _new_row(
    session: Session, mapping: Mapping, command: c.Store, key: Cell, found: Row | None, now: int, *, undivided: bool
) -> Row:
    rules, separator = session.rules, session.shared.directory.separator
    flags = storage.fit_flags(mapping, command.flags)
    expiry = times.fit_time(mapping, storage.requested_time(session, command, now))
    if found is None or command.verb not in storage.APPENDING:
        cas = storage.new_cas(session, mapping)  # taken before the value is looked at (columns:cas-017)
        if undivided:
            values = only_column(mapping, 0, value_cell(mapping.values[0], command.data, rules))
        else:
            values = split_value(mapping, command.data, separator, rules)
    else:
        values = storage.appended(session, mapping, command.verb, command.flags, command.data, found.values)
        cas = storage.new_cas(session, mapping)
        if not rules.append_takes_request:
            flags, expiry = found.flags, found.expiry
    return Row(key, values, flags, cas, expiry)


def _removed_instead(session: Session, mapping: Mapping, row: Row, reply: Reply) -> OperationGen:
    """Remove the row whose new value was rejected, so that no client reads the old value; return the rejection."""
    cause = yield from remove_row(session, mapping, row)
    if cause is not None:
        return ServerError(cause)
    reason = yield from session.batch.wrote(failed=False)
    return reply if reason is None else ServerError(reason)


def remove_row(session: Session, mapping: Mapping, row: Row) -> Generator[Operation, Any, str | None]:
    """Remove the row of an item that a command ends without a delete; return why the table refuses that."""
    cause: str | None = yield Remove(mapping, row.key)
    if cause is None and session.shared.directory.policies.set is Policy.BOTH:
        session.pending.wrote((mapping.identity, to_bytes(row.key)), None)
    return cause
