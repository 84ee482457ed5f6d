"""Warnings about what clients do, logged at a limited rate, so that a client cannot fill the log."""

from __future__ import annotations

import logging

from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")


class ClientWarnings:
    """Warnings of one kind about the clients of one process.

    Args:
        pause: minimum time between two of them, in seconds; the next one has the number of those between.
    """

    def __init__(self, pause: float) -> None:
        self._throttle = LogThrottle(pause)

    def warn(self, message: str, peer: object, **values: object) -> None:
        """Log a warning unless another one was logged within the pause.

        Args:
            message: with `%(client)s` for the client's address, and the names of further values.
            peer: the client's address, as the system gives it; empty or None for one without an address.
            values: by name.
        """
        suppressed = self._throttle.suppressed()
        if suppressed is None:
            return
        address = peer[0] if isinstance(peer, tuple) and peer else peer or "a local socket"
        more = f"; {suppressed} more since the last warning" if suppressed else ""
        _log.warning(f"{message}%(more)s", {"client": address, "more": more, **values})
