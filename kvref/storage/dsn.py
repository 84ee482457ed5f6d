"""From a DSN to the store it names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.storage.sqlite import SQLiteStore
from kvref.storage.sqlite_file import SCHEME, path_of

if TYPE_CHECKING:
    from kvref.storage.mysql import MySQLStore

MYSQL: Final = "mysql://"
_IN_QUERY: Final = re.compile(r"([?&](?:password|passwd|pwd)=)[^&]*", re.IGNORECASE)


def open_store(dsn: str, profile: Profile, lock_wait: float) -> SQLiteStore | MySQLStore:
    """Open the store of a DSN; a MySQL server is not spoken to yet.

    Args:
        dsn: sqlite:///PATH or mysql://USER@HOST/.
        profile: see the stores.
        lock_wait: how long a write waits for another writer, in seconds.

    Raises:
        ConfigError: neither, or the extra `mysql` is not installed.
        StoreError: the file cannot be opened.
    """
    if dsn.startswith(MYSQL):
        return _mysql(dsn, profile, lock_wait)
    if not dsn.startswith(SCHEME):
        raise ConfigError(f"store {without_password(dsn)!r}: write sqlite:///PATH or mysql://USER@HOST/")
    return SQLiteStore(path_of(dsn), profile)


def _mysql(dsn: str, profile: Profile, lock_wait: float) -> MySQLStore:
    try:
        from kvref.storage import mysql, mysql_login  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as lack:
        raise ConfigError(f"store mysql://…: {lack}: install kvref[mysql]") from lack
    return mysql.MySQLStore(mysql_login.parse(dsn), profile, lock_wait)


def without_password(dsn: str) -> str:
    """Return a DSN as it may be shown: without what stands, or may be meant, as a password in it."""
    dsn = _IN_QUERY.sub(r"\1…", dsn)
    head, at, tail = dsn.rpartition("@")
    scheme, slashes, login = (head or tail).partition("://")
    user, colon, word = login.partition(":")
    if not at and word.rstrip("/").isdecimal():
        return dsn  # a port
    return f"{scheme}{slashes}{user}:…{at}{tail if at else ''}" if colon else dsn
