"""Clients that are refused or misbehave: counted, and logged at a limited rate, so that none can fill the log."""

from __future__ import annotations

import logging
from typing import Final

from kvref.engine.counters import Counters
from kvref.log_throttle import LogThrottle

_log = logging.getLogger("kvref.server")

SWITCHED: Final = (
    "a key of a client at %(client)s named the mapping %(mapping)s: from now on its connection uses it for keys"
    " without @@, too; sticky_mapping=0 limits the mapping of a key to its command"
)


class ClientWarnings:
    """Count and log what the clients of one process do wrong; a client without an address is None or empty."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._authentications = LogThrottle(1.0)
        self._foreign = LogThrottle(60.0)
        self._refused_values = LogThrottle(60.0)
        # Each connection that a key switches is logged once; clients that connect for each command do not fill the log.
        self._switches = LogThrottle(1.0, burst=20)

    def authentication(self, user: bytes, peer: object, *, succeeded: bool) -> None:
        """Count an authentication attempt, and log it if it failed."""
        self._counters.auth_cmds += 1
        if not succeeded:
            self._counters.auth_errors += 1
            name = ascii(user.decode(errors="replace"))
            _warn(self._authentications, "authentication failed: user %(user)s from %(client)s", peer, user=name)

    def foreign_protocol(self, protocol: str, peer: object, *, port: str = "a memcached port") -> None:
        """Count and log a connection with another protocol, on a port of this kind."""
        self._counters.foreign_protocol_conns += 1
        text = "closed a connection from %(client)s: %(protocol)s request on %(port)s"
        _warn(self._foreign, text, peer, protocol=protocol, port=port)

    def refused_value(self, reason: str, peer: object) -> None:
        """Log a value that its column does not accept; a binary reply and noreply have no text."""
        _warn(self._refused_values, "refused a value from %(client)s: %(reason)s", peer, reason=reason)

    def switched(self, mapping: str, peer: object) -> None:
        """Log that a key has switched the mapping of its connection."""
        _warn(self._switches, SWITCHED, peer, level=logging.INFO, mapping=mapping)


def _warn(throttle: LogThrottle, message: str, peer: object, *, level: int = logging.WARNING, **values: str) -> None:
    """Log a message with these values and the number of suppressed ones, unless it is suppressed too."""
    suppressed = throttle.suppressed()
    if suppressed is None:
        return
    address = peer[0] if isinstance(peer, tuple) and peer else peer or "a local socket"
    more = f"; {suppressed} more since the last warning" if suppressed else ""
    _log.log(level, f"{message}%(more)s", {"client": address, "more": more, **values})
