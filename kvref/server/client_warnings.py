"""Clients that are refused or misbehave: counted, and logged at a limited rate, so that none can fill the log."""

from __future__ import annotations

import logging
from typing import Final

from kvref.engine.counters import Counters
from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")


class ClientWarnings:
    """Warnings of one kind about the clients of one process.

    Args:
        pause: time in seconds within which no more than `burst` are logged; the next one has the number of the others.
        burst: their number.
        level: of the log lines.
    """

    def __init__(self, pause: float, burst: int = 1, level: int = logging.WARNING) -> None:
        self._throttle = LogThrottle(pause, burst)
        self._level = level

    def warn(self, message: str, peer: object, **values: object) -> None:
        """Log a warning unless as many as may be were logged within the pause.

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
        _log.log(self._level, f"{message}%(more)s", {"client": address, "more": more, **values})


PAUSE: Final = 1.0  # seconds between two warnings of failed authentication
FOREIGN_PAUSE: Final = 60.0  # seconds between two warnings of other protocols


class Attempts:
    """Attempts to authenticate of the clients of one process.

    Args:
        counters: get `auth_cmds` and `auth_errors`, as memcached counts them.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._warnings = ClientWarnings(PAUSE)

    def note(self, user: bytes, peer: object, *, known: bool) -> None:
        """Count an attempt, and log it if it failed.

        Args:
            user: as the client named itself.
            peer: the client's address, as the system gives it.
            known: the password was right.
        """
        self._counters.auth_cmds += 1
        if not known:
            self._counters.auth_errors += 1
            name = ascii(user.decode(errors="replace"))
            self._warnings.warn("authentication failed: user %(user)s from %(client)s", peer, user=name)


class ForeignProtocols:
    """Requests of other protocols that the clients of one process sent.

    Args:
        counters: get `foreign_protocol_conns`.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._warnings = ClientWarnings(FOREIGN_PAUSE)

    def note(self, protocol: str, peer: object, *, port: str = "a memcached port") -> None:
        """Count a connection, and log it.

        Args:
            protocol: name of the protocol that the client used.
            peer: the client's address, as the system gives it.
            port: name of the port in the log.
        """
        self._counters.foreign_protocol_conns += 1
        text = "closed a connection from %(client)s: %(protocol)s request on %(port)s"
        self._warnings.warn(text, peer, protocol=protocol, port=port)
