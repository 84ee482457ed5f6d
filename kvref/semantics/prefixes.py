"""Counters by prefix of key, `stats detail`: what stands in front of the first colon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

COLON: Final = b":"
MOST: Final = 10_000  # prefixes kept: a client must not be able to fill the memory with them


@dataclass(slots=True)
class _Uses:
    """How often keys of one prefix were asked for, found, stored and deleted."""

    get: int = 0
    hit: int = 0
    set: int = 0
    delete: int = 0


@dataclass(slots=True)
class Prefixes:
    """Counters by prefix since `stats detail on`; a key without a colon is not counted (count-009)."""

    counting: bool = False
    _uses: dict[bytes, _Uses] = field(default_factory=dict)

    def got(self, word: bytes, *, hit: bool) -> None:
        """Count a word of a get."""
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
        """Return the lines of `stats detail dump`, in the order the prefixes came; memcached's order is its hash's."""
        return [
            b"PREFIX %b get %d hit %d set %d del %d" % (p, u.get, u.hit, u.set, u.delete) for p, u in self._uses.items()
        ]

    def clear(self) -> None:
        """Forget all prefixes; counting goes on."""
        self._uses.clear()

    def _of(self, word: bytes) -> _Uses | None:
        prefix, colon, _ = word.partition(COLON)
        if not (self.counting and colon):
            return None
        if prefix not in self._uses and len(self._uses) >= MOST:
            return None
        return self._uses.setdefault(prefix, _Uses())
