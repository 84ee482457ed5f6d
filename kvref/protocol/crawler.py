"""The command `lru_crawler` of memcached 1.6 (process_lru_crawler_command, proto_text.c)."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from kvref.protocol import commands as c
from kvref.protocol import numbers
from kvref.protocol.grammar import BAD_FORMAT, ERROR, Parsed
from kvref.protocol.hits import END
from kvref.protocol.replies import Keys
from kvref.protocol.rules import WireRules

LONG_SLEEP: Final = b"CLIENT_ERROR sleep must be one second or less"
MAX_SLEEP: Final = 1_000_000  # microseconds
CLASSES: Final = range(1, 64)  # numbers of slab classes


def parse(words: list[bytes], _rules: WireRules) -> Parsed:
    match words[1:]:
        case [b"enable" | b"disable" as switch]:
            return c.SwitchCrawler(switch == b"enable")
        case [b"metadump", items]:
            return c.KeyDump(crawled(items))
        case [b"crawl", items]:
            return c.Crawl(crawled(items))
        case [b"sleep" | b"tocrawl" as setting, word]:
            return _setting(setting, word)
        case _:
            return c.Refused(ERROR)


def _setting(setting: bytes, word: bytes) -> Parsed:
    number = numbers.unsigned(word)
    if number is None:
        return c.Refused(BAD_FORMAT)
    # A number of 32 bits (safe_strtoul, util.c).
    return c.Refused(LONG_SLEEP) if setting == b"sleep" and number % (1 << 32) > MAX_SLEEP else c.TuneCrawler()


def crawled(word: bytes) -> c.Crawled:
    """Return which items the last word of `lru_crawler metadump` or `lru_crawler crawl` names."""
    if word in (b"all", b"hash"):
        return c.Crawled.ALL
    classes = [numbers.unsigned(each) for each in word.split(b",") if each]
    if any(number is None or number % (1 << 32) not in CLASSES for number in classes):
        return c.Crawled.UNKNOWN
    return c.Crawled.CLASSES if classes else c.Crawled.NOTHING


def encode(reply: Keys) -> bytes:
    """Return the bytes of a part of a listing: lines that end with LF alone, then END (crawler_metadump_eval).

    A row has no slab class, so the class is 0 as in `me`, and whether it was fetched is not recorded.
    """
    lines = [
        b"key=%b exp=%d la=%d cas=%d fetch=no cls=0 size=%d\n"
        % (quote(each.key, safe="").encode(), each.expiry or -1, each.accessed, each.cas, each.size)
        for each in reply.keys
    ]
    return b"".join(lines) + (END if reply.more is None else b"")
