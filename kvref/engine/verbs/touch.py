"""touch, gat and gats: another time for a row, and nothing else of it changes, its cas number neither.

memcached 1.6 has these verbs (proto_text.c, process_touch_command and process_get_command), the plugin never had. Each
key of a gat is a write of the batch.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from kvref.engine.cache.dispatch import note
from kvref.engine.cache.policies import Policy
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Operation, OperationGen, Row, Update
from kvref.engine.session import Session
from kvref.engine.values import RefusedError
from kvref.engine.verbs.ranges import parse
from kvref.engine.verbs.retrieve import switch_item
from kvref.engine.verbs.store import OVER, check_time, is_over, remove_row, time_of
from kvref.protocol import commands as c
from kvref.protocol import replies as r


def touch(session: Session, command: c.Touch, now: int) -> OperationGen:
    """Give one row another time.

    Raises:
        RefusedError: see `touched`.
    """
    target = yield from session.resolve(command.word, switches=True)
    row = None if isinstance(target, r.Status) else (yield from touched(session, *target, command.exptime, now))
    return r.Status.NOT_FOUND if row is None else r.Status.TOUCHED


def get_and_touch(session: Session, command: c.GetAndTouch, now: int) -> OperationGen:
    """Answer the words in their order, and give each row that is found another time before the next word is read.

    Raises:
        RefusedError: see `touched`; what came before it is touched.
    """
    items: list[r.Item] = []
    size = 0
    for word in command.words:
        item = yield from _got(session, word, command.exptime, now)
        if item is not None:
            items.append(item)
            size += item.size
            session.check_reply(size)
    return r.Items(items, command.with_cas)


def _got(session: Session, word: bytes, exptime: int, now: int) -> Generator[Operation, Any, r.Item | None]:
    target = yield from session.resolve(word, switches=True)
    row: Row | None = None
    if not isinstance(target, r.Status):
        mapping, key = target
        if not key:
            return switch_item(session, word, mapping)
        if session.rules.ranges and parse(key) is not None:
            raise RefusedError(r.ClientError("gat takes no range: get it, and touch each key"))
        row = yield from touched(session, mapping, key, exptime, now)
        reason = yield from session.batch.wrote(failed=row is None)
        if reason is not None:
            raise RefusedError(r.ServerError(reason))
    session.shared.counters.touched(word, hit=row is not None)
    return None if row is None else session.item(word, row)


def touched(
    session: Session, mapping: Mapping, key: bytes, exptime: int, now: int
) -> Generator[Operation, Any, Row | None]:
    """Give a row another time and return the row; None where there is none.

    Args:
        session: the connection's state.
        mapping: whose row.
        key: empty for none.
        exptime: as the client wrote it.
        now: UNIX time in whole seconds.

    Raises:
        RefusedError: the mapping keeps no time, or not this one, or the table refuses it.
    """
    yield from session.check(mapping)
    time = time_asked(session, mapping, exptime, now)
    row, _ = yield from session.existing((mapping, key), now)
    if row is None:
        return None
    return (yield from retimed(session, mapping, row, time, now))


def retimed(session: Session, mapping: Mapping, row: Row, time: int, now: int) -> Generator[Operation, Any, Row]:
    """Write another time into a row that was read and locked, and return the row as it is then.

    A row that is over at once is removed where the mapping has no column to say so.

    Raises:
        RefusedError: the table refuses it.
    """
    if mapping.expiry is None and time == OVER:
        cause = yield from remove_row(session, mapping, row)
        if cause is not None:
            raise RefusedError(r.ServerError(cause))
        return replace(row, expiry=time)
    if mapping.expiry is not None and row.expiry != time:
        row = replace(row, expiry=time)
        cause = yield Update(mapping, row.key, row, clear_unmapped=False, keeps_value=True)
        if cause is not None:
            raise RefusedError(r.ServerError(cause))
    if session.shared.directory.policies.set is Policy.BOTH:
        note(session, mapping, row, now)
    return row


def time_asked(session: Session, mapping: Mapping, exptime: int, now: int) -> int:
    """Return the UNIX second that a row shall be over after; 0: never.

    Raises:
        RefusedError: the mapping has no expiry column, or the column cannot store this time.
    """
    if mapping.expiry is None and exptime and not is_over(session, exptime):
        # A set stores at least its value; a touch without an expiry column would do nothing at all.
        raise RefusedError(
            r.ClientError(f"mapping {mapping.name} has no expiry column: the only time that it keeps is 0")
        )
    time = time_of(session, exptime, now)
    check_time(mapping, time)
    return time
