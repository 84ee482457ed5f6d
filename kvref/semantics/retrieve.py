"""get, gets and bget: switch words, keys, and which `@@` words of one line switch."""

from __future__ import annotations

from kvref.semantics.mapping import Mapping
from kvref.semantics.ports import Lookup, Row, Steps
from kvref.semantics.ranges import parse, scan
from kvref.semantics.session import Session
from kvref.wire import commands as c
from kvref.wire import replies as r
from kvref.wire.grammar import BAD_FORMAT


def get(session: Session, command: c.Get, now: int) -> Steps:
    """Answer the words of one get in their order; misses and unknown mappings are left out (mget-005, mget-010)."""
    items: list[r.Item] = []
    looked_up = False
    size = 0
    for position, word in enumerate(command.words, 1):
        key = word
        target = session.split(word)
        if target is not None:
            # Once a key was looked up, 8.0 only cuts further prefixes off, known mapping or not (mget-002..004).
            if session.rules.each_word_switches or not looked_up:
                mapping = yield from session.switch(target.name)
                if mapping is None:
                    continue
            key = target.key
            if not key:
                items.append((yield from _switch_word(session, word)))
                continue
        mapping = yield from session.mapping()
        looked_up = True
        wanted = parse(key) if session.rules.ranges else None
        if wanted is not None:
            last = position == len(command.words)
            items += yield from scan(session, mapping, wanted, now, first_only=target is not None and last)
            if session.rules.lossy_ranges:
                break  # words behind a range are lost (range-035); an empty one would end 8.0 (range-077)
            continue
        row = yield from _visible_row(session, mapping, key, now)
        if row is not None:
            items.append(session.item(word, row))
            size += items[-1].size
            session.check_reply(size)
    if command.refused:
        return r.Line(BAD_FORMAT)
    return r.Items(items, command.with_cas)


def _switch_word(session: Session, word: bytes) -> Steps:
    mapping = yield from session.mapping()
    named = mapping if session.rules.names_bound_table else session.shared.directory.default
    return r.Item(word, 0, named.label, 0)


def _visible_row(session: Session, mapping: Mapping, key: bytes, now: int) -> Steps:
    counters = session.shared.counters
    counters.cmd_get += 1
    cell = session.looked_up(mapping, key)
    row: Row | None = None if cell is None else (yield Lookup(mapping, cell))
    if row is None or session.expired(row, now):
        counters.get_misses += 1
        return None
    counters.get_hits += 1
    return row
