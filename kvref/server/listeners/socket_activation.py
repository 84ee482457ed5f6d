"""Sockets that a service manager has opened for this process (sd_listen_fds(3))."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kvref.errors import ConfigError

FIRST: Final = 3
METRICS: Final = "metrics"  # FileDescriptorName= of the socket for HTTP
_VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


@dataclass(frozen=True, slots=True)
class Activated:
    """What was passed, not blocking and not passed on; empty where nothing was.

    Args:
        clients: sockets for the memcached protocols.
        metrics: sockets for HTTP.
    """

    clients: list[socket.socket] = field(default_factory=list)
    metrics: list[socket.socket] = field(default_factory=list)


def take(environment: Mapping[str, str] = os.environ) -> Activated:
    """Take the sockets that are meant for this process; to be called once.

    Raises:
        ConfigError: the variables are none of sd_listen_fds(3), or a descriptor is no listening stream socket.
    """
    pid, count, names = (environment.get(name, "") for name in _VARIABLES)
    for name in _VARIABLES:
        os.environ.pop(name, None)
    if not (pid and count) or pid != str(os.getpid()):
        return Activated()
    if not (count.isascii() and count.isdigit() and len(count) < 5):
        raise ConfigError(f"LISTEN_FDS={count!r}: expected a number of file descriptors: see sd_listen_fds(3)")
    named = names.split(":") if names else []
    taken = Activated()
    for number in range(int(count)):
        name = named[number] if number < len(named) else "unknown"
        (taken.metrics if name == METRICS else taken.clients).append(_socket(FIRST + number, name))
    return taken


def _socket(descriptor: int, name: str) -> socket.socket:
    what = f"descriptor {descriptor} ({name}) from the service manager"
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        taken = socket.socket(fileno=descriptor)
        listens = taken.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise ConfigError(f"{what}: {error.strerror}: pass a socket with ListenStream=") from error
    if taken.type != socket.SOCK_STREAM or not listens:
        taken.detach()
        raise ConfigError(f"{what} is not a listening stream socket: pass a socket with ListenStream= and Accept=no")
    taken.settimeout(0)
    return taken


def where(listener: socket.socket) -> str:
    """Return the address of a socket, as a log shows it."""
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{name if isinstance(name, str) else name.decode(errors='replace')}"
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
