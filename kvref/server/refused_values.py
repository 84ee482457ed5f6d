"""Values that their column refuses, logged at a limited rate: a binary reply and `noreply` have no text."""

from __future__ import annotations

import logging
from typing import Final

from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")

PAUSE: Final = 60.0  # seconds between two warnings


class RefusedValues:
    """Values of the clients of one process that are longer than their column."""

    def __init__(self) -> None:
        self._throttle = LogThrottle(PAUSE)

    def note(self, text: str, peer: object) -> None:
        """Log a value unless another one was logged within the last minute.

        Args:
            text: of the error reply, which names column and width.
            peer: the client's address, as the system gives it.
        """
        suppressed = self._throttle.suppressed()
        if suppressed is None:
            return
        where = peer[0] if isinstance(peer, tuple) and peer else peer or "a local socket"
        more = f"; {suppressed} more since the last warning" if suppressed else ""
        _log.warning("refused a value from %s: %s%s", where, text, more)
