"""Bytes that one end of a connection on this machine has received and not read, from the kernel (sock_diag(7))."""

from __future__ import annotations

import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_HEADER: Final = struct.Struct("=IHHII")
_QUEUE_AT: Final = 16 + 56  # behind the header, the first fields of inet_diag_msg
_ANY_COOKIE: Final = struct.pack("=II", 0xFFFFFFFF, 0xFFFFFFFF)
_POLL_SECONDS: Final = 0.0005


def unread_at_client(connection: socket.socket) -> int:
    """Return how many bytes the client of an IPv4 connection has not read; 0 where no Linux kernel says it."""
    try:
        return _unread(connection.getpeername(), connection.getsockname())
    except OSError:
        return 0


def unread_at_server(connection: socket.socket) -> int:
    """Return how many bytes this end of an IPv4 connection has not read; 0 where no Linux kernel says it."""
    try:
        return _unread(connection.getsockname(), connection.getpeername())
    except OSError:
        return 0


def wait_until(done: Callable[[], bool], patience: float) -> bool:
    """Wait until `done` returns true, at most `patience` seconds; return whether it did."""
    end = time.monotonic() + patience
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _unread(local: tuple[str, int], remote: tuple[str, int]) -> int:
    if sys.platform != "linux":
        return 0
    addresses = b"".join(socket.inet_aton(host) + bytes(12) for host, _ in (local, remote))
    ports = struct.pack(">HH", local[1], remote[1])
    which = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
    body = which + ports + addresses + struct.pack("=I", 0) + _ANY_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 0, 0) + body)
        reply = kernel.recv(4096)
    # The reply is an error, for example, if the other end has closed its socket.
    if _HEADER.unpack_from(reply)[1] != _BY_FAMILY:
        return 0
    queued: int = struct.unpack_from("=I", reply, _QUEUE_AT)[0]
    return queued
