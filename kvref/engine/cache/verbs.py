"""memcached's verbs on the memory cache alone; the plugin's default engine implements them in items.c."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from kvref.engine.cache.memory import Cache, Entry, Key
from kvref.engine.rules import Rules
from kvref.engine.verbs.arithmetic import MAX_NUMBER_LENGTH, NON_NUMERIC
from kvref.engine.verbs.store import APPENDING, OVER
from kvref.protocol import commands as c
from kvref.protocol.replies import Fault, Number, Reply, ServerError, Status

NO_ROOM: Final = ServerError("out of memory storing object", Fault.OUT_OF_MEMORY)
_TOP: Final = 1 << 64
_NUMBER: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)([0-9]+)")


def store(cache: Cache, rules: Rules, key: Key, command: c.Store, now: int) -> Reply:
    """Run a storage command on the cache.

    Args:
        cache: the server's memory cache.
        rules: facts of the profile.
        key: key of the item.
        command: the client's command.
        now: UNIX time in whole seconds.
    """
    found = cache.find(key, now)
    refusal = _refusal(command, found)
    if refusal is not None:
        return refusal
    if found is None or command.verb not in APPENDING:
        flags, data = command.flags % (1 << 32), command.data
        expiry = _expiry(cache, rules, command.exptime, now)
    else:
        flags, data, expiry = found.flags, _joined(rules, command, found.data), found.expiry
    entry = Entry(flags, data, next(cache.numbers), expiry, now)
    return Status.STORED if cache.put(key, entry) else NO_ROOM


def arithmetic(cache: Cache, rules: Rules, key: Key, command: c.Arithmetic, now: int) -> Reply:
    """Add to or subtract from a number in the cache; flags and expiry stay (more:policy-118)."""
    found = cache.find(key, now)
    if found is None:
        if command.initial is None:
            return Status.NOT_FOUND
        expiry = _expiry(cache, rules, command.exptime, now)
        cache.put(key, Entry(0, b"%d" % command.initial, next(cache.numbers), expiry, now))
        return Number(command.initial)
    number = _number(rules, found.data)
    if number is None:
        return NON_NUMERIC
    result = (number + command.delta) % _TOP if command.increment else max(0, number - command.delta)
    data = b"%d" % result
    if rules.cache_ends_sums:
        data += b"\r\n"  # the daemon's items ended so once (more:policy-116)
    cache.put(key, Entry(found.flags, data, next(cache.numbers), found.expiry, now))
    return Number(result)


def touch(cache: Cache, rules: Rules, key: Key, exptime: int, now: int) -> Entry | None:
    """Change the expiry time of an item and return it; the cas number stays. None if there is no item.

    Args:
        cache: the server's memory cache.
        rules: facts of the profile.
        key: key of the item.
        exptime: as the client wrote it.
        now: UNIX time in whole seconds.
    """
    found = cache.find(key, now)
    if found is not None:
        found = replace(found, expiry=_expiry(cache, rules, exptime, now))
        cache.put(key, found)
    return found


def sent_to_table(cache: Cache, rules: Rules, command: c.Store, now: int) -> c.Store:
    """Return a storage command as the table gets it, when the cache has had it first.

    8.0 hands on the time as its cache keeps it, in seconds of its own clock, and the table counts that from now
    (more:policy-160).
    """
    if not rules.cache_shifts_time or command.exptime <= 0:
        return command
    own = max(1, cache.over(command.exptime, now) - cache.began)
    return c.Store(command.verb, command.word, command.flags, own, command.data, command.cas, command.noreply)


def _refusal(command: c.Store, found: Entry | None) -> Status | None:
    match command.verb:
        case "add":
            return None if found is None else Status.NOT_STORED
        case "cas":
            if found is None:
                return Status.NOT_FOUND
            return None if found.cas == command.cas else Status.EXISTS
        case "set":
            return None
        case _:
            return Status.NOT_STORED if found is None else None


def _joined(rules: Rules, command: c.Store, old: bytes) -> bytes:
    first, second = (old, command.data) if command.verb == "append" else (command.data, old)
    # The line end that items had once is cut off still; where the first part has no two bytes that writes over its
    # key in memory, which is not imitated (more:policy-101, more:policy-103).
    return first[: -2 if rules.cache_cuts_append and len(first) >= 2 else None] + second


def _expiry(cache: Cache, rules: Rules, exptime: int, now: int) -> int:
    if exptime == 0:
        return 0
    if exptime < 0 and rules.negative_is_over:
        return OVER
    if rules.cache_expires_from_start:
        return cache.began + exptime % (
            1 << 32
        )  # compared with the daemon's own clock as it was sent (more:policy-117)
    return cache.over(exptime, now)


def _number(rules: Rules, text: bytes) -> int | None:
    """Return the number that a text is, None where it is none.

    The plugin's profiles read as safe_strtoull of util.c does, up to a blank or NUL (more:policy-163), but not behind
    the end of the value as the daemon did.
    """
    if not rules.counts_leading_number:
        digits = text.strip()
        return int(digits) if digits.isdigit() and len(digits) <= MAX_NUMBER_LENGTH and int(digits) < _TOP else None
    match = _NUMBER.match(text)
    if match is None:
        return 0 if text[:1].isspace() else None
    behind = text[match.end() : match.end() + 1]
    if behind.strip() not in (b"", b"\0") or int(match[2]) >= _TOP:
        return None
    number = -int(match[2]) % _TOP if match[1] == b"-" else int(match[2])
    return None if number >= 1 << 63 and b"-" in text else number
