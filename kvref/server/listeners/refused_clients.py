"""Clients that are refused: failed authentication and other protocols, counted, and logged at a limited rate."""

from __future__ import annotations

import logging
from typing import Final

from kvref.engine.stats import Counters
from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")

PAUSE: Final = 1.0  # seconds between two warnings of failed authentication
FOREIGN_PAUSE: Final = 60.0  # seconds between two warnings of other protocols


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


class ForeignProtocols:
    """Requests of other protocols that the clients of one process sent.

    Args:
        counters: get `foreign_protocol_conns`.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._throttle = LogThrottle(FOREIGN_PAUSE)

    def note(self, protocol: str, peer: object, *, port: str = "a memcached port") -> None:
        """Count a connection, and log it unless another one was logged within the last minute.

        Args:
            protocol: name of the protocol that the client used.
            peer: the client's address, as the system gives it.
            port: name of the port in the log.
        """
        self._counters.foreign_protocol_conns += 1
        suppressed = self._throttle.suppressed()
        if suppressed is None:
            return
        where = peer[0] if isinstance(peer, tuple) and peer else peer or "a local socket"
        more = f"; {suppressed} more since the last warning" if suppressed else ""
        _log.warning("closed a connection from %s: %s request on %s%s", where, protocol, port, more)
