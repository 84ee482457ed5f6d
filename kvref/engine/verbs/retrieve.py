"""get, gets and bget: switch words, keys, and which `@@` words of one line switch."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from kvref.engine.cache.dispatch import cached
from kvref.engine.cache.policies import Policy
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Lookup, Operation, OperationGen, RollBack, Row
from kvref.engine.session import Session, UnfitError
from kvref.engine.values import RefusedError
from kvref.engine.verbs.ranges import parse, scan
from kvref.protocol import commands as c
from kvref.protocol import replies as r
from kvref.protocol.lines import BAD_FORMAT


def get(session: Session, command: c.Get, now: int) -> OperationGen:
    """Answer the words of one get in their order; misses and unknown mappings are left out (mget-005, mget-010)."""
    items: list[r.Item] = []
    size = 0
    read = False
    asks_cache = session.shared.directory.policies.get is Policy.BOTH
    for position, word in enumerate(command.words, 1):
        if asks_cache and (hit := (yield from cached(session, word, now))) is not None:
            session.shared.counters.got(word, hits=1, misses=False)
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
            session.stuck = not (last or session.rules.each_word_switches)
            # The binary protocol has one item in its reply.
            first_only = command.frame is not None or (last and key is not word)
            if wanted is None:
                found = yield from _row(session, mapping, word, key, now)
            else:
                with_keys = command.frame is None or command.frame.with_key
                found = yield from scan(session, mapping, wanted, now, first_only=first_only, with_keys=with_keys)
            if wanted is not None and command.frame is not None and session.rules.lossy_ranges:
                _cut_keys(found, len(word))
            if session.rules.counts_each_key and not session.batch.reads_alone:
                yield from count_read(session)
            read = not session.rules.counts_each_key
        # The end of a range is found by a miss, for which a binary get does not look (more:bin-214).
        ends = wanted is not None and command.frame is None
        session.shared.counters.got(word, hits=len(found), misses=ends or not found)
        items += found
        size += sum(item.size for item in found)
        session.check_reply(size)
        if wanted is not None and session.rules.lossy_ranges:
            break  # words behind a range are lost (range-035); an empty one would end 8.0 (range-077)
    if read and not command.refused and not session.batch.reads_alone:
        yield from count_read(session)
    session.stuck = session.stuck and not items
    if command.refused:
        if read and not session.batch.open:
            yield RollBack()  # in no batch: nothing else would end that transaction
        return r.Line(BAD_FORMAT)
    return r.Items(items, command.with_cas)


def _cut_keys(items: list[r.Item], length: int) -> None:
    """Give keys the length of the request's key: process_bin_get takes that for the row's (range-002, range-003)."""
    for item in items:
        item.word = item.word[:length].ljust(length, b"\0")


def count_read(session: Session) -> Generator[Operation, Any, None]:
    """Count a read of the batch.

    Raises:
        RefusedError: that made the batch full, and it is lost.
    """
    reason = yield from session.batch.read()
    if reason is not None:
        raise RefusedError(r.ServerError(reason))


def _key(session: Session, word: bytes) -> OperationGen:
    """Return the key in a word, empty for a switch word, None where the word names an unknown mapping."""
    target = session.split(word)
    if target is None:
        return word
    if (yield from session.switch(target.name)) is None:
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


def _row(session: Session, mapping: Mapping, word: bytes, key: bytes, now: int) -> OperationGen:
    cell = session.looked_up(mapping, key)
    row: Row | None = None if cell is None else (yield Lookup(mapping, cell))
    return [] if row is None or session.finds_expired(row.expiry, now) else [session.item(word, row)]
