"""Counters by prefix of key, `stats detail`: what stands in front of the first colon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kvref.engine.jenkins import jenkins

COLON: Final = b":"
BUCKETS: Final = 256  # of memcached's table of prefixes
MAX_PREFIXES: Final = 10_000  # prefixes kept: a client must not be able to fill the memory with them


@dataclass(slots=True)
class Uses:
    """How often keys of one prefix were asked for, found, stored and deleted."""

    get: int = 0
    hit: int = 0
    set: int = 0
    delete: int = 0


@dataclass(slots=True)
class Prefixes:
    """Counters by prefix since `stats detail on`; a key without a colon is not counted (count-009)."""

    counting: bool = False
    _uses: dict[bytes, Uses] = field(default_factory=dict)

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
        """Return the lines of `stats detail dump` by hash, among equal ones the newest first (stats.c, count-010)."""
        newest_first = reversed(self.all().items())
        return [
            b"PREFIX %b get %d hit %d set %d del %d" % (prefix, uses.get, uses.hit, uses.set, uses.delete)
            for prefix, uses in sorted(newest_first, key=lambda entry: jenkins(entry[0]) % BUCKETS)
        ]

    def all(self) -> dict[bytes, Uses]:
        """Return the counters of every prefix, the oldest first."""
        return self._uses

    def clear(self) -> None:
        """Forget all prefixes; counting goes on."""
        self._uses.clear()

    def _of(self, word: bytes) -> Uses | None:
        prefix = prefix_of(word) if self.counting else None
        if prefix is None or (prefix not in self._uses and len(self._uses) >= MAX_PREFIXES):
            return None
        return self._uses.setdefault(prefix, Uses())


def prefix_of(word: bytes) -> bytes | None:
    """Return what stands in front of the first colon of a key; None where there is none."""
    prefix, colon, _ = word.split(b"\0")[0].partition(COLON)  # stats_prefix_find reads up to NUL (more:bin-216)
    return prefix if colon else None
