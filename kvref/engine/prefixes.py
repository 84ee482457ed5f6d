"""Counters of commands by the prefix of their keys, as `stats detail` shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_MASK: Final = 0xFFFFFFFF
_BLOCK: Final = 12  # bytes: three words
# (changed, taken off, bits to rotate by): the rounds of mix() and of final() in lookup3.c.
_MIX: Final = ((0, 2, 4), (1, 0, 6), (2, 1, 8), (0, 2, 16), (1, 0, 19), (2, 1, 4))
_FINAL: Final = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))


def jenkins(text: bytes) -> int:
    """Return the 32-bit hash of a text, with initial value 0 (hash.c; public domain lookup3.c, hashlittle)."""
    words = [(0xDEADBEEF + len(text)) & _MASK] * 3
    if not text:
        return words[2]
    last = (len(text) - 1) // _BLOCK * _BLOCK
    for start in range(0, last, _BLOCK):
        _add(words, text[start : start + _BLOCK])
        for changed, other, bits in _MIX:
            words[changed] = (words[changed] - words[other] ^ _rotated(words[other], bits)) & _MASK
            words[other] = (words[other] + words[3 - changed - other]) & _MASK
    _add(words, text[last:].ljust(_BLOCK, b"\0"))
    for changed, other, bits in _FINAL:
        words[changed] = ((words[changed] ^ words[other]) - _rotated(words[other], bits)) & _MASK
    return words[2]


def _add(words: list[int], block: bytes) -> None:
    for index in range(3):
        words[index] = (words[index] + int.from_bytes(block[4 * index : 4 * index + 4], "little")) & _MASK


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK


COLON: Final = b":"
BUCKETS: Final = 256  # of memcached's table of prefixes
MAX_PREFIXES: Final = 10_000  # prefixes kept: a client must not be able to fill the memory with them


@dataclass(slots=True)
class Uses:
    """How many gets, hits, sets and deletes the keys of one prefix had."""

    get: int = 0
    hit: int = 0
    set: int = 0
    delete: int = 0


@dataclass(slots=True)
class Prefixes:
    """Counters by prefix since `stats detail on`; a key without a colon is not counted (more:count-009).

    They are listed in the order of memcached's table, by Bob Jenkins' lookup3.

    by_beginning: a prefix counts as the newest one that begins with it and has the same bucket in that table
    (more:count-013): stats_prefix_find (stats.c) compares no lengths.
    """

    counting: bool = False
    by_beginning: bool = False
    _uses: dict[bytes, Uses] = field(default_factory=dict)

    def got(self, word: bytes, *, hit: bool) -> None:
        uses = self._of(word)
        if uses is not None:
            uses.get += 1
            uses.hit += hit

    def stored(self, word: bytes) -> None:
        """Count a storage command, whatever its answer."""
        uses = self._of(word)
        if uses is not None:
            uses.set += 1

    def deleted(self, word: bytes) -> None:
        """Count a delete, whatever its answer."""
        uses = self._of(word)
        if uses is not None:
            uses.delete += 1

    def lines(self) -> list[bytes]:
        """Return the lines of `stats detail dump` by hash, among equal ones the newest first (stats.c, count-010)."""
        newest_first = reversed(self.all().items())
        return [
            b"PREFIX %b get %d hit %d set %d del %d" % (prefix, uses.get, uses.hit, uses.set, uses.delete)
            for prefix, uses in sorted(newest_first, key=lambda entry: jenkins(entry[0]) % BUCKETS)
        ]

    def all(self) -> dict[bytes, Uses]:
        return self._uses

    def clear(self) -> None:
        """Forget all prefixes; counting goes on."""
        self._uses.clear()

    def counted_as(self, word: bytes) -> bytes | None:
        """Return the prefix under which a word is counted; None if it has no colon."""
        prefix = prefix_of(word)
        if prefix is None or not self.by_beginning:
            return prefix
        bucket = jenkins(prefix) % BUCKETS
        alike = (each for each in reversed(self._uses) if each.startswith(prefix) and jenkins(each) % BUCKETS == bucket)
        return next(alike, prefix)

    def _of(self, word: bytes) -> Uses | None:
        prefix = self.counted_as(word) if self.counting else None
        if prefix is None or (prefix not in self._uses and len(self._uses) >= MAX_PREFIXES):
            return None
        return self._uses.setdefault(prefix, Uses())


def prefix_of(word: bytes) -> bytes | None:
    """Return the part of a key before its first colon; None if it has no colon."""
    prefix, colon, _ = word.split(b"\0")[0].partition(COLON)  # stats_prefix_find reads up to NUL (more:bin-216)
    return prefix if colon else None
