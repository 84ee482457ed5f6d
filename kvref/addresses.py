"""Where an endpoint listens, as a command line writes it, and connections to it."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import Final, TypeAlias

from kvref.errors import ConfigError

UNIX: Final = "unix:"
FORM: Final = "HOST:PORT or unix:PATH"
# As the socket module has them: host and port, or the path of a unix socket.
SocketAddress: TypeAlias = tuple[str, int] | str


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port, or the path of a unix socket (host empty, port 0); port 0 of a listener is any free one."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        return format_address(self.socket_address)

    @property
    def socket_address(self) -> SocketAddress:
        """Return the address as the socket module has it."""
        return self.path or (self.host, self.port)


def parse_address(text: str) -> Address:
    """Read HOST:PORT or unix:PATH.

    Raises:
        ConfigError: a URL, no host, a port that is not a number from 0 to 65535, or no path.
    """
    if text.startswith(UNIX):
        path = text.removeprefix(UNIX)
        if not path or "\0" in path:
            raise ConfigError(f"address {text!r}: write unix:PATH, for example unix:/run/kvref/kvref.sock")
        return Address("", 0, path)
    if "://" in text:
        raise ConfigError(f"address {text!r}: it is not a URL: write {FORM}, for example 127.0.0.1:11211")
    host, colon, port = text.rpartition(":")
    named = colon and host and host.isprintable()
    if not (named and port.isascii() and port.isdigit() and len(port) < 6 and int(port) <= 65535):
        raise ConfigError(f"address {text!r}: write {FORM}, for example 127.0.0.1:11211")
    return Address(host.strip("[]"), int(port))


def is_ip(host: str) -> bool:
    """Return whether a host is an IPv4 or IPv6 address, the latter without brackets, and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def format_address(address: SocketAddress) -> str:
    """Return an address as a command line writes it."""
    if isinstance(address, str):
        return f"{UNIX}{address}"
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connect(address: SocketAddress, seconds: float) -> socket.socket:
    """Connect to an address, over TCP with TCP_NODELAY.

    Args:
        seconds: limit for the connection, and the timeout of the socket that is returned.

    Raises:
        OSError: nothing listens there, or it cannot be reached in time.
    """
    if not isinstance(address, str):
        opened = socket.create_connection(address, seconds)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.settimeout(seconds)
        opened.connect(address)
    except BaseException:
        opened.close()
        raise
    return opened
