"""Recognize lines of common commands in the one spelling that every profile parses in the same way.

Single blanks between words, digits without signs, no further word: under the rules of any profile, `grammar` parses
such a line literally (tests/protocol/test_plain.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kvref.protocol.grammar import fits
from kvref.protocol.replies import Status
from kvref.protocol.rules import WireRules

END: Final = b"END\r\n"
STORED: Final = Status.STORED.value
STORING: Final = frozenset((b"set", b"add", b"replace"))  # verbs of lines with a data block
SHOWN: Final = b"VALUE %b %d %d\r\n%b\r\n"  # one hit of a get: word, flags, length and data
MAX_BURST: Final = 64
MAX_FLAGS: Final = 999_999_999  # nine digits


class PlainLines:
    """Regular expressions for fast-path lines under the rules of a profile.

    Args:
        rules: grammar facts of the profile.

    Attributes:
        word: a key that cannot select a mapping or a range.
        named: a word that may begin with the name of a mapping.
        get: a whole get of one key; its group is the key.
        gets_of_one: such gets one behind the other, 64 at most.
        getting: a whole get or gets of any keys; its groups are verb and words. Each word is one of `word` or `named`.
        get_named: as `get`, of a word that may begin with the name of a mapping.
        set: a set without an expiry time up to its data; its groups are key, flags, length and noreply, which is the
            last group of each line below too.
        storing: a set, add or replace up to its data; its groups are verb, word, flags, expiry time and length. Like
            those of the lines below, the word may begin with the name of a mapping.
        counting: a whole incr or decr; its groups are verb, word and delta.
        deleting: a whole delete; its group is the word.
    """

    def __init__(self, rules: WireRules) -> None:
        self._rules = rules
        # Words that begin with @ switch or are ranges; a NUL ends a line in some profiles.
        word = rb"[^@ \r\n\0][^ \r\n\0]{0,%d}" % (rules.key_limit - 1)
        quiet = rb"(?: (noreply))?\r\n"
        self.word = re.compile(word)
        self.get = re.compile(rb"get (" + word + rb")\r\n")
        self.gets_of_one = re.compile(rb"(?:get " + word + rb"\r\n){1,%d}" % MAX_BURST)
        self.set = re.compile(rb"set (" + word + rb") ([0-9]{1,9}) 0 ([0-9]{1,7})" + quiet)
        named = rb"@@[^ \r\n\0]{1,%d}" % (rules.key_limit - 2)
        self.named = re.compile(named)
        self.get_named = re.compile(rb"get (" + named + rb")\r\n")
        any_word = rb"(" + word + rb"|" + named + rb")"
        one = rb"(?:" + word + rb"|" + named + rb")"
        self.getting = re.compile(rb"(gets?) (" + one + rb"(?: " + one + rb")*)\r\n")
        numbers = rb" ([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,7})"
        self.storing = re.compile(rb"(set|add|replace) " + any_word + numbers + quiet)
        self.counting = re.compile(rb"(incr|decr) " + any_word + rb" ([0-9]{1,19})" + quiet)
        self.deleting = re.compile(rb"delete " + any_word + quiet)

    def key_behind_name(self, word: bytes, key_of_bound: Callable[[bytes], bytes | None]) -> bytes | None:
        """Return the plain key in a word that begins with the name of a mapping; None for any other word.

        Args:
            word: as the client sent it.
            key_of_bound: see `Session.key_of_bound`.
        """
        key = key_of_bound(word) if self.named.fullmatch(word) else None
        return key if key is not None and self.word.fullmatch(key) else None

    def key_in(self, word: bytes, key_of_bound: Callable[[bytes], bytes | None]) -> bytes | None:
        """Return the plain key in any word, also behind the name of a mapping; None for any other word.

        Args:
            word: as the client sent it.
            key_of_bound: see `Session.key_of_bound`.
        """
        return word if self.word.fullmatch(word) else self.key_behind_name(word, key_of_bound)

    def takes(self, word: bytes, length: int) -> bool:
        """Return whether a set of that many bytes is not too large."""
        return fits(length, word, self._rules)


def verbs(data: bytes) -> list[bytes]:
    """Return the verb of each of the fast-path lines that `data` consists of, with their data blocks."""
    found, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        words = data[at:end].split(b" ")
        found.append(words[0])
        at = end + 2
        if words[0] in STORING:
            at += int(words[4]) + 2
    return found


def shown(word: bytes, flags: int, data: bytes) -> bytes:
    """Return one hit of a get, without END.

    Args:
        word: as the client sent it.
        flags: 0 to 2^32-1.
        data: the value.
    """
    return SHOWN % (word, flags, len(data), data)


def numbered(hit: bytes, cas: int) -> bytes:
    """Return what `shown` returned as a gets shows it.

    Args:
        hit: of one item.
        cas: its cas number, 0 to 2^64-1.
    """
    end = hit.index(b"\r\n")
    return b"%b %d%b" % (hit[:end], cas, hit[end:])


def renamed(hit: bytes, key: bytes, word: bytes) -> bytes:
    """Return what `shown` returned for a key as it is shown for another word.

    Args:
        hit: of one item.
        key: that it shows.
        word: that it is to show.
    """
    return b"VALUE %b%b" % (word, hit[len(b"VALUE ") + len(key) :])


def data_of(hit: bytes) -> bytes:
    """Return the value in what `shown` returned."""
    return hit[hit.index(b"\r\n") + 2 : -2]
