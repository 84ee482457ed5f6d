"""The verb `stats` and its sub-commands; what they count and which rows they have is in `stats.py`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from kvref.engine import stats as rows
from kvref.engine.cache.memory import Policy
from kvref.engine.operations import CountRows, Operation, OperationGen
from kvref.engine.session import Session
from kvref.errors import StoreError
from kvref.protocol import commands as c
from kvref.protocol.replies import ClientError, Line, Reply, StatRows, Status

# Sub-commands whose answer never changes over a table (verb-058, count-004, count-005): a word's beginning decides.
FIXED: Final[dict[bytes, list[tuple[str, str]]]] = {
    b"items": [],
    b"sizes": [],
    b"slabs": [("active_slabs", "0"), ("total_malloced", "0")],
    b"scrub": [("scrubber:status", "stopped")],
}

MAX_VERBOSITY: Final = 2  # MAX_VERBOSITY_LEVEL of memcached


def stats(session: Session, command: c.Stats, _now: int) -> OperationGen:
    """Answer `stats` or one of its sub-commands."""
    shared, newer = session.shared, session.rules.beyond_plugin
    match command.words:
        case []:
            items = (yield from _items(session)) if newer else None
            own = shared.process()
            if items is not None:
                own["curr_items"] = str(items)
            engine_first = command.frame is not None
            return rows.general_and_engine(own, shared.counters, newer=newer, engine_first=engine_first)
        case [b"aggregate", *_]:
            return rows.general(shared.process(), shared.counters, newer=newer)
        case [b"settings", *_]:
            return rows.settings(shared.process() | (_switches(session) if newer else {}), shared.counters)
        case [b"reset", *_]:
            shared.counters.reset()
            return Status.RESET
        case [b"detail", *what]:
            return _detail(session, what)
        case [b"conns", *_] if newer and command.frame is None:
            return StatRows(shared.clients(session))
        case [b"cachedump", *limits]:
            return rows.cachedump(limits, empty=session.rules.dumps_empty_classes)
        case [word, *_] if word.startswith(b"vbucket"):
            return StatRows(shared.vbuckets.rows())
        case [word, *_]:
            return next((StatRows(fixed) for name, fixed in FIXED.items() if word.startswith(name)), Status.ERROR)


def verbosity(session: Session, command: c.Verbosity) -> Reply:
    """Set the level that `stats settings` shows; a higher one than the maximum counts as the maximum."""
    session.shared.verbosity.level = min(command.level, MAX_VERBOSITY)
    return Status.OK


def _switches(session: Session) -> dict[str, str]:
    """Return the rows of `stats settings` about what this connection may do, and what commands switch."""
    shared, access = session.shared, session.access
    switches = {
        "detail_enabled": shared.counters.prefixes.counting,
        "lru_crawler": shared.crawler.enabled,
        "flush_enabled": access.refusal(c.FlushAll(0)) is None,
        "dump_enabled": access.refusal(c.KeyDump(c.Crawled.ALL)) is None,
    }
    return {name: "yes" if on else "no" for name, on in switches.items()} | {"stat_key_prefix": ":"}


def _detail(session: Session, what: list[bytes]) -> Reply:
    prefixes = session.shared.counters.prefixes
    match what:
        case [(b"on" | b"off") as word, *_]:
            prefixes.counting = word == b"on"
            return Status.OK
        case [b"dump", *_]:
            return Line(b"\r\n".join([*prefixes.lines(), b"END"]))
        case _:
            return ClientError("usage: stats detail on|off|dump")


def _items(session: Session) -> Generator[Operation, Any, int | None]:
    """Return about how many rows the mapping in force has, None if that is not known, or the memory cache has them.

    An error of the store does not fail `stats`, which monitoring reads while the store is down.
    """
    mapping = session.in_force
    if mapping is None or mapping.fault or session.shared.directory.policies.set is Policy.CACHE:
        return None
    try:
        items: int | None = yield CountRows(mapping)
    except StoreError:
        return None
    return items
