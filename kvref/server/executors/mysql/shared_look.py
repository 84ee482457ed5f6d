"""A look at the end of the log that holds for all gets of one turn of the event loop."""

from __future__ import annotations

from typing import Final

from kvref.server.executors.loop_turn import LoopTurn
from kvref.storage.mysql.binlog.row_cache import RowCache

FEW: Final = 4  # gets of one turn that are answered faster with a look each
PAUSE: Final = 64  # looks until the next one is shared, where that was not worth it


class SharedLook:
    """Whether kept rows were found to be as new as the server in the turn that runs.

    Args:
        cache: has the rows.

    Attributes:
        holds: they were.
    """

    def __init__(self, cache: RowCache) -> None:
        self._cache = cache
        self._hits = 0
        self._pause = 0
        self.holds = False

    def share(self, turn: LoopTurn) -> None:
        """Let a look that was just made hold for the rest of the turn if that is worth it."""
        if self._pause:
            self._pause -= 1
        elif turn.share(self._end):
            self._hits = self._cache.hits
            self.holds = True
        else:
            self._pause = PAUSE

    def _end(self) -> None:
        self.holds = False
        if self._cache.hits - self._hits < FEW:
            self._pause = PAUSE
