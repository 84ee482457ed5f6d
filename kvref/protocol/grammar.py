"""Parse one line of the text protocol to one command: number of words, limits, numbers and what is refused.

Word counts and the order of checks follow the daemon's process_command and its callees (memcached.c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref.protocol import commands as c
from kvref.protocol import numbers
from kvref.protocol.rules import WireRules

ERROR: Final = b"ERROR"
BAD_FORMAT: Final = b"CLIENT_ERROR bad command line format"
BAD_EXPTIME: Final = b"CLIENT_ERROR Invalid expire time"
TOO_LARGE: Final = b"SERVER_ERROR object too large for cache"


@dataclass(slots=True)
class Block:
    """A storage line that waits for `length` bytes of data."""

    store: c.Store | c.MetaSet
    length: int


@dataclass(slots=True)
class Discard:
    """A refused storage line whose data, `length` bytes with its end, is thrown away."""

    command: c.Refused
    length: int


Parsed = c.Command | Block | Discard


def refused(command: c.Refused, length: int | None, rules: WireRules) -> Parsed:
    """Return a refused storage line, with its data where the profile throws that away and the length could be read."""
    return Discard(command, length + 2) if rules.swallows_refused and length is not None and length >= 0 else command


def sized(store: c.Store | c.MetaSet, length: int, rules: WireRules) -> Parsed:
    """Return a storage line that waits for its data, or a rejected one if the data is too large."""
    if fits(length, store.word, rules):
        return Block(store, length)
    removes = store.word if store.verb == "set" and rules.too_large_set_removes else b""
    command = c.Refused(TOO_LARGE, store.noreply, removes, too_large=True)
    # more:tail-006, out_string of memcached.c: with noreply the plugin goes to the next command at once.
    return command if store.noreply and not rules.swallows_too_large_noreply else Discard(command, length + 2)


def fits(length: int, word: bytes, rules: WireRules) -> bool:
    return rules.value_limit is None or length + (len(word) if rules.limit_counts_key else 0) <= rules.value_limit


def time_read(exptime: int, rules: WireRules) -> tuple[int, bytes]:
    """Return a time as the profile reads it, and why it is refused, empty where it is not."""
    if rules.wide_exptime == "error" and exptime >= 1 << 31:
        return exptime, BAD_FORMAT
    exptime = numbers.low_32_signed(exptime)
    return exptime, BAD_EXPTIME if exptime < 0 and rules.negative_exptime == "error" else b""


def length_read(word: bytes, rules: WireRules) -> int | None:
    """Return the length of a data block in bytes, or None if it is not a number or out of the profile's range."""
    length = numbers.signed(word)
    if length is None:
        return None
    if rules.wide_length != "low-32-bits" and length >= 1 << 31:
        return None
    if rules.wide_length == "error" and length < -(1 << 31):
        return None
    length = numbers.low_32_signed(length)
    return length if length <= rules.longest_length else None


BAD_DELETE: Final = BAD_FORMAT + b".  Usage: delete <key> [noreply]"
BAD_DELTA: Final = b"CLIENT_ERROR invalid numeric delta argument"
LEAST_LIMIT: Final = 8  # MiB
SMALL_LIMIT: Final = b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"
NO_TLS: Final = b"Error TLS not enabled"
NO_SHUTDOWN: Final = b"ERROR: shutdown not enabled"
TLS_ON_SIGHUP: Final = b"CLIENT_ERROR refresh_certs not allowed: SIGHUP reads certificates again"
NO_EXPTIME: Final = b"CLIENT_ERROR invalid exptime argument"


def get(words: list[bytes], rules: WireRules) -> Parsed:
    """Parse get, gets and bget; a word that is too long ends the line, and those before it are still looked up."""
    for position, word in enumerate(words):
        if len(word) > rules.key_limit and position:
            return c.Get(words[1:position], words[0] == b"gets", refused=True)
    return c.Get(words[1:], words[0] == b"gets")


def store(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    length = length_read(words[4], rules)
    refusal, store = _store_head(words, rules, length)
    if store is None or length is None or length < 0:
        return refused(c.Refused(refusal or BAD_FORMAT, noreply), length, rules)
    return sized(store, length, rules)


def _store_head(words: list[bytes], rules: WireRules, length: int | None) -> tuple[bytes, c.Store | None]:
    if len(words[1]) > rules.key_limit:
        return BAD_FORMAT, None
    flags = numbers.unsigned(words[2])
    exptime = numbers.signed(words[3])
    cas = numbers.unsigned(words[5]) if words[0] == b"cas" else 0
    if flags is None or exptime is None or length is None:
        return BAD_FORMAT, None
    exptime, refusal = time_read(exptime, rules)
    if refusal:
        return refusal, None
    if cas is None or (flags >= 1 << 32 and not rules.wide_flags_wrap):
        return BAD_FORMAT, None
    noreply = words[-1] == b"noreply"
    return b"", c.Store(words[0].decode(), words[1], flags % (1 << 32), exptime, b"", cas, noreply)


def arithmetic(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    if len(words[1]) > rules.key_limit:
        return c.Refused(BAD_FORMAT, noreply)
    delta = numbers.unsigned(words[2])
    if delta is None:
        return c.Refused(BAD_DELTA, noreply)
    return c.Arithmetic(words[0] == b"incr", words[1], delta, noreply)


def delete(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = len(words) > 2 and words[-1] == b"noreply"
    # Only a time of 0 is taken, alone or in front of noreply.
    if words[2:] not in ([], [b"0"], [b"noreply"], [b"0", b"noreply"]):
        return c.Refused(BAD_DELETE, noreply)
    if len(words[1]) > rules.key_limit:
        return c.Refused(BAD_FORMAT, noreply)
    return c.Delete(words[1], noreply)


def touch(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"  # any other last word is passed over (process_touch_command, proto_text.c)
    if len(words[1]) > rules.key_limit:
        return c.Refused(BAD_FORMAT, noreply)
    exptime, refusal = _requested_time(words[2], rules)
    return c.Refused(refusal, noreply) if refusal else c.Touch(words[1], exptime, noreply)


def get_and_touch(words: list[bytes], rules: WireRules) -> Parsed:
    exptime, refusal = _requested_time(words[1], rules)
    if refusal:
        return c.Refused(refusal)
    if max(map(len, words)) > rules.key_limit:
        return c.Refused(BAD_FORMAT)  # nothing is touched: memcached touches the words in front of it
    return c.GetAndTouch(words[2:], exptime, words[0] == b"gats")


def _requested_time(word: bytes, rules: WireRules) -> tuple[int, bytes]:
    exptime = numbers.signed(word)
    return (0, NO_EXPTIME) if exptime is None else time_read(exptime, rules)


def flush_all(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    times = words[1:-1] if noreply else words[1:]
    delay = numbers.signed(times[0]) if times else 0
    if rules.bad_delay_ignored:
        # strtol: only a number beyond 64 bits is noticed. In the plugin that sticks to the thread until the next
        # number is read (errno is never cleared), which is a deviation of every profile.
        in_range = not times or numbers.fits_64_bits(times[0])
        return c.FlushAll(delay or 0, noreply) if in_range else c.Refused(BAD_FORMAT, noreply)
    if delay is None:
        return c.Refused(NO_EXPTIME, noreply)
    # A word behind the delay is passed over, as in memcached and the plugin.
    return c.FlushAll(max(0, delay), noreply)  # a time that has passed is now (process_flush_all_command, proto_text.c)


def bind(words: list[bytes], rules: WireRules) -> Parsed:
    """Parse bind, a command of the plugin only."""
    return c.Refused(BAD_FORMAT) if len(words[1]) > rules.key_limit else c.Bind(words[1])


def verbosity(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    if noreply and len(words) == 2:
        return c.Refused(ERROR, noreply=rules.lone_noreply_silent)
    level = numbers.unsigned(words[1])
    if level is None:
        return c.Refused(BAD_FORMAT if rules.names_bad_verbosity else ERROR, noreply)
    return c.Verbosity(level, noreply)


def cache_memlimit(words: list[bytes], _rules: WireRules) -> Parsed:
    """Parse cache_memlimit, whose limit is a number of 32 bits (process_memlimit_command, proto_text.c)."""
    noreply = words[-1] == b"noreply"
    limit = numbers.unsigned(words[1])
    if limit is None:
        return c.Refused(ERROR, noreply)
    return c.Refused(SMALL_LIMIT, noreply) if limit % (1 << 32) < LEAST_LIMIT else c.CacheMemlimit(noreply)


def refresh_certs(_words: list[bytes], rules: WireRules) -> Parsed:
    return c.Refused(TLS_ON_SIGHUP if rules.tls else NO_TLS)


def shutdown(_words: list[bytes], _rules: WireRules) -> Parsed:
    """Refuse shutdown, as memcached without the option -A."""
    return c.Refused(NO_SHUTDOWN)


def stats(words: list[bytes], _rules: WireRules) -> Parsed:
    """Parse stats; the statistics themselves decide what its words mean."""
    return c.Stats(words[1:])


def version(words: list[bytes], rules: WireRules) -> Parsed:
    return c.Version() if len(words) == 1 or rules.version_words_ignored else c.Refused(ERROR)


def quit_(words: list[bytes], rules: WireRules) -> Parsed:
    return c.Quit() if len(words) == 1 or rules.quit_words_ignored else c.Refused(ERROR)
