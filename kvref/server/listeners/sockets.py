"""Sockets that are listened on: one for each address of a host, as asyncio has them."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any, Final

from kvref.addresses import Address
from kvref.errors import ConfigError
from kvref.server.listeners.unix_sockets import Permissions, listen_at

BACKLOG: Final = 1024
PAUSE: Final = 1.0  # seconds without new connections where the system has no descriptor for them
DEFAULT: Final = Permissions()
_AT_ONCE: Final = 64  # connections taken before anything else is looked at
_FULL: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def cannot_listen(address: Address, error: OSError | UnicodeError) -> ConfigError:
    """Return the error of an address that cannot be listened on."""
    # A name that is not found has only its own text.
    known = isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno
    cause = os.strerror(known) if known else str(error)
    return ConfigError(f"cannot listen on {address}: {cause}: choose another --listen address")


def listen(address: Address, permissions: Permissions = DEFAULT) -> list[socket.socket]:
    """Listen on an address; no other process can listen there too.

    Args:
        address: where.
        permissions: who may connect to a unix socket.

    Raises:
        ConfigError: it cannot be listened on.
    """
    if address.path:
        try:
            return [listen_at(address.path, permissions, BACKLOG)]
        except OSError as error:
            raise cannot_listen(address, error) from error
    found: list[socket.socket] = []
    try:
        for family, kind, protocol, _, place in dict.fromkeys(_found(address)):
            listener = socket.socket(family, kind, protocol)
            found.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
            listener.settimeout(0)
    except (OSError, UnicodeError) as error:
        for each in found:
            each.close()
        raise cannot_listen(address, error) from error
    return found


def _found(address: Address) -> list[tuple[Any, ...]]:
    # The same flags for who listens and who looks: without AI_PASSIVE the host * is the loopback, with it any address.
    return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)


def arrivals(place: socket.socket) -> Iterator[socket.socket]:
    """Accept connections that wait, not more than a turn's.

    Args:
        place: listened on, not blocking.

    Raises:
        OSError: the system has no descriptor for the next one.
    """
    for _ in range(_AT_ONCE):
        try:
            connection, _ = place.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno in _FULL:
                raise
            continue  # that client is gone again: accept(2)
        yield connection


def is_local(address: Address) -> bool:
    """Return whether only this machine can reach an address; False if there is no such host."""
    if address.path:
        return True
    try:
        return all(_is_loopback(place[0]) for *_, place in _found(address))
    except (OSError, UnicodeError):
        return False  # who listens says why it cannot


def on_loopback(listener: socket.socket) -> bool:
    """Return whether only this machine reaches a socket that is listened on."""
    if listener.family == socket.AF_UNIX:
        return True
    return _is_loopback(listener.getsockname()[0])


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback
