"""What one connection has written and the memory cache must not show before the commit."""

from __future__ import annotations

from kvref.semantics.cache import Cache, Entry, Key


class Pending:
    """Rows that this connection has written in the open batch, by their place in the cache.

    Args:
        cache: the server's.
    """

    __slots__ = ("_cache", "_rows")

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._rows: dict[Key, tuple[object, Entry | None]] = {}

    def wrote(self, key: Key, entry: Entry | None) -> None:
        """Keep a row as it is after a write, None where it was deleted; the row's lock is held."""
        self._rows[key] = self._cache.write(key), entry

    def holds(self, key: Key) -> bool:
        """Tell whether this connection has written the row: it sees its own write, not what the cache has."""
        return key in self._rows

    def committed(self) -> None:
        """Let the cache have what is durable now."""
        for key, (writer, entry) in self._rows.items():
            self._cache.commit(key, writer, entry)
        self._rows.clear()

    def discarded(self) -> None:
        """Forget what was rolled back."""
        for key, (writer, _) in self._rows.items():
            self._cache.give_up(key, writer)
        self._rows.clear()
