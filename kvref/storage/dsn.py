"""From a DSN to the store it names."""

from __future__ import annotations

from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.storage import mysql_login, sqlite
from kvref.storage.mysql import MySQLStore
from kvref.storage.sqlite import SQLiteStore


def open_store(dsn: str, profile: Profile, lock_wait: float) -> SQLiteStore | MySQLStore:
    """Open the store of a DSN; a MySQL server is not spoken to yet.

    Args:
        dsn: sqlite:///PATH or mysql://USER@HOST/.
        profile: see the stores.
        lock_wait: how long a write waits for another writer, in seconds.

    Raises:
        ConfigError: neither.
        StoreError: the file cannot be opened.
    """
    if dsn.startswith(mysql_login.SCHEME):
        return MySQLStore(mysql_login.parse(dsn), profile, lock_wait)
    if not dsn.startswith(sqlite.SCHEME):
        raise ConfigError(f"store {mysql_login.without_password(dsn)!r}: write sqlite:///PATH or mysql://USER@HOST/")
    return SQLiteStore(sqlite.path_of(dsn), profile)
