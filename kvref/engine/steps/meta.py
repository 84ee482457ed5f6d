"""The meta commands by steps; those that may write to a table are decided in `kvref.engine.plans.meta`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Final, TypeVar

from kvref.engine.access_log import Change
from kvref.engine.cache import dispatch
from kvref.engine.cache.dispatch import Verb, entry_of, run_by_policy
from kvref.engine.cache.memory import Entry, Policy
from kvref.engine.items import meta as items
from kvref.engine.items import times
from kvref.engine.items.meta import Found
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Lookup, Operation, OperationGen, Row
from kvref.engine.plans.deciders import Deciders
from kvref.engine.plans.meta import MetaWrites
from kvref.engine.plans.plan import CachedRow
from kvref.engine.session import Session
from kvref.engine.shared_state import Mark
from kvref.engine.steps import store
from kvref.engine.steps.arithmetic import arithmetic as count
from kvref.engine.steps.delete import delete as delete_item
from kvref.engine.steps.on_row import StepBound, StepDecision, run_on_row
from kvref.engine.steps.ranges import parse
from kvref.engine.steps.retrieve import count_read, switch_item
from kvref.engine.values import RefusedError, to_bytes
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.command_table import PolicyKind
from kvref.protocol.replies import MetaCode, Status

T = TypeVar("T", c.MetaGet, c.MetaSet, c.MetaDelete, c.MetaArithmetic)

_OF_TABLE: Final = (Policy.TABLE, Policy.BOTH)


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
        _refuse_range(session, key)
        writes = command.exptime is not None or command.vivify is not None
        kinds = (PolicyKind.GET, PolicyKind.SET) if writes else (PolicyKind.GET,)
        policy = session.shared.directory.policies.combined(*kinds)
        if writes and policy in _OF_TABLE:
            return (yield from _run_on_row(session, mapping, key, command, now, MetaWrites.get_and_write))
        found = yield from _find(session, mapping, key, now, policy)
        if found is None and command.vivify is not None and policy is Policy.CACHE:
            created, found = yield from _vivified(session, command, command.vivify, mapping, key, now)
    return _shown(session, command, found, now, created=created)


def _shown(session: Session, command: c.MetaGet, found: Found | None, now: int, *, created: bool) -> r.Meta:
    """Return the reply to an mg of an item that no command by a decider shows, and count it."""
    counters, marks = session.shared.counters, session.shared.marks
    if found is None or command.exptime is None:
        session.defer_count(counters.got, command.word, hits=found is not None, misses=found is None)
        if found is None:
            return r.Meta(MetaCode.MISSED)
        return items.answer(session, marks, command, found, found, now, created=created)
    session.defer_count(counters.touched, command.word, hit=True)
    touched = _touch(session, found, command.exptime, now)
    reply = items.answer(session, marks, command, found, touched, now, created=created)
    marks.changed(found.mapping, found.at[1], now, Change.MARKED)  # the reply shows accesses to the item before
    return reply


def _vivified(
    session: Session, command: c.MetaGet, exptime: int, mapping: Mapping, key: bytes, now: int
) -> Generator[Operation, Any, tuple[bool, Found | None]]:
    """Store an empty item in the memory cache; return whether it was stored, and the item."""
    items.check_times(session, mapping, command, now)
    reply = yield from _verb(session, c.Store("add", command.word, 0, exptime, b""), now, store.store)
    if reply not in (Status.STORED, Status.NOT_STORED):
        raise RefusedError(reply)
    created = reply is Status.STORED
    found = yield from _find(session, mapping, key, now, Policy.CACHE)
    if found is None and created and times.expires_at_once(session, exptime):
        entry = Entry(0, b"", session.written_cas, times.EXPIRED_SECOND, now)
        found = Found((mapping.identity, key), entry, mapping)
    return created, found


def set_(session: Session, command: c.MetaSet, now: int) -> OperationGen:
    """Store an item; where I and an older number come along, as a stale one."""
    inner = c.Store(command.verb, command.word, command.flags, command.exptime, command.data, command.cas)
    policy = session.shared.directory.policies.set
    if policy in _OF_TABLE:
        target = yield from session.resolve(command.word, switches=True)
        if isinstance(target, Status) or not target[1]:
            reply: r.Reply = target if isinstance(target, Status) else Status.NOT_STORED
            _count(session, inner, reply)
            return _coded(reply)
        return (yield from _run_on_row(session, *target, command, now, MetaWrites.set))
    reply = yield from _verb(session, inner, now, store.store)
    if command.stale and reply is Status.EXISTS and command.verb == "cas":
        reply = yield from _store_stale(session, command, now)
    if reply is not Status.STORED or not command.has(b"c"):
        return _coded(reply)
    return r.Meta(MetaCode.DONE, r.MetaItem(cas=session.written_cas))


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
    policies = session.shared.directory.policies
    if policies.set in _OF_TABLE if command.stale else policies.delete is Policy.TABLE:
        target = yield from session.resolve(command.word, switches=True)
        if isinstance(target, Status):
            if not command.stale:
                _count(session, c.Delete(command.word), target)
            return _coded(target)
        if command.stale or command.cas == 0:
            _refuse_range(session, target[1])
        return (yield from _run_on_row(session, *target, command, now, MetaWrites.delete))
    if command.stale:
        return (yield from _make_stale(session, command, now))
    if command.cas == 0:  # unlike elsewhere a number like any other
        found = yield from _named(session, command, now)
        if found is not None and found.entry.cas:
            return r.Meta(MetaCode.EXISTS)
    reply = yield from _verb(session, c.Delete(command.word, cas=command.cas or 0), now, delete_item)
    return _coded(reply)


def _make_stale(session: Session, command: c.MetaDelete, now: int) -> OperationGen:
    """Mark an item of the memory cache as stale."""
    if session.shared.directory.policies.set is Policy.OFF:
        return r.Meta(MetaCode.DONE)
    found = yield from _named(session, command, now)
    if found is None:
        return r.Meta(MetaCode.NOT_FOUND)
    if command.cas is not None and command.cas != found.entry.cas:
        return r.Meta(MetaCode.EXISTS)
    session.shared.marks.changed(found.mapping, found.at[1], now, Change.MARKED)
    if command.exptime is not None:
        found = _touch(session, found, command.exptime, now)
        if times.expires_at_once(session, command.exptime):
            return r.Meta(MetaCode.DONE)  # no client reads it any more, so that no mark is needed
    session.shared.marks.mark(found.mapping, found.at[1], renumbered(session, found), Mark(stale=True))
    return r.Meta(MetaCode.DONE)


def renumbered(session: Session, found: Found) -> Entry:
    """Give an item of the memory cache another cas number, so that writes with the earlier one fail; return it."""
    cache = session.shared.cache
    entry = replace(found.entry, cas=next(cache.numbers))
    cache.put(found.at, entry)
    return entry


def arithmetic(session: Session, command: c.MetaArithmetic, now: int) -> OperationGen:
    """Add to or subtract from a number, or store the first one (N); then its item may get another time (T)."""
    inner = c.Arithmetic(
        command.increment, command.word, command.delta,
        initial=command.initial, exptime=command.vivify, cas=command.cas,
    )  # fmt: skip
    if session.shared.directory.policies.set in _OF_TABLE:
        target = yield from session.resolve(command.word, switches=session.rules.all_verbs_switch)
        if isinstance(target, Status):
            _count(session, inner, target)
            return _coded(target)
        if command.shows_item:
            _refuse_range(session, target[1])
        return (yield from _run_on_row(session, *target, command, now, MetaWrites.add))
    if command.exptime is not None:
        target = yield from session.resolve(command.word, switches=True)
        if not isinstance(target, Status):
            items.check_times(session, target[0], command, now)
    reply = yield from _verb(session, inner, now, count)
    if not isinstance(reply, r.Number):
        return _coded(reply)
    item = r.MetaItem(ttl=0, earlier=0, cas=session.written_cas)  # of a number that is over at once
    found = (yield from _named(session, command, now)) if command.shows_item else None
    if found is not None:
        touched = found
        if command.exptime is not None:
            session.shared.marks.changed(found.mapping, found.at[1], now, Change.MARKED)
            touched = _touch(session, found, command.exptime, now)
        item = r.MetaItem(cas=found.entry.cas, ttl=touched.left(now), earlier=found.left(now))
    return r.Meta(MetaCode.DONE, item, b"%d" % reply.value if command.has(b"v") else None)


def debug(session: Session, command: c.MetaDebug, now: int) -> OperationGen:
    """Return the metadata of an item; a table has no slabs, so the class is 0."""
    target = yield from session.resolve(command.word, switches=True)
    if isinstance(target, Status) or not target[1]:
        return r.MetaDebug(None)
    _refuse_range(session, target[1])
    found = yield from _find(session, *target, now, session.shared.directory.policies.get)
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


def _named(session: Session, command: c.MetaRequest, now: int) -> Generator[Operation, Any, Found | None]:
    """Find the item that a write is about."""
    target = yield from session.resolve(command.word, switches=True)
    if isinstance(target, Status) or not target[1]:
        return None
    _refuse_range(session, target[1])
    policy = session.shared.directory.policies.set
    return (yield from _find(session, *target, now, Policy.TABLE if policy is Policy.BOTH else policy))


def _refuse_range(session: Session, key: bytes) -> None:
    if session.rules.ranges and parse(key) is not None:
        raise RefusedError(r.ClientError("meta commands do not support ranges; use get"))


def _find(
    session: Session, mapping: Mapping, key: bytes, now: int, policy: Policy
) -> Generator[Operation, Any, Found | None]:
    """Find an item where the policy says; `key`: not empty."""
    at = (mapping.identity, key)
    if policy is Policy.CACHE or (policy is Policy.BOTH and not session.pending.holds(at)):
        entry = session.shared.cache.find(at, now)
        if entry is not None:
            return Found(at, entry, mapping)
    if policy in (Policy.CACHE, Policy.OFF):
        return None
    yield from session.check(mapping)
    cell = session.key_to_find(mapping, key)
    row: Row | None = None if cell is None else (yield Lookup(mapping, cell))
    if not session.batch.reads_unbatched:
        yield from count_read(session)
    if row is None or session.count_expired(row.expiry, now):
        return None
    return Found((mapping.identity, to_bytes(row.key)), entry_of(session, row, now), mapping)


def _run_on_row(
    session: Session,
    mapping: Mapping,
    key: bytes,
    command: T,
    now: int,
    chosen: Callable[[MetaWrites[r.Meta], CachedRow, bytes, T], StepDecision],
) -> OperationGen:
    """Carry out a command on an item of a table, whatever the memory cache has; `key`: empty for no item."""

    def decide(bound: StepBound, row: CachedRow, word: bytes) -> StepDecision:
        return chosen(MetaWrites(bound, session, Deciders(bound), _unencoded), row, word, command)

    return (yield from run_on_row(session, mapping, key, command, now, decide))


def _unencoded(_command: c.Command, reply: r.Meta) -> r.Meta:
    return reply


def _touch(session: Session, found: Found, exptime: int, now: int) -> Found:
    """Give an item of the memory cache another time."""
    return replace(found, entry=dispatch.touch(session, found.at, exptime, now) or found.entry)


def _verb(session: Session, command: c.Command, now: int, verb: Verb) -> OperationGen:
    """Run a verb by its policy as a part of another command; `stats` counts it like a separate command."""
    policy = session.shared.directory.policies.of(command)
    if policy is Policy.TABLE:
        reply = yield from verb(session, command, now)
    else:
        reply = yield from run_by_policy(session, command, now, verb, lambda verb, *arguments: verb(*arguments), policy)
    _count(session, command, reply)
    return reply


def _count(session: Session, command: c.Command, reply: r.Reply) -> None:
    count = session.shared.counters.count
    session.defer_count(count, command, reply, missing_counted=session.rules.answers_missing_key)


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
