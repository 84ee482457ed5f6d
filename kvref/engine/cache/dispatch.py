"""Dispatch commands by cache policy, and memcached's verbs on the memory cache (default engine, items.c).

The rules are those of innodb_get, innodb_store, innodb_arithmetic, innodb_remove and innodb_flush in innodb_engine.cc.
The plugin queries the cache first. If both are used, the table comes first here, because over a database a command may
run again; the reply is that of the table in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Final

from kvref.engine.access_log import Change
from kvref.engine.cache.memory import Entry, Key, Policy
from kvref.engine.items.storage import APPENDING, found_by_add, unmet
from kvref.engine.items.sums import NON_NUMERIC, change_of_sum, whole_number
from kvref.engine.items.times import EXPIRED_SECOND, expires_at_once
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Operation, OperationGen, Row
from kvref.engine.rules import Rules
from kvref.engine.session import Session
from kvref.engine.values import RefusedError, to_bytes
from kvref.protocol import commands as c
from kvref.protocol import numbers
from kvref.protocol import replies as r
from kvref.protocol.command_table import TABLE
from kvref.protocol.grammar import BAD_FORMAT
from kvref.protocol.replies import Fault, Number, ServerError, Status

NO_ROOM: Final = ServerError("out of memory storing object", Fault.OUT_OF_MEMORY)
_TOP: Final = 1 << 64


def touch(session: Session, key: Key, exptime: int, now: int) -> Entry | None:
    """Change the expiry time of an item and return it; the cas number stays. None if there is no item."""
    found = session.shared.cache.find(key, now)
    if found is not None:
        found = replace(found, expiry=_expiry(session, exptime, now))
        session.shared.cache.put(key, found)
    return found


def _store(session: Session, key: Key, command: c.Store, found: Entry | None, now: int) -> r.Reply:
    refusal = unmet(session, command.verb, found is not None, None if found is None else found.cas, command.cas)
    if refusal is not None:
        return refusal
    if found is None or command.verb not in APPENDING:
        flags, data = command.flags % (1 << 32), command.data
        expiry = _expiry(session, command.exptime, now)
    else:
        flags, data, expiry = found.flags, _joined(session.rules, command, found.data), found.expiry
    return Status.STORED if _put(session, key, flags, data, expiry, now) else NO_ROOM


def _add(session: Session, key: Key, command: c.Arithmetic, found: Entry | None, now: int) -> r.Reply:
    """Add to or subtract from a number in the cache; flags and expiry stay (more:policy-118)."""
    if found is None:
        if command.initial is None:
            return Status.NOT_FOUND
        _put(session, key, 0, b"%d" % command.initial, _expiry(session, command.exptime, now), now)
        return Number(command.initial)
    try:
        number = _number(session.rules, found.data)
    except RefusedError as refused:
        return refused.reply
    result = (number + command.delta) % _TOP if command.increment else max(0, number - command.delta)
    # The daemon's items ended with a line end once (more:policy-116).
    data = b"%d\r\n" % result if session.rules.cache_ends_sums else b"%d" % result
    _put(session, key, found.flags, data, found.expiry, now)
    return Number(result)


def _put(session: Session, key: Key, flags: int, data: bytes, expiry: int, now: int) -> bool:
    cache = session.shared.cache
    return cache.put(key, Entry(flags, data, next(cache.numbers), expiry, now))


def _sent_to_table(session: Session, command: c.Command, now: int) -> c.Command:
    """Return a command as the table gets it, when the cache has had it first.

    8.0 hands on the time as its cache keeps it, in seconds of the cache's clock, and the table counts that from now
    (more:policy-160).
    """
    if not isinstance(command, c.Store) or not session.rules.cache_shifts_time or command.exptime <= 0:
        return command
    cache = session.shared.cache
    return replace(command, frame=None, exptime=max(1, cache.expiry_of(command.exptime, now) - cache.began))


def _joined(rules: Rules, command: c.Store, old: bytes) -> bytes:
    first, second = (old, command.data) if command.verb == "append" else (command.data, old)
    # The line end that items had once is cut off still; where the first part has no two bytes that writes over its
    # key in memory, which is not imitated (more:policy-101, more:policy-103).
    return first[: -2 if rules.cache_cuts_append and len(first) >= 2 else None] + second


def _expiry(session: Session, exptime: int, now: int) -> int:
    cache = session.shared.cache
    if expires_at_once(session, exptime):
        return EXPIRED_SECOND
    if exptime and session.rules.cache_expires_from_start:
        return cache.began + exptime % (1 << 32)  # as it was sent, by the daemon's own clock (more:policy-117)
    return cache.expiry_of(exptime, now)


def _number(rules: Rules, text: bytes) -> int:
    """Return the number that a text is; raises RefusedError for any other text.

    The plugin's profiles read up to a blank or NUL (more:policy-163), but not behind the end of the value as the daemon
    did.
    """
    if not rules.counts_leading_number:
        return whole_number(text)
    number = numbers.unsigned(text.split(b"\0")[0])
    if number is None:
        raise RefusedError(NON_NUMERIC)
    return number


Verb = Callable[[Session, Any, int], OperationGen]


@dataclass(frozen=True, slots=True)
class _Target:
    """The item that a key names: its key in the cache, its mapping and its key in the table."""

    at: Key
    mapping: Mapping | None = None
    key: bytes = b""


def run_by_policy(
    session: Session, command: c.Command, now: int, verb: Verb, in_table: Callable[..., OperationGen], policy: Policy
) -> OperationGen:
    """Run a command by its policy and return its Reply.

    Args:
        verb: handler of the command for the table.
        in_table: called with a verb, session, command and time; returns an operation generator whose errors become
            replies and whose writes count in the batch.
        policy: the policy of the command, other than TABLE.
    """
    if policy is Policy.OFF:
        return NOT_DONE[type(command)](command)
    if policy is Policy.CACHE:
        return (yield from in_table(_in_cache, session, command, now))
    if isinstance(command, c.Get | c.Touch | c.GetAndTouch):
        return (yield from in_table(verb, session, command, now))  # it calls `cached` or `note` for each word
    if session.rules.cache_holds_rows:
        return (yield from _rows_cached(session, command, now, verb, in_table))
    return (yield from _both(session, command, now, verb, in_table))


def cached(session: Session, word: bytes, now: int) -> Generator[Operation, Any, r.Item | None]:
    """Return the item that the cache has for a word of a get with the policy BOTH; called before the table is read.

    In the plugin's profiles a hit does not switch (`more:policy-106`), nor count as a read (`more:policy-133`).
    """
    target = yield from _target(session, word)
    if target is None or session.pending.holds(target.at):
        return None
    return _fetched(session, word, target, session.shared.cache.find(target.at, now), now)


# The reply to a command that is neither done nor looked at: as if it had been done (tx:policy-004, more:policy-126).
NOT_DONE: Final[dict[type, Callable[[Any], r.Reply]]] = {
    c.Get: lambda command: r.Line(BAD_FORMAT) if command.refused else r.Items([], command.with_cas),
    c.Store: lambda _command: Status.STORED,
    c.Arithmetic: lambda _command: Number(0),
    c.Delete: lambda _command: Status.DELETED,
    c.Touch: lambda _command: Status.TOUCHED,
    c.GetAndTouch: lambda command: r.Items([], command.with_cas),
    c.FlushAll: lambda _command: Status.OK,
    c.Refused: lambda command: r.Line(command.line),
}
if NOT_DONE.keys() ^ {row.command for row in TABLE if row.policies}:
    raise TypeError("each command with cache policies needs a reply for `disabled` here, and what it does in the cache")


def _in_cache(session: Session, command: c.Command, now: int) -> Generator[Operation, Any, r.Reply]:
    if isinstance(command, c.Get | c.GetAndTouch):
        return (yield from _got(session, command, now))
    if isinstance(command, c.FlushAll):
        return _flushed(session, command, now)
    target = yield from _target(session, _word(command))
    if isinstance(command, c.Refused):
        if target is not None:
            session.shared.cache.remove(target.at)
        return r.Line(command.line)
    if target is None:
        return Status.NOT_FOUND
    if target.mapping is not None and not target.key:
        return Status.NOT_STORED if isinstance(command, c.Store) else Status.NOT_FOUND
    return _done(session, command, target, now)


def _done(session: Session, command: c.Command, target: _Target, now: int) -> r.Reply:
    cache, at = session.shared.cache, target.at
    found = cache.find(at, now)
    number = command.cas if isinstance(command, c.Store | c.Arithmetic | c.Delete) else 0
    if found is not None and session.is_another(found.cas, number):
        return Status.EXISTS
    change: Change | None = None
    match command:
        case c.Store():
            reply = _store(session, at, command, found, now)
            if reply is Status.STORED:
                change = Change.STORED
            elif found_by_add(command, reply):
                change = Change.OVERWRITTEN
        case c.Arithmetic():
            reply = _add(session, at, command, found, now)
            if isinstance(reply, Number):
                change = change_of_sum(b"" if found is None else found.data, reply.value)
        case c.Touch():
            if touch(session, at, command.exptime, now) is None:
                return Status.NOT_FOUND
            reply, change = Status.TOUCHED, Change.TOUCHED
        case _:
            cache.remove(at)
            return Status.NOT_FOUND if found is None else Status.DELETED
    if not isinstance(command, c.Touch):
        entry = cache.find(at, now)
        session.written_cas = 0 if entry is None else entry.cas
    if change is not None:
        session.shared.marks.changed(target.mapping, at[1], now, change)
    return reply


def _flushed(session: Session, command: c.FlushAll, now: int) -> r.Reply:
    session.shared.cache.flush(command.delay, now)
    return Status.OK


def _got(session: Session, command: c.Get | c.GetAndTouch, now: int) -> Generator[Operation, Any, r.Reply]:
    find, counters = session.shared.cache.find, session.shared.counters
    items: list[r.Item] = []
    size = 0
    for word in command.words:
        target = yield from _target(session, word)
        item = None
        if target is not None and target.mapping is not None and not target.key:
            item = r.Item(word, 0, target.mapping.label, 0)
        elif target is not None:
            at = target.at
            entry = touch(session, at, command.exptime, now) if isinstance(command, c.GetAndTouch) else find(at, now)
            item = _fetched(session, word, target, entry, now)
        if isinstance(command, c.Get):
            session.defer_count(counters.got, word, hits=item is not None, misses=item is None)
        elif target is None or target.mapping is None or target.key:
            session.defer_count(counters.touched, word, hit=item is not None)
        if item is not None:
            items.append(item)
            size += item.size
            session.check_reply(size)
    refused = isinstance(command, c.Get) and command.refused
    return r.Line(BAD_FORMAT) if refused else r.Items(items, command.with_cas)


def _fetched(session: Session, word: bytes, target: _Target, entry: Entry | None, now: int) -> r.Item | None:
    if entry is None:
        return None
    session.shared.marks.fetched(target.mapping, target.at[1], now)
    return r.Item(word, entry.flags, entry.data, entry.cas)


def _both(
    session: Session, command: c.Command, now: int, verb: Verb, in_table: Callable[..., OperationGen]
) -> OperationGen:
    """Run it in the table and, whatever the result, in the cache under the client's word (more:policy-103)."""
    reply: r.Reply = yield from in_table(verb, session, _sent_to_table(session, command, now), now)
    if isinstance(command, c.FlushAll):
        _flushed(session, command, now)
        return reply
    done = _done(session, command, _Target(("", _word(command))), now)
    return Status.DELETED if isinstance(command, c.Delete) and done is Status.DELETED else reply


def _rows_cached(
    session: Session, command: c.Command, now: int, verb: Verb, in_table: Callable[..., OperationGen]
) -> OperationGen:
    """Run it in the table and store the resulting row in the cache with the commit."""
    if isinstance(command, c.FlushAll):
        reply = yield from in_table(verb, session, command, now)
        if reply is Status.OK:
            session.shared.cache.clear()
        return reply
    reply = yield from in_table(verb, session, command, now)
    if isinstance(command, c.Delete | c.Refused):
        # Its row may be gone by SQL: what the cache still has of it goes too, and was there to be deleted.
        done = yield from in_table(_removed, session, command, now)
        return done if reply is Status.NOT_FOUND else reply
    return reply


def _removed(session: Session, command: c.Delete | c.Refused, now: int) -> OperationGen:
    target = yield from _target(session, _word(command))
    if target is None or session.pending.holds(target.at):
        return Status.NOT_FOUND
    return _done(session, command, target, now)


def note(session: Session, mapping: Mapping, row: Row, now: int) -> None:
    """Keep a row as it is after a write, for the cache to have it with the commit."""
    session.pending.wrote((mapping.identity, to_bytes(row.key)), entry_of(session, row, now))


def note_removed(session: Session, mapping: Mapping, key: Cell) -> None:
    """Remove a row from the cache with the commit."""
    session.pending.wrote((mapping.identity, to_bytes(key)), None)


def entry_of(session: Session, row: Row, now: int) -> Entry:
    item = session.item(b"", row)
    return Entry(item.flags, item.data, item.cas, max(row.expiry or 0, 0), now)


def _target(session: Session, word: bytes) -> Generator[Operation, Any, _Target | None]:
    """Return the cache key of a word; None if the word names an unknown mapping."""
    if not session.rules.cache_holds_rows:
        return _Target(("", word))
    target = session.split(word)
    if target is None:
        mapping: Mapping | None = yield from session.mapping()
        key = word
    else:
        mapping, key = (yield from session.switch(target.name, target.key)), target.key
    return None if mapping is None else _Target((mapping.identity, key), mapping, key)


def _word(command: c.Command) -> bytes:
    match command:
        case c.Store() | c.Arithmetic() | c.Delete() | c.Touch():
            return command.word
        case c.Refused():
            return command.removes
        case _:
            raise TypeError(f"{command!r} names no key")
