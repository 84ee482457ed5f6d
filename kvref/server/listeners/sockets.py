"""Sockets that are listened on: TCP, Unix sockets with owner and mode, and those of a service manager."""

from __future__ import annotations

import errno
import fcntl
import grp
import ipaddress
import os
import pwd
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kvref.addresses import Address, format_address
from kvref.errors import ConfigError

FIRST: Final = 3
METRICS: Final = "metrics"  # FileDescriptorName= of the socket for HTTP
_VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


@dataclass(frozen=True, slots=True)
class Activated:
    """What was passed, not blocking and not passed on; empty where nothing was."""

    clients: list[socket.socket] = field(default_factory=list)
    metrics: list[socket.socket] = field(default_factory=list)


def take(environment: Mapping[str, str] = os.environ) -> Activated:
    """Take the sockets that are meant for this process; to be called once.

    Raises:
        ConfigError: the variables are not those of sd_listen_fds(3), or a descriptor is not a listening stream socket.
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
        return format_address(name if isinstance(name, str) else name.decode(errors="replace"))
    return format_address(name[:2])


_MODE: Final = re.compile("0?[0-7]{3}")
_UNCHANGED: Final = -1  # of chown(2)


@dataclass(frozen=True, slots=True)
class Permissions:
    """Who may connect to a unix socket.

    Args:
        mode: permission bits; connecting needs the permission to write. 0700 is memcached's default for -a.
        user: number of the owner; -1: the user of the process.
        group: number; -1: the group of the process.
    """

    mode: int = 0o700
    user: int = _UNCHANGED
    group: int = _UNCHANGED


def permissions(mode: str | None, owner: str | None) -> Permissions:
    """Read octal mode and owner (USER, USER:GROUP or :GROUP) of a unix socket; raises ConfigError if invalid."""
    if mode is not None and not _MODE.fullmatch(mode):
        raise ConfigError(f"socket_mode {mode!r}: write permissions in octal digits, for example 0660")
    user, _, group = (owner or "").partition(":")
    if owner is not None and not (user or group):
        raise ConfigError(f"socket_owner {owner!r}: write USER, USER:GROUP or :GROUP")
    try:
        return Permissions(
            Permissions().mode if mode is None else int(mode, 8),
            _user(user) if user else _UNCHANGED,
            _group(group) if group else _UNCHANGED,
        )
    except KeyError as error:
        raise ConfigError(f"socket_owner {owner!r}: it does not exist: name an existing user and group") from error


def _user(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else pwd.getpwnam(text).pw_uid


def _group(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else grp.getgrnam(text).gr_gid


def listen_at(path: str, allowed: Permissions, backlog: int) -> socket.socket:
    """Listen on a unix socket. A stale socket file is replaced.

    Raises:
        OSError: another file has that path, a server listens there, or mode and owner cannot be set.
    """
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o777)  # no client can connect before mode and owner are set
    try:
        listener.bind(path)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(mask)
    try:
        if (allowed.user, allowed.group) != (_UNCHANGED, _UNCHANGED):
            os.chown(path, allowed.user, allowed.group)
        Path(path).chmod(allowed.mode)
        listener.listen(backlog)
    except BaseException:
        Path(path).unlink()
        listener.close()
        raise
    listener.settimeout(0)
    return listener


def _remove_stale(path: str) -> None:
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    # bind(2) says of anything else that the address is in use.
    if not stat.S_ISSOCK(kind):
        return
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
        except (TimeoutError, BlockingIOError):
            return  # the backlog is full: a server listens there


BACKLOG: Final = 1024
PAUSE: Final = 1.0  # seconds without new connections where the system has no descriptor for them
DEFAULT: Final = Permissions()
_AT_ONCE: Final = 64  # connections accepted in one turn
_FULL: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def listen(address: Address, permissions: Permissions = DEFAULT) -> list[socket.socket]:
    """Listen on an address, where no other process can listen then; raises ConfigError if that fails."""
    found: list[socket.socket] = []
    try:
        if address.path:
            return [listen_at(address.path, permissions, BACKLOG)]
        for family, kind, protocol, _, endpoint in dict.fromkeys(_found(address)):
            listener = socket.socket(family, kind, protocol)
            found.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(endpoint)
            listener.listen(BACKLOG)
            listener.settimeout(0)
    except (OSError, UnicodeError) as error:
        for each in found:
            each.close()
        # A name that is not found has only its own text.
        known = isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno
        cause = os.strerror(known) if known else str(error)
        raise ConfigError(f"cannot listen on {address}: {cause}: choose another --listen address") from error
    return found


def _found(address: Address) -> list[tuple[Any, ...]]:
    # Both uses need the same flags: without AI_PASSIVE the host * is the loopback, with it any address.
    return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)


def arrivals(listening: socket.socket) -> Iterator[socket.socket]:
    """Yield connections that wait, not more than a turn's; raises OSError if the system has no descriptor for one."""
    for _ in range(_AT_ONCE):
        try:
            connection, _ = listening.accept()
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
        return all(_is_loopback(endpoint[0]) for *_, endpoint in _found(address))
    except (OSError, UnicodeError):
        return False  # listening reports the error


def on_loopback(listener: socket.socket) -> bool:
    """Return whether only this machine reaches a socket that is listened on."""
    if listener.family == socket.AF_UNIX:
        return True
    return _is_loopback(listener.getsockname()[0])


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback
