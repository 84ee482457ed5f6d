"""Whether `lru_crawler` is enabled; what it does is in `listing.py`."""

from __future__ import annotations


class Crawler:
    """A switch for all connections, which is on at the start."""

    def __init__(self) -> None:
        self._disabled = False

    @property
    def enabled(self) -> bool:
        """Return whether `lru_crawler metadump` and `lru_crawler crawl` are carried out."""
        return not self._disabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._disabled = not on
