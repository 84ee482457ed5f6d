"""Recognize keys in the one spelling that every profile reads in the same way, as planners need it."""

from __future__ import annotations

import re
from collections.abc import Callable

from kvref.protocol.grammar import fits
from kvref.protocol.rules import WireRules


class UsualWords:
    """Words of usual commands under the rules of a profile (tests/protocol/test_usual_words.py).

    Attributes:
        word: a key that cannot select a mapping or a range.
        named: a word that may begin with the name of a mapping.
    """

    def __init__(self, rules: WireRules) -> None:
        self._rules = rules
        # Words that begin with @ switch or are ranges; a NUL ends a line in some profiles.
        self.word = re.compile(rb"[^@ \r\n\0][^ \r\n\0]{0,%d}" % (rules.key_limit - 1))
        longest = rules.key_limit - len(b"@@")
        self.named = re.compile(rb"@@[^ \r\n\0]{1,%d}" % longest if longest > 0 else rb"(?!)")

    def key_after_name(self, word: bytes, key_of_bound: Callable[[bytes], bytes | None]) -> bytes | None:
        """Return the key in a word that begins with the name of a mapping; None for any other word."""
        key = key_of_bound(word) if self.named.fullmatch(word) else None
        return key if key is not None and self.word.fullmatch(key) else None

    def takes(self, word: bytes, length: int) -> bool:
        """Return whether a set of that many bytes is not too large."""
        return fits(length, word, self._rules)
