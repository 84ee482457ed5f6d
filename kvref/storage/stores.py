"""The table of stores by the scheme of their DSN: a new store registers itself with one row here."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from kvref.errors import ConfigError, install
from kvref.profiles import Profile
from kvref.storage.base import MYSQL, Scheme, Store, without_password
from kvref.storage.memory import SCHEME as MEMORY
from kvref.storage.memory import MemoryStore
from kvref.storage.sqlite.file import SCHEME as SQLITE
from kvref.storage.sqlite.file import path_of
from kvref.storage.sqlite.store import SQLiteStore


def _mysql(dsn: str, profile: Profile, lock_wait: float) -> Store:
    try:
        # An extra.
        from kvref.storage.mysql.login import parse  # noqa: PLC0415
        from kvref.storage.mysql.store import MySQLStore  # noqa: PLC0415
    except ModuleNotFoundError as lack:
        raise ConfigError(f"store mysql://…: {lack}: {install('mysql')}") from lack
    return MySQLStore(parse(dsn), profile, lock_wait)


SCHEMES: Final = (
    Scheme(SQLITE, "sqlite:///PATH", lambda dsn, profile, _: SQLiteStore(path_of(dsn), profile)),
    Scheme(MYSQL, "mysql://USER@HOST/", _mysql, transactions=True),
    Scheme(MEMORY, MEMORY, lambda dsn, profile, _: MemoryStore(dsn, profile), volatile=True),
)


def scheme_of(dsn: str) -> Scheme:
    """Return the scheme of a DSN; raises ConfigError if no store has it."""
    found = next((each for each in SCHEMES if dsn.startswith(each.prefix)), None)
    if found is None:
        *forms, last = (each.form for each in SCHEMES)
        raise ConfigError(f"store {without_password(dsn)!r}{_meant(dsn)}: write {', '.join(forms)} or {last}")
    return found


def _meant(dsn: str) -> str:
    """Return a hint what an unknown DSN may mean: another scheme, or a file without one; "" if it is like neither."""
    word, _, rest = dsn.partition(":")
    schemes = {each.prefix.partition(":")[0]: each.prefix for each in SCHEMES}
    name = word.partition("+")[0].casefold()
    near = next(iter(get_close_matches({"mariadb": "mysql"}.get(name, name), schemes, 1)), "") if rest else ""
    if near:
        file = rest if schemes[near] == SQLITE and not rest.startswith("//") else ""
        return f", did you mean {schemes[near]}{file}"
    if "://" in dsn:
        return ""
    return f", did you mean {schemes.get(name, f'{SQLITE}{dsn}')}"


def open_store(dsn: str, profile: Profile, lock_wait: float) -> Store:
    """Open the store of a DSN; no connection to a MySQL server is made yet.

    A write waits `lock_wait` seconds for another writer.

    Raises:
        ConfigError: no store has that scheme, the DSN is invalid, or the extra `mysql` is not installed.
        StoreError: the file cannot be opened.
    """
    return scheme_of(dsn).open(dsn, profile, lock_wait)
