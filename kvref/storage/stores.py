"""The stores by the scheme of their DSN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.storage.dsn import MYSQL, without_password
from kvref.storage.sqlite.file import SCHEME, path_of
from kvref.storage.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from kvref.storage.mysql.store import MySQLStore


def open_store(dsn: str, profile: Profile, lock_wait: float) -> SQLiteStore | MySQLStore:
    """Open the store of a DSN; a MySQL server is not contacted yet.

    Args:
        dsn: sqlite:///PATH or mysql://USER@HOST/.
        profile: profile of the server.
        lock_wait: lock wait timeout of a write in seconds.

    Raises:
        ConfigError: another scheme, or the extra `mysql` is not installed.
        StoreError: the file cannot be opened.
    """
    if dsn.startswith(MYSQL):
        return _mysql(dsn, profile, lock_wait)
    if not dsn.startswith(SCHEME):
        raise ConfigError(f"store {without_password(dsn)!r}: write sqlite:///PATH or mysql://USER@HOST/")
    return SQLiteStore(path_of(dsn), profile)


def _mysql(dsn: str, profile: Profile, lock_wait: float) -> MySQLStore:
    try:
        # An extra.
        from kvref.storage.mysql.login import parse  # noqa: PLC0415
        from kvref.storage.mysql.store import MySQLStore  # noqa: PLC0415
    except ModuleNotFoundError as lack:
        raise ConfigError(f"store mysql://…: {lack}: install kvref[mysql]") from lack
    return MySQLStore(parse(dsn), profile, lock_wait)
