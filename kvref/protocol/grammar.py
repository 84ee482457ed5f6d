"""One line of the text protocol to one command: how many words each verb takes and what is refused.

Word counts and the order of checks follow the daemon's process_command and its callees (memcached.c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvref.protocol import commands as c
from kvref.protocol import crawler, foreign, meta, numbers
from kvref.protocol.lines import BAD_FORMAT, Parsed, length_read, refused, sized, time_read
from kvref.protocol.rules import WireRules

STORING: Final = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")
ERROR: Final = b"ERROR"
BAD_DELETE: Final = BAD_FORMAT + b".  Usage: delete <key> [noreply]"
BAD_DELTA: Final = b"CLIENT_ERROR invalid numeric delta argument"
LEAST_LIMIT: Final = 8  # MiB
SMALL_LIMIT: Final = b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"
NO_TLS: Final = b"Error TLS not enabled"
TLS_ON_SIGHUP: Final = b"CLIENT_ERROR refresh_certs not allowed: SIGHUP reads certificates again"
NO_EXPTIME: Final = b"CLIENT_ERROR invalid exptime argument"


def parse_line(line: bytes, rules: WireRules) -> Parsed:
    """Parse one line without its line end.

    Args:
        line: the bytes in front of LF, one CR removed.
        rules: the grammar facts in force.
    """
    if b"\0" in line and rules.nul_ends_line:
        line = line[: line.index(b"\0")]
    words = [word for word in line.split(b" ") if word]
    verb = _VERBS.get(words[0]) if words else None
    if verb is None and words and rules.beyond_plugin:
        verb = _BEYOND.get(words[0])
    if verb is None and rules.closes_on_http and foreign.is_http(words):
        return c.Foreign(foreign.HTTP)
    if b"\0" in line:
        return _refused(BAD_FORMAT, words, rules)
    if verb is None or not verb.fewest <= len(words) <= verb.most:
        return _refused(ERROR, words, rules)
    return verb.parse(words, rules)


def _refused(line: bytes, words: list[bytes], rules: WireRules) -> Parsed:
    at = 4 if words and words[0] in STORING else 2 if rules.beyond_plugin and words[:1] == [b"ms"] else len(words)
    length = length_read(words[at], rules) if at < len(words) else None
    return refused(c.Refused(line), length, rules)


def _get(words: list[bytes], rules: WireRules) -> Parsed:
    for position, word in enumerate(words):
        if len(word) > rules.key_limit and position:
            return c.Get(words[1:position], words[0] == b"gets", refused=True)
    return c.Get(words[1:], words[0] == b"gets")


def _store(words: list[bytes], rules: WireRules) -> Parsed:
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


def _arithmetic(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    if len(words[1]) > rules.key_limit:
        return c.Refused(BAD_FORMAT, noreply)
    delta = numbers.unsigned(words[2])
    if delta is None:
        return c.Refused(BAD_DELTA, noreply)
    return c.Arithmetic(words[0] == b"incr", words[1], delta, noreply)


def _delete(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = len(words) > 2 and words[-1] == b"noreply"
    # Only a time of 0 is taken, alone or in front of noreply.
    if words[2:] not in ([], [b"0"], [b"noreply"], [b"0", b"noreply"]):
        return c.Refused(BAD_DELETE, noreply)
    if len(words[1]) > rules.key_limit:
        return c.Refused(BAD_FORMAT, noreply)
    return c.Delete(words[1], noreply)


def _touch(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"  # any other last word is passed over (process_touch_command, proto_text.c)
    if len(words[1]) > rules.key_limit:
        return c.Refused(BAD_FORMAT, noreply)
    exptime, refusal = _time_asked(words[2], rules)
    return c.Refused(refusal, noreply) if refusal else c.Touch(words[1], exptime, noreply)


def _get_and_touch(words: list[bytes], rules: WireRules) -> Parsed:
    exptime, refusal = _time_asked(words[1], rules)
    if refusal:
        return c.Refused(refusal)
    if max(map(len, words)) > rules.key_limit:
        return c.Refused(BAD_FORMAT)  # nothing is touched: memcached touches the words in front of it
    return c.GetAndTouch(words[2:], exptime, words[0] == b"gats")


def _time_asked(word: bytes, rules: WireRules) -> tuple[int, bytes]:
    exptime = numbers.signed(word)
    return (0, NO_EXPTIME) if exptime is None else time_read(exptime, rules)


def _flush_all(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    times = words[1:-1] if noreply else words[1:]
    delay = numbers.signed(times[0]) if times else 0
    if rules.bad_delay_ignored:
        # strtol: only a number beyond 64 bits is noticed. In the plugin that sticks to the thread until the next
        # number is read (errno is never cleared), which is a deviation of every profile.
        in_range = not times or numbers.fits_64_bits(times[0])
        return c.FlushAll(delay or 0, noreply) if in_range else c.Refused(BAD_FORMAT, noreply)
    if delay is None or len(times) > 1:
        return c.Refused(BAD_FORMAT, noreply)
    return c.FlushAll(max(0, delay), noreply)  # a time that has passed is now (process_flush_all_command, proto_text.c)


def _bind(words: list[bytes], rules: WireRules) -> Parsed:
    return c.Refused(BAD_FORMAT) if len(words[1]) > rules.key_limit else c.Bind(words[1])


def _verbosity(words: list[bytes], rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    if noreply and len(words) == 2:
        return c.Refused(ERROR, noreply=rules.lone_noreply_silent)
    if numbers.unsigned(words[1]) is None:
        return c.Refused(BAD_FORMAT if rules.names_bad_verbosity else ERROR, noreply)
    return c.Verbosity(noreply)


def _cache_memlimit(words: list[bytes], _rules: WireRules) -> Parsed:
    noreply = words[-1] == b"noreply"
    limit = numbers.unsigned(words[1])
    if limit is None:
        return c.Refused(ERROR, noreply)
    # A number of 32 bits (process_memlimit_command, proto_text.c).
    return c.Refused(SMALL_LIMIT, noreply) if limit % (1 << 32) < LEAST_LIMIT else c.CacheMemlimit(noreply)


def _refresh_certs(_words: list[bytes], rules: WireRules) -> Parsed:
    return c.Refused(TLS_ON_SIGHUP if rules.tls else NO_TLS)


def _stats(words: list[bytes], _rules: WireRules) -> Parsed:
    return c.Stats(words[1:])


def _version(words: list[bytes], rules: WireRules) -> Parsed:
    return c.Version() if len(words) == 1 or rules.version_words_ignored else c.Refused(ERROR)


def _quit(words: list[bytes], rules: WireRules) -> Parsed:
    return c.Quit() if len(words) == 1 or rules.quit_words_ignored else c.Refused(ERROR)


@dataclass(frozen=True, slots=True)
class _Verb:
    """A verb's fewest and most words, itself included, and its parser."""

    fewest: int
    most: int
    parse: Callable[[list[bytes], WireRules], Parsed]


_MANY: Final = 1 << 30
_VERBS: Final = {
    b"get": _Verb(2, _MANY, _get),
    b"gets": _Verb(2, _MANY, _get),
    b"bget": _Verb(2, _MANY, _get),
    **dict.fromkeys(STORING, _Verb(5, 6, _store)),
    b"cas": _Verb(6, 7, _store),
    b"incr": _Verb(3, 4, _arithmetic),
    b"decr": _Verb(3, 4, _arithmetic),
    b"delete": _Verb(2, 4, _delete),
    b"flush_all": _Verb(1, 3, _flush_all),
    b"bind": _Verb(2, 2, _bind),
    b"stats": _Verb(1, _MANY, _stats),
    b"version": _Verb(1, _MANY, _version),
    b"verbosity": _Verb(2, 3, _verbosity),
    b"quit": _Verb(1, _MANY, _quit),
}
# What memcached 1.6 has and the plugin never had.
_BEYOND: Final = {
    b"touch": _Verb(3, 4, _touch),
    b"gat": _Verb(2, _MANY, _get_and_touch),
    b"gats": _Verb(2, _MANY, _get_and_touch),
    b"mn": _Verb(1, _MANY, meta.noop),
    b"me": _Verb(1, _MANY, meta.debug),
    b"mg": _Verb(2, _MANY, meta.get),
    b"ms": _Verb(2, _MANY, meta.set_),
    b"md": _Verb(2, _MANY, meta.delete),
    b"ma": _Verb(2, _MANY, meta.arithmetic),
    b"cache_memlimit": _Verb(2, 3, _cache_memlimit),
    b"refresh_certs": _Verb(1, _MANY, _refresh_certs),
    b"lru_crawler": _Verb(1, _MANY, lambda words, _rules: crawler.parse(words)),
}
