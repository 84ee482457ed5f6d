"""The command `lru_crawler`: a listing of all keys by `metadump`, and a switch that allows it.

A table has no slab classes and evicts nothing: there is nothing to crawl, and nothing to tune.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from kvref.engine.cache.memory import Policy
from kvref.engine.mapping import is_sendable
from kvref.engine.operations import ListedRow, ListRows, OperationGen
from kvref.engine.session import Session
from kvref.engine.values import to_bytes
from kvref.protocol import commands as c
from kvref.protocol.replies import Keys, Line, ListedKey, Reply, Status

PAGE: Final = 200  # keys that are read at once, about 2 ms: other connections have their turn between two pages
DISABLED: Final = Line(b"CLIENT_ERROR lru crawler disabled")
RUNS: Final = Line(b"ERROR failed to start lru crawler thread")
UNKNOWN: Final = Line(b"BADCLASS invalid class id")
NOTHING: Final = Line(b"NOTSTARTED no items to crawl")


def switch(session: Session, command: c.SwitchCrawler) -> Reply:
    """Enable or disable `lru_crawler metadump` and `lru_crawler crawl` for all connections."""
    crawler = session.shared.crawler
    if command.enabled and crawler.enabled:
        return RUNS
    crawler.enabled = command.enabled
    return Status.OK


def crawl(session: Session, command: c.Crawl) -> Reply:
    """Answer a request to look for expired items, of which none takes memory here."""
    return _refusal(session, command.items) or Status.OK


def dump(session: Session, command: c.KeyDump, now: int) -> OperationGen:
    """List a page of the keys of the mapping in force; the reply has the command that lists the others."""
    if command.cursor is None:
        refusal = _refusal(session, command.items)
        if refusal is not None:
            return refusal
        if command.items is c.Crawled.CLASSES:
            return Keys([])
    policy = session.shared.directory.policies.get
    if policy is Policy.OFF:
        return Keys([])
    if policy is Policy.CACHE:
        return (yield from _cached(session, command, now))
    return (yield from _in_table(session, command, now))


def _refusal(session: Session, items: c.Crawled) -> Reply | None:
    if not session.shared.crawler.enabled:
        return DISABLED
    return {c.Crawled.UNKNOWN: UNKNOWN, c.Crawled.NOTHING: NOTHING}.get(items)


def _in_table(session: Session, command: c.KeyDump, now: int) -> OperationGen:
    page = command.cursor
    if not isinstance(page, ListRows):
        page = ListRows((yield from session.mapping()), None, PAGE)
    yield from session.check(page.mapping)
    if page.mapping.unsearchable:
        return Keys([])
    rows: list[ListedRow] = yield page
    if not rows:
        return Keys([])
    shown = [_shown(row, now) for row in rows if is_listed(session, row, now)]
    return Keys(shown, c.KeyDump(command.items, replace(page, after=rows[-1].key)))


def is_listed(session: Session, row: ListedRow, now: int) -> bool:
    """Return whether a listing has a row: it is not expired, and a client can send its key."""
    return not session.rules.is_expired(row.expiry, now) and is_sendable(to_bytes(row.key))


def _shown(row: ListedRow, now: int) -> ListedKey:
    key = to_bytes(row.key)
    return ListedKey(key, max(row.expiry or 0, 0), (row.cas or 0) % (1 << 64), len(key) + row.size, now)


def _cached(session: Session, command: c.KeyDump, now: int) -> OperationGen:
    """List keys of the memory cache, those of the mapping in force where it has the rows of tables."""
    cache = session.shared.cache
    keys = command.cursor
    if not isinstance(keys, Iterator):
        source = (yield from session.mapping()).identity if session.rules.cache_holds_rows else ""
        keys = iter([key for key in cache.all_keys() if key[0] == source])
    page = list(islice(keys, PAGE))
    if not page:
        return Keys([])
    shown = []
    for at in page:
        entry = cache.peek(at, now)
        if entry is not None:
            shown.append(ListedKey(at[1], max(entry.expiry, 0), entry.cas, len(at[1]) + len(entry.data), now))
    return Keys(shown, c.KeyDump(command.items, keys))
