"""Loopback ports: find a free one, and read the version of the memcached server at one."""

from __future__ import annotations

import secrets
import socket

from kvref.errors import TargetError

LOOPBACK = "127.0.0.1"
# Below the kernel's ephemeral range (32768 and up by default): no outgoing connection takes a port that was just found.
_FIRST, _COUNT = 20000, 12000
_ATTEMPTS = 100
# Bytes read of one line.
_MAX_LINE = 8192


class NotYetError(Exception):
    """The server does not answer yet; the text says what happened instead."""


def free_port() -> int:
    """Return a TCP port of the loopback interface on which no server listens.

    Random rather than counted, so that servers booted at the same moment do not race for one.
    """
    for _ in range(_ATTEMPTS):
        port = _FIRST + secrets.randbelow(_COUNT)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue  # taken: the next draw decides, and the error below reports when none is free
            return port
    raise TargetError(
        f"no free port on {LOOPBACK} in {_ATTEMPTS} draws from {_FIRST} to {_FIRST + _COUNT - 1}: stop some servers"
    )


def free_ports(count: int) -> list[int]:
    """Pick that many different ones; see `free_port`."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)


def reach(port: int, seconds: float = 2.0) -> str:
    """Connect to a server that requires authentication; returns an empty version.

    seconds: timeout. Raises NotYetError if no server listens.
    """
    try:
        socket.create_connection((LOOPBACK, port), timeout=seconds).close()
    except OSError as error:
        raise NotYetError(f"connecting to {LOOPBACK}:{port}: {error}") from error
    return ""


def ask_version(port: int, seconds: float = 2.0) -> str:
    """Send `version` in the memcached text protocol.

    seconds: how long each network step may take.
    Returns the version, e.g. `1.6.18`. Raises NotYetError without a reply or with another one.
    """
    try:
        with socket.create_connection((LOOPBACK, port), timeout=seconds) as connection:
            connection.sendall(b"version\r\n")
            with connection.makefile("rb") as lines:
                line = lines.readline(_MAX_LINE)
    except OSError as error:
        raise NotYetError(f"`version` request to {LOOPBACK}:{port}: {error}") from error
    if not line.startswith(b"VERSION ") or not line.endswith(b"\r\n"):
        raise NotYetError(f"`version` request to {LOOPBACK}:{port}: the reply is {line!r}")
    return line[len(b"VERSION ") :].decode("latin-1").strip()
