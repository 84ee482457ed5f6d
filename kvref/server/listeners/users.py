"""Users of a listener: memcached's file of `user:password` lines (memcached -Y)."""

from __future__ import annotations

import hmac
import logging
import stat
from pathlib import Path
from typing import Final

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import ConfigError

_log = logging.getLogger("kvref.server")

MAX_LINE: Final = 2048  # bytes of `user password`
MAX_BYTES: Final = 64 << 20
_NOBODY: Final = b"\0"


class Users:
    """Passwords by user.

    Args:
        passwords: of each user, not empty.
    """

    def __init__(self, passwords: dict[bytes, bytes]) -> None:
        self._passwords = passwords

    def knows(self, user: bytes, password: bytes) -> bool:
        """Return whether this is the password of that user, in a time that depends on neither."""
        right = self._passwords.get(user)
        same = hmac.compare_digest(_NOBODY if right is None else right, password)
        return same and right is not None


def read_users(path: Path) -> Users:
    """Read a file of users; warn if other users of the machine can read it.

    Args:
        path: one `user:password` in each line, at most LONGEST bytes; no blank in a user, no NUL in either.

    Raises:
        ConfigError: it cannot be read, has no user, a line of another form or a user twice; the text holds no password.
    """
    try:
        text, mode = documents.read_bytes(path, MAX_BYTES), path.stat().st_mode
    except DocumentError as error:
        raise ConfigError(f"auth_file {str(path)!r}: {error}: name a file of user:password lines") from error
    except OSError as error:
        raise ConfigError(f"auth_file {path}: {error.strerror}: name a readable file of user:password lines") from error
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        _log.warning("auth_file %s: other users of this machine can read it: run chmod 600", path)
    passwords: dict[bytes, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line:
            continue
        user, _, password = line.partition(b":")
        if not (user and password) or b" " in user or b"\0" in line or len(line) > MAX_LINE:
            form = f"write user:password, no blank in the user, no NUL, at most {MAX_LINE} bytes"
            raise ConfigError(f"auth_file {path}, line {number}: {form}")
        if user in passwords:
            raise ConfigError(f"auth_file {path}, line {number}: duplicate user: keep one line per user")
        passwords[user] = password
    if not passwords:
        raise ConfigError(f"auth_file {path}: no users: write user:password lines")
    return Users(passwords)
