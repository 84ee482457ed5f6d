"""get, gets, bget, touch and get-and-touch; which `@@` words of a line switch the mapping.

touch and gat follow memcached 1.6 (proto_text.c, process_touch_command and process_get_command); the plugin never had
them. Each key of a gat is a write of the batch.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from kvref.engine.cache.dispatch import cached
from kvref.engine.cache.memory import Policy
from kvref.engine.mapping import Mapping
from kvref.engine.operations import LockWaitError, Lookup, Operation, OperationGen, RollBack, Row
from kvref.engine.plans.plan import CAS, FLAGS, CachedRow
from kvref.engine.plans.retrieve import Touching
from kvref.engine.session import Session, UnfitError
from kvref.engine.steps.on_row import StepBound, StepDecision, run_on_row
from kvref.engine.steps.ranges import Range, parse, scan
from kvref.engine.values import RefusedError, shown_flags, to_bytes
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.grammar import BAD_FORMAT


def get(session: Session, command: c.Get, now: int) -> OperationGen:
    """Answer the words of one get in their order; misses and unknown mappings are left out (mget-005, mget-010)."""
    items: list[r.Item] = []
    size = 0
    read, reads = False, 0  # a row was looked up; reads that the plugin counts: a last key, and each end of a range
    passed = 0  # words that are answered or lost
    queries_cache = session.shared.directory.policies.get is Policy.BOTH
    for position, word in enumerate(command.words, 1):
        if position <= passed:
            continue
        if queries_cache and (hit := (yield from cached(session, word, now))) is not None:
            session.defer_count(session.shared.counters.got, word, hits=1, misses=False)
            items.append(hit)
            size += hit.size
            continue
        last = position == len(command.words) and not (command.refused or command.more)
        key = yield from _key(session, word)
        found: list[r.Item] = []
        wanted = parse(key) if key and session.rules.ranges else None
        if key == b"":
            found = [switch_item(session, word, (yield from session.mapping()))]
        elif key is not None and (mapping := (yield from _usable(session))) is not None:
            session.switch_disabled = not (last or session.rules.each_word_switches)
            if wanted is None:
                found = yield from _row(session, mapping, word, key, now, from_replica=not command.with_cas)
                reads += last
            else:
                remaining = command.words[position:]
                found, ended, used = yield from _rows(
                    session, mapping, wanted, now, command, remaining, named=key is not word
                )
                reads += ended
                passed = position + used
            read = True
            if session.rules.counts_each_key and not session.batch.reads_unbatched:
                yield from count_read(session)
        # The end of a range is found by a miss, for which a binary get does not look (more:bin-214).
        ends = wanted is not None and command.frame is None
        session.defer_count(session.shared.counters.got, word, hits=len(found), misses=ends or not found)
        items += found
        size += sum(item.size for item in found)
        session.check_reply(size)
    if read and not session.rules.counts_each_key:
        yield from _end_reads(session, reads if session.rules.counts_ended_gets else int(not command.refused))
    session.switch_disabled = session.switch_disabled and not items
    if command.refused:
        return r.Line(BAD_FORMAT)
    return r.Items(items, command.with_cas)


def _rows(
    session: Session, mapping: Mapping, wanted: Range, now: int, command: c.Get, remaining: list[bytes], *, named: bool
) -> Generator[Operation, Any, tuple[list[r.Item], bool, int]]:
    """Return the items of a range, whether the plugin comes to its end, and how many of the next words are answered."""
    frame = command.frame
    first_only = frame is not None or (named and not remaining)  # the binary protocol has one item in its reply
    with_keys = frame is None or frame.with_key
    found, ended = yield from scan(session, mapping, wanted, now, first_only=first_only, with_keys=with_keys)
    log = session.shared.marks.log(mapping)
    log.at(now)
    log.fetched_all([item.word for item in found])
    if not session.rules.lossy_ranges:
        return found, not (first_only and found), 0
    if frame is not None:
        for item in found:
            # process_bin_get takes the length of the request's key for that of the row's (range-002, range-003).
            item.word = item.word[: len(command.words[0])].ljust(len(command.words[0]), b"\0")
    elif named and found:
        found, over, used = _one_for_each_word(session, mapping, found, remaining)
        return found, over and ended, used
    # Words behind a range are lost (core:range-035); an empty one would end 8.0 (core:range-077).
    return found, ended and not (first_only and found), len(remaining)


def _one_for_each_word(
    session: Session, mapping: Mapping, found: list[r.Item], remaining: list[bytes]
) -> tuple[list[r.Item], bool, int]:
    """Return what 8.0 shows of a range that names its mapping (more:behind-001 to -004); the rest is as of `_rows`.

    Args:
        found: the items of the range, at least one.
        remaining: the words behind it. Each shows the next row, whatever it is; but a mapping without a key shows the
            table, and a range all rows that are left. Words behind the end of the range are keys again.
    """
    shown, left = found[:1], iter(found[1:])
    for used, word in enumerate(remaining, 1):
        target = session.split(word)
        if target is not None and not target.key:
            shown.append(switch_item(session, b"", mapping))
        elif target is None and parse(word) is not None:
            return [*shown, *left], True, len(remaining)
        elif (item := next(left, None)) is not None:
            shown.append(item)
        else:
            return shown, True, used
    return shown, False, len(remaining)


def _end_reads(session: Session, reads: int) -> Generator[Operation, Any, None]:
    """Count a get as reads of the batch, or decide how long the transaction of one that does not count is open."""
    batch = session.batch
    if reads:
        for _ in range(reads):
            if not batch.reads_unbatched:
                yield from count_read(session)
    elif session.rules.counts_ended_gets and not batch.reads_unbatched:
        batch.begun = True
    elif not batch.open:
        yield RollBack()  # in no batch: nothing else would end that transaction


def count_read(session: Session) -> Generator[Operation, Any, None]:
    """Count a read of the batch; raises RefusedError if that made the batch full, and it is lost."""
    reason = yield from session.batch.read()
    if reason is not None:
        raise RefusedError(r.ServerError(reason))


def _key(session: Session, word: bytes) -> OperationGen:
    """Return the key in a word, empty for a switch word, None where the word names an unknown mapping."""
    target = session.split(word)
    if target is None:
        return word
    if (yield from session.switch(target.name, target.key)) is None:
        return None
    return target.key


def switch_item(session: Session, word: bytes, mapping: Mapping) -> r.Item:
    """Return what a word that only switches to a mapping is answered."""
    named = mapping if session.rules.names_bound_table else session.default
    return r.Item(word, 0, (named or mapping).label, 0)


def _usable(session: Session) -> OperationGen:
    """Return the mapping in force, None where its table does not fit it any more and no error says so."""
    mapping = yield from session.mapping()
    try:
        yield from session.check(mapping)
    except UnfitError:
        if session.rules.unfit_table_is_error:
            raise
        return None
    return mapping


def _row(session: Session, mapping: Mapping, word: bytes, key: bytes, now: int, *, from_replica: bool) -> OperationGen:
    """Return the row of a word of a get as a list of its item, empty where it is missing."""
    cell = session.key_to_find(mapping, key)
    row: Row | None = None
    try:
        row = None if cell is None else (yield Lookup(mapping, cell, from_replica=from_replica))
    except LockWaitError:
        if session.rules.lock_wait_is_error:
            raise  # the plugin misses the row (innodb_get), and looks up the words behind it
    if row is None or session.count_expired(row.expiry, now):
        return []
    session.shared.marks.fetched(mapping, to_bytes(row.key), now)
    return [session.item(word, row)]


def touch(session: Session, command: c.Touch, now: int) -> OperationGen:
    """Give one row another time."""
    target = yield from session.resolve(command.word, switches=True)
    if isinstance(target, r.Status):
        return target
    return (yield from _touched(session, *target, command, now, []))


def get_and_touch(session: Session, command: c.GetAndTouch, now: int) -> OperationGen:
    """Answer the words in order; each row has its other time before the next is read, also if that fails."""
    items: list[r.Item] = []
    size = 0
    for word in command.words:
        item = yield from _got(session, word, command, now)
        if item is not None:
            items.append(item)
            size += item.size
            session.check_reply(size)
    return r.Items(items, command.with_cas)


def _got(session: Session, word: bytes, command: c.GetAndTouch, now: int) -> Generator[Operation, Any, r.Item | None]:
    target = yield from session.resolve(word, switches=True)
    found: list[r.Item] = []
    if not isinstance(target, r.Status):
        mapping, key = target
        if not key:
            return switch_item(session, word, mapping)
        if session.rules.ranges and parse(key) is not None:
            raise RefusedError(r.ClientError("gat does not support ranges; use get, then touch each key"))
        reply = yield from _touched(session, mapping, key, command, now, found)
        if not isinstance(reply, r.Status):
            raise RefusedError(reply)
        reason = yield from session.batch.wrote(failed=not found)
        if reason is not None:
            raise RefusedError(r.ServerError(reason))
    session.defer_count(session.shared.counters.touched, word, hit=bool(found))
    return replace(found[0], word=word) if found else None


def _touched(
    session: Session, mapping: Mapping, key: bytes, command: c.Touch | c.GetAndTouch, now: int, found: list[r.Item]
) -> OperationGen:
    """Give a row another time; `key`: empty for no row. `found` gets the item as it is before."""

    def decide(bound: StepBound, row: CachedRow, word: bytes) -> StepDecision:
        there, new, parameters = Touching(bound).retimed(row, word, command.exptime)
        if there:
            found.append(r.Item(word, shown_flags(row[FLAGS]), bound.data(row), (row[CAS] or 0) % (1 << 64)))
        return r.Status.TOUCHED if there else r.Status.NOT_FOUND, new, parameters

    return (yield from run_on_row(session, mapping, key, command, now, decide))
