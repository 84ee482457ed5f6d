"""The rows of `stats conns`: sockets that are listened on, and connections, as memcached 1.6 shows them."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

Rows = list[tuple[str, str]]


class State(Enum):
    """What a connection does, in memcached's words (state_text, memcached.c)."""

    LISTENING = "conn_listening"
    IDLE = "conn_read"
    COMMAND = "conn_parse_cmd"  # it is answered just now
    DATA = "conn_nread"  # the rest of a command is missing
    STORE = "conn_io_queue"  # its command waits for the store or for its turn
    WRITING = "conn_mwrite"  # the client does not read its replies
    CLOSING = "conn_closing"


class Shown(NamedTuple):
    """One socket.

    Args:
        descriptor: its number.
        peer: address of the client as the socket module has it; None for a socket that is listened on.
        own: address at which it was accepted, or is listened on.
        family: of both.
        state: what it does.
        quiet: seconds since the last bytes of the client, or since the start.
    """

    descriptor: int
    peer: Any
    own: Any
    family: int
    state: State
    quiet: float

    def rows(self) -> Rows:
        """Return its rows."""
        shown = {"addr": _text(self.family, self.own if self.peer is None else self.peer)}
        if self.peer is not None:
            shown["listen_addr"] = _text(self.family, self.own)
        shown |= {"state": self.state.value, "secs_since_last_cmd": str(max(0, int(self.quiet)))}
        return [(f"{self.descriptor}:{name}", value) for name, value in shown.items()]


def rows_of(sockets: Iterable[Shown]) -> Rows:
    """Return the rows of some sockets, by descriptor."""
    return [row for each in sorted(sockets, key=lambda each: each.descriptor) for row in each.rows()]


def _text(family: int, address: Any) -> str:
    """Return an address as memcached spells it (get_conn_text, memcached.c)."""
    if family == socket.AF_UNIX:
        path = address if isinstance(address, str) else address.decode(errors="replace")
        return f"unix:{path or '<unnamed>'}"  # a client's socket has no name
    host, port = address[:2]
    return f"tcp6:[{host}]:{port}" if family == socket.AF_INET6 else f"tcp:{host}:{port}"
