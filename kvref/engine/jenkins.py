"""Bob Jenkins' lookup3, the hash of memcached's tables: what is listed in their order is listed by it."""

from __future__ import annotations

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
    for place in range(3):
        words[place] = (words[place] + int.from_bytes(block[4 * place : 4 * place + 4], "little")) & _MASK


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK
