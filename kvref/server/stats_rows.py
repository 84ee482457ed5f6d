"""The rows of `stats conns`: sockets that are listened on, and connections, as memcached 1.6 shows them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kvref.server.listeners.listener import Listener


# OpenSSL's numbers of the two modes that a listener can have: SSL_VERIFY_NONE, and SSL_VERIFY_PEER with
# SSL_VERIFY_FAIL_IF_NO_PEER_CERT.
_VERIFY: Final = {ssl.CERT_NONE: "0", ssl.CERT_REQUIRED: "3"}
_PEM: Final = "1"  # SSL_FILETYPE_PEM
NOT_SET: Final = "NULL"


def of_listeners(listeners: Sequence[Listener]) -> dict[str, str]:
    """Return the rows of these listeners: the first with TCP, with users or with TLS decides."""
    hosts = [each.address.host for each in listeners if not each.address.path]
    path = next((each.address.path for each in listeners if each.address.path), NOT_SET)
    users = next((str(each.auth_file) for each in listeners if each.auth_file is not None), "no")
    return {
        "tcpport": str(next((each.port for each in listeners if not each.address.path), 0)),
        "udpport": "0",
        "inter": ",".join(dict.fromkeys(hosts)) or NOT_SET,
        "domain_socket": path,
        "auth_enabled_ascii": users,
        **_of_tls(listeners),
    }


def _of_tls(listeners: Sequence[Listener]) -> dict[str, str]:
    for each in listeners:
        if each.certificates is not None and each.tls is not None:
            files, context = each.certificates, each.tls
            return {
                "ssl_enabled": "yes",
                "ssl_chain_cert": str(files.chain),
                "ssl_key": str(files.key or files.chain),
                "ssl_verify_mode": _VERIFY[context.verify_mode],
                "ssl_keyformat": _PEM,
                "ssl_ciphers": NOT_SET,
                "ssl_ca_cert": NOT_SET if files.clients is None else str(files.clients),
                "ssl_session_cache": "no",
                "ssl_kernel_tls": "yes" if context.options & getattr(ssl, "OP_ENABLE_KTLS", 0) else "no",
                "ssl_min_version": context.minimum_version.name.lower().replace("_", "."),
            }
    return {"ssl_enabled": "no"}


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


class SocketStats(NamedTuple):
    """One socket.

    Args:
        peer: address of the client as the socket module has it; None for a socket that is listened on.
        own: address at which it was accepted, or is listened on.
        quiet: seconds since the last bytes of the client, or since the start.
    """

    descriptor: int
    peer: Any
    own: Any
    family: int
    state: State
    quiet: float

    def rows(self) -> Rows:
        stats = {"addr": _text(self.family, self.own if self.peer is None else self.peer)}
        if self.peer is not None:
            stats["listen_addr"] = _text(self.family, self.own)
        stats |= {"state": self.state.value, "secs_since_last_cmd": str(max(0, int(self.quiet)))}
        return [(f"{self.descriptor}:{name}", value) for name, value in stats.items()]


def rows_of(sockets: Iterable[SocketStats]) -> Rows:
    return [row for each in sorted(sockets, key=lambda each: each.descriptor) for row in each.rows()]


def _text(family: int, address: Any) -> str:
    """Return an address as memcached spells it (get_conn_text, memcached.c)."""
    if family == socket.AF_UNIX:
        path = address if isinstance(address, str) else address.decode(errors="replace")
        return f"unix:{path or '<unnamed>'}"  # a client's socket has no name
    host, port = address[:2]
    return f"tcp6:[{host}]:{port}" if family == socket.AF_INET6 else f"tcp:{host}:{port}"
