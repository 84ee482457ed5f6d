"""Whether `lru_crawler` is enabled, for all workers."""

from __future__ import annotations

from kvref.engine.crawler import Crawler
from kvref.server.workers.shared_memory import CRAWLER_DISABLED, Memory


class WorkerCrawler(Crawler):
    """The switch that all workers share.

    Args:
        memory: has it.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def enabled(self) -> bool:
        """Return whether `lru_crawler metadump` and `lru_crawler crawl` are carried out."""
        return not self._memory[CRAWLER_DISABLED]

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._memory[CRAWLER_DISABLED] = int(not on)
