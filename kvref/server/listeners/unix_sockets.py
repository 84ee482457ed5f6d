"""Unix sockets that are listened on: the mode and owner of their file say who may connect."""

from __future__ import annotations

import grp
import os
import pwd
import re
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvref.errors import ConfigError

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
    """Read mode and owner as a configuration writes them.

    Args:
        mode: octal digits, such as 0660; None: 0700.
        owner: USER, USER:GROUP or :GROUP, names or numbers; None: unchanged.

    Raises:
        ConfigError: digits that are no mode, or a user or group that does not exist.
    """
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
        raise ConfigError(f"socket_owner {owner!r}: {error.args[0]}: name an existing user and group") from error


def _user(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else pwd.getpwnam(text).pw_uid


def _group(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else grp.getgrnam(text).gr_gid


def listen_at(path: str, allowed: Permissions, backlog: int) -> socket.socket:
    """Listen on a unix socket. A stale socket file is replaced.

    Args:
        path: path of its file.
        allowed: mode and owner.
        backlog: number of connections that can wait to be accepted.

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


@dataclass(frozen=True, slots=True)
class SocketFile:
    """The file of a unix socket that is listened on here.

    Args:
        path: absolute, so that it is found again after a change of the working directory.
        device: number of its file system.
        inode: number of the file there.
    """

    path: str
    device: int
    inode: int

    def remove(self) -> None:
        """Remove the file, unless another server has replaced it."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        if (found.st_dev, found.st_ino) == (self.device, self.inode):
            Path(self.path).unlink()


def file_of(path: str) -> SocketFile:
    """Return the file of a unix socket that exists."""
    found = os.lstat(path)
    return SocketFile(str(Path(path).absolute()), found.st_dev, found.st_ino)
