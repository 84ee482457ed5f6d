"""Attempts of clients to prove who they are: counted, and failures told without letting a client fill the log."""

from __future__ import annotations

import logging
import time
from typing import Final

from kvref.semantics.stats import Counters

_log = logging.getLogger("kvref.server")

PAUSE: Final = 1.0  # seconds between two warnings


class Attempts:
    """What clients of one process tried.

    Args:
        counters: get `auth_cmds` and `auth_errors`, as memcached counts them.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._silent_until = 0.0
        self._untold = 0

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
        now = time.monotonic()
        if now < self._silent_until:
            self._untold += 1
            return
        where = peer[0] if isinstance(peer, tuple) else peer
        more = f", and {self._untold} failures before" if self._untold else ""
        _log.warning("authentication failed: user %s from %s%s", ascii(user.decode(errors="replace")), where, more)
        self._silent_until, self._untold = now + PAUSE, 0
