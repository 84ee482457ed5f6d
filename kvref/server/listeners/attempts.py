"""Attempts of clients to prove who they are: counted, and failures told without letting a client fill the log."""

from __future__ import annotations

import logging
from typing import Final

from kvref.engine.stats import Counters
from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")

PAUSE: Final = 1.0  # seconds between two warnings


class Attempts:
    """What clients of one process tried.

    Args:
        counters: get `auth_cmds` and `auth_errors`, as memcached counts them.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._throttle = LogThrottle(PAUSE)

    def note(self, user: bytes, peer: object, *, known: bool) -> None:
        """Count one.

        Args:
            user: as the client named itself.
            peer: its address, as the system gives it.
            known: it knew the password.
        """
        self._counters.auth_cmds += 1
        if known:
            return
        self._counters.auth_errors += 1
        untold = self._throttle.suppressed()
        if untold is None:
            return
        where = peer[0] if isinstance(peer, tuple) else peer
        more = f"; {untold} more failures since the last warning" if untold else ""
        _log.warning("authentication failed: user %s from %s%s", ascii(user.decode(errors="replace")), where, more)
