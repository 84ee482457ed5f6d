"""Loopback ports: find a free one, and read the version of the memcached server at one."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from kvref.errors import TargetError, cause_of

LOOPBACK = "127.0.0.1"
# Below the kernel's ephemeral range (32768 and up by default): no outgoing connection takes a port that was just found.
_FIRST, _COUNT = 20000, 12000
_ATTEMPTS = 100
_FOLDER = Path("/tmp")  # noqa: S108 - whatever TMPDIR is, since ports are of the whole machine
_RESERVED = 120.0  # seconds, more than a server takes to listen
# Bytes read of one line.
_MAX_LINE = 8192


class NotYetError(Exception):
    """The server does not answer yet; the text says what happened instead."""


def free_port() -> int:
    """Return a port, see `free_ports`."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return different TCP ports of the loopback interface on which no server listens, and reserve them.

    Other processes of the same user get none of them for two minutes: servers that start at the same moment do not race
    for one.

    Args:
        count: number of ports, 1 or more.

    Raises:
        TargetError: too few ports are free.
    """
    with _reservations_file() as file:
        now = time.time()  # in the lock: a reservation of another process is never later
        reserved = {port: at for port, at in _reserved(file.read()) if 0 <= now - at < _RESERVED}
        found: list[int] = []
        for _ in range(_ATTEMPTS * count):
            port = _FIRST + secrets.randbelow(_COUNT)
            if port in reserved or not _is_free(port):
                continue
            found.append(port)
            reserved[port] = now
            if len(found) == count:
                file.seek(0)
                file.truncate()
                file.write("".join(f"{port} {at}\n" for port, at in reserved.items()))
                return found
    raise TargetError(
        f"no free port on {LOOPBACK} in {_ATTEMPTS} draws from {_FIRST} to {_FIRST + _COUNT - 1}: stop some servers"
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _reserved(text: str) -> Iterator[tuple[int, float]]:
    # A process that was killed may have left half a line.
    for port, at in re.findall(r"^(\d+) (\d+\.\d+)$", text, re.MULTILINE):
        yield int(port), float(at)


@contextmanager
def _reservations_file() -> Iterator[TextIO]:
    """Open and lock the file of reserved ports, which all processes of the user share."""
    path = _FOLDER / f".kvref-ports-{os.getuid()}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield file


def reach(port: int, seconds: float = 2.0) -> str:
    """Connect to a server that requires authentication; returns an empty version.

    seconds: timeout. Raises NotYetError if no server listens.
    """
    try:
        socket.create_connection((LOOPBACK, port), timeout=seconds).close()
    except OSError as error:
        raise NotYetError(f"connecting to {LOOPBACK}:{port}: {cause_of(error)}") from error
    return ""


def version_at(port: int, seconds: float = 2.0) -> str:
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
        raise NotYetError(f"`version` request to {LOOPBACK}:{port}: {cause_of(error)}") from error
    if not line.startswith(b"VERSION ") or not line.endswith(b"\r\n"):
        raise NotYetError(f"`version` request to {LOOPBACK}:{port}: the reply is {line!r}")
    return line[len(b"VERSION ") :].decode("latin-1").strip()
