"""The meta commands over mapped tables, composed of the other verbs (memcached 1.6, proto_text.c).

The state that memcached keeps in an item in addition to its value (stale, won, fetched) is in `shared_state.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Final

from kvref.engine.access_log import Change
from kvref.engine.cache import dispatch
from kvref.engine.cache.dispatch import Verb, entry_of, note, run_by_policy
from kvref.engine.cache.memory import Entry, Policy
from kvref.engine.items import meta as items
from kvref.engine.items import storage, times
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Lookup, Operation, OperationGen, Row, Update
from kvref.engine.session import Session
from kvref.engine.shared_state import Mark
from kvref.engine.values import RefusedError, to_bytes, wrapped
from kvref.engine.verbs import store
from kvref.engine.verbs.arithmetic import arithmetic as count
from kvref.engine.verbs.delete import delete as delete_item
from kvref.engine.verbs.ranges import parse
from kvref.engine.verbs.retrieve import count_read, retimed, switch_item
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.command_table import PolicyKind
from kvref.protocol.replies import MetaCode, Status


def get(session: Session, command: c.MetaGet, now: int) -> OperationGen:
    """Answer one item, after setting another time (T), or after storing an empty one if there is none (N)."""
    target = yield from session.resolve(command.word, switches=True)
    found, created = None, False
    if not isinstance(target, Status):
        mapping, key = target
        if not key:
            data = switch_item(session, command.word, mapping).data
            item = r.MetaItem(size=len(data))
            return r.Meta(MetaCode.DONE, item, data if command.has(b"v") else None)
        writes = command.exptime is not None or command.vivify is not None
        kinds = (PolicyKind.GET, PolicyKind.SET) if writes else (PolicyKind.GET,)
        policy = session.shared.directory.policies.combined(*kinds)
        found = yield from _find(session, mapping, key, now, policy, locks=writes)
        if found is None and command.vivify is not None and policy is not Policy.OFF:
            items.check_times(session, mapping, command, now)
            reply = yield from _verb(session, c.Store("add", command.word, 0, command.vivify, b""), now, store.store)
            if reply not in (Status.STORED, Status.NOT_STORED):
                return reply
            created = reply is Status.STORED
            found = yield from _find(session, mapping, key, now, policy, locks=True)
            if found is None and created and times.expires_at_once(session, command.vivify):
                found = items.Found(
                    (mapping.identity, key),
                    Entry(0, b"", session.written_cas, times.EXPIRED_SECOND, now),
                    mapping,
                    None,
                )
    if command.exptime is not None and found is not None:
        session.defer_count(session.shared.counters.touched, command.word, hit=True)
        touched = yield from _retimed(session, found, command.exptime, now)
    else:
        missing = found is None
        session.defer_count(session.shared.counters.got, command.word, hits=not missing, misses=missing)
        if found is None:
            return r.Meta(MetaCode.MISSED)
        touched = found
    marks = session.shared.marks
    reply = items.answer(session, marks, command, found, touched, now, created=created)
    if touched is not found:
        marks.changed(found.mapping, found.at[1], now, Change.MARKED)  # the reply shows accesses to the item before
    return reply


def set_(session: Session, command: c.MetaSet, now: int) -> OperationGen:
    """Store an item; where I and an older number come along, as a stale one."""
    inner = c.Store(command.verb, command.word, command.flags, command.exptime, command.data, command.cas)
    reply = yield from _verb(session, inner, now, store.store)
    if command.stale and reply is Status.EXISTS and command.verb == "cas":
        reply = yield from _store_stale(session, command, now)
    if reply is not Status.STORED or not command.has(b"c"):
        return _coded(reply)
    cas = session.written_cas
    if session.shared.directory.policies.set is not Policy.CACHE:
        mapping = yield from session.mapping()
        cas = 0 if mapping.cas is None else wrapped(mapping.cas, cas) % (1 << 64)
    return r.Meta(MetaCode.DONE, r.MetaItem(cas=cas))


def _store_stale(session: Session, command: c.MetaSet, now: int) -> OperationGen:
    """Store over an item that has a newer number than the request: its time stays, and so do its marks."""
    found = yield from _named(session, command, now)
    if found is None or not 0 < command.cas < found.entry.cas:
        return Status.EXISTS
    mark = session.shared.marks.of(found.mapping, found.at[1], found.entry)
    inner = c.Store("set", command.word, command.flags, found.entry.expiry, command.data)
    reply = yield from _verb(session, inner, now, store.store)
    stored = (yield from _named(session, command, now)) if reply is Status.STORED else None
    if stored is not None:
        session.shared.marks.mark(stored.mapping, stored.at[1], stored.entry, replace(mark, stale=True))
    return reply


def delete(session: Session, command: c.MetaDelete, now: int) -> OperationGen:
    """Delete an item, or mark it as stale (I)."""
    if command.stale:
        return (yield from _make_stale(session, command, now))
    if command.cas == 0:  # unlike elsewhere a number like any other
        found = yield from _named(session, command, now)
        if found is not None and found.entry.cas:
            return r.Meta(MetaCode.EXISTS)
    reply = yield from _verb(session, c.Delete(command.word, cas=command.cas or 0), now, delete_item)
    return _coded(reply)


def _make_stale(session: Session, command: c.MetaDelete, now: int) -> OperationGen:
    if session.shared.directory.policies.set is Policy.OFF:
        return r.Meta(MetaCode.DONE)
    found = yield from _named(session, command, now)
    if found is None:
        return r.Meta(MetaCode.NOT_FOUND)
    if command.cas is not None and command.cas != found.entry.cas:
        return r.Meta(MetaCode.EXISTS)
    if found.row is not None:
        items.check_markable(found.mapping)
    if command.exptime is not None:
        found = yield from _touch(session, found, command.exptime, now)
        if times.expires_at_once(session, command.exptime):
            return r.Meta(MetaCode.DONE)  # no client reads it any more, so that no mark is needed
    entry = yield from renumbered(session, found, now)
    session.shared.marks.changed(found.mapping, found.at[1], now, Change.MARKED)
    session.shared.marks.mark(found.mapping, found.at[1], entry, Mark(stale=True))
    return r.Meta(MetaCode.DONE)


def renumbered(session: Session, found: items.Found, now: int) -> Generator[Operation, Any, Entry]:
    """Give an item another cas number, so that writes with the earlier one fail; return its entry."""
    if found.row is None:
        cache = session.shared.cache
        entry = replace(found.entry, cas=next(cache.numbers))
        cache.put(found.at, entry)
        return entry
    mapping, row = found.mapping, replace(found.row, cas=storage.new_cas(session, found.mapping))
    cause = yield Update(mapping, row.key, row, clear_unmapped=False, value_unchanged=True)
    if cause is not None:
        raise RefusedError(r.ServerError(cause))
    if session.shared.directory.policies.set is Policy.BOTH:
        note(session, mapping, row, now)
    return entry_of(session, row, now)


def arithmetic(session: Session, command: c.MetaArithmetic, now: int) -> OperationGen:
    """Add to or subtract from a number, or store the first one (N); then its item may get another time (T)."""
    if command.exptime is not None:
        target = yield from session.resolve(command.word, switches=True)
        if not isinstance(target, Status):
            items.check_times(session, target[0], command, now)
    inner = c.Arithmetic(
        command.increment, command.word, command.delta,
        initial=command.initial, exptime=command.vivify, cas=command.cas,
    )  # fmt: skip
    reply = yield from _verb(session, inner, now, count)
    if not isinstance(reply, r.Number):
        return _coded(reply)
    item = r.MetaItem(ttl=0, earlier=0, cas=session.written_cas)  # of a number that is over at once
    if command.exptime is not None or command.has(b"t") or command.has(b"c"):
        found = yield from _named(session, command, now)
        if found is not None:
            touched = found if command.exptime is None else (yield from _touch(session, found, command.exptime, now))
            item = r.MetaItem(cas=found.entry.cas, ttl=touched.left(now), earlier=found.left(now))
    return r.Meta(MetaCode.DONE, item, b"%d" % reply.value if command.has(b"v") else None)


def debug(session: Session, command: c.MetaDebug, now: int) -> OperationGen:
    """Return the metadata of an item; a table has no slabs, so the class is 0."""
    target = yield from session.resolve(command.word, switches=True)
    if isinstance(target, Status) or not target[1]:
        return r.MetaDebug(None)
    found = yield from _find(session, *target, now, session.shared.directory.policies.get, locks=False)
    if found is None:
        return r.MetaDebug(None)
    entry = found.entry
    hit, idle = items.accessed(session, session.shared.marks, found, now)
    rows = {
        "exp": -1 if entry.expiry <= 0 else now - entry.expiry,
        "la": idle,
        "cas": entry.cas,
        "fetch": "yes" if hit else "no",
        "cls": 0,
        "size": len(found.at[1]) + len(entry.data),
    }
    return r.MetaDebug([(name, str(value)) for name, value in rows.items()])


def _named(session: Session, command: c.MetaRequest, now: int) -> Generator[Operation, Any, items.Found | None]:
    """Find the item that a write is about, and lock its row."""
    target = yield from session.resolve(command.word, switches=True)
    if isinstance(target, Status) or not target[1]:
        return None
    return (yield from _find(session, *target, now, session.shared.directory.policies.set, locks=True))


def _find(
    session: Session, mapping: Mapping, key: bytes, now: int, policy: Policy, *, locks: bool
) -> Generator[Operation, Any, items.Found | None]:
    """Find an item where the policy says.

    Args:
        key: not empty.
        locks: it is written next; otherwise this is a read of the batch.
    """
    if session.rules.ranges and parse(key) is not None:
        raise RefusedError(r.ClientError("meta commands do not support ranges; use get"))
    at = (mapping.identity, key)
    if policy is Policy.CACHE or (policy is Policy.BOTH and not locks and not session.pending.holds(at)):
        entry = session.shared.cache.find(at, now)
        if entry is not None:
            return items.Found(at, entry, mapping, None)
    if policy in (Policy.CACHE, Policy.OFF):
        return None
    row: Row | None
    if locks:
        row = yield from session.existing(mapping, key, now)
    else:
        yield from session.check(mapping)
        cell = session.key_to_find(mapping, key)
        row = None if cell is None else (yield Lookup(mapping, cell))
        if not session.batch.reads_unbatched:
            yield from count_read(session)
        if row is not None and session.count_expired(row.expiry, now):
            row = None
    if row is None:
        return None
    return items.Found((mapping.identity, to_bytes(row.key)), entry_of(session, row, now), mapping, row)


def _touch(session: Session, found: items.Found, exptime: int, now: int) -> Generator[Operation, Any, items.Found]:
    session.shared.marks.changed(found.mapping, found.at[1], now, Change.MARKED)
    return (yield from _retimed(session, found, exptime, now))


def _retimed(session: Session, found: items.Found, exptime: int, now: int) -> Generator[Operation, Any, items.Found]:
    if found.row is None:
        entry = dispatch.touch(session, found.at, exptime, now)
        return replace(found, entry=entry or found.entry)
    time = times.requested_time(session, found.mapping, exptime, now)
    row = yield from retimed(session, found.mapping, found.row, time, now)
    return replace(found, row=row, entry=entry_of(session, row, now))


def _verb(session: Session, command: c.Command, now: int, verb: Verb) -> OperationGen:
    """Run a verb by its policy as a part of another command; `stats` counts it like a separate command."""
    policy = session.shared.directory.policies.of(command)
    if policy is Policy.TABLE:
        reply = yield from verb(session, command, now)
    else:
        reply = yield from run_by_policy(session, command, now, verb, lambda verb, *arguments: verb(*arguments), policy)
    count = session.shared.counters.count
    session.defer_count(count, command, reply, missing_counted=session.rules.answers_missing_key)
    return reply


def _coded(reply: r.Reply) -> r.Reply:
    code = items.CODES.get(reply) if isinstance(reply, Status) else None
    return reply if code is None else r.Meta(code)


VERBS: Final[dict[type, Callable[..., OperationGen]]] = {
    c.MetaGet: get,
    c.MetaSet: set_,
    c.MetaDelete: delete,
    c.MetaArithmetic: arithmetic,
    c.MetaDebug: debug,
}
