"""Which store has the rows of which mapping: `[[store]]` and `[[mapping]]` of a configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from kvref.errors import ConfigError, suggestion
from kvref.storage.base import without_password
from kvref.storage.sqlite.file import SCHEME as SQLITE
from kvref.storage.sqlite.file import path_of
from kvref.storage.stores import scheme_of

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class Placement:
    """Named stores, and the mappings that are not in the first one.

    Args:
        dsns: of the stores, by name; the first one has the options and the default mapping.
        mappings: the name of its store, by the name of each mapping as the file has it.
    """

    dsns: dict[str, str]
    mappings: dict[str, str]


def placement(stores: list[dict[str, Any]], mappings: list[dict[str, Any]]) -> Placement | None:
    """Return where the tables `[[store]]` and `[[mapping]]` place mappings; None if there is no `[[store]]`.

    Raises:
        ConfigError: one of them is invalid; the text names the value and the fix.
    """
    if not stores:
        if mappings:
            raise ConfigError("[[mapping]] names the store of a mapping: write a table [[store]] for each store first")
        return None
    dsns: dict[str, str] = {}
    for each in stores:
        name, dsn = _texts("store", each, ("name", "dsn"))
        if not _NAME.fullmatch(name):
            raise ConfigError(f"[[store]] name {name!r}: write a letter and up to 39 letters, digits, - or _")
        if name in dsns:
            raise ConfigError(f"[[store]] name {name!r} is there twice: give each store its own name")
        scheme_of(dsn)
        same = next((other for other, given in dsns.items() if _database(given) == _database(dsn)), None)
        if same is not None:
            raise ConfigError(
                f"[[store]] {name!r} and {same!r} have the same dsn {without_password(dsn)!r}: write one [[store]] for"
                " each database"
            )
        dsns[name] = dsn
    placed: dict[str, str] = {}
    for each in mappings:
        name, store = _texts("mapping", each, ("name", "store"))
        if name in placed:
            raise ConfigError(f"[[mapping]] name {name!r} is there twice: a mapping is in one store")
        if store not in dsns:
            raise ConfigError(
                f"[[mapping]] {name!r}: store = {store!r}: no [[store]] has this name{suggestion(store, dsns)}: choose"
                f" one of {', '.join(dsns)}"
            )
        placed[name] = store
    return Placement(dsns, placed)


def _texts(table: str, given: dict[str, Any], keys: Iterable[str]) -> list[str]:
    """Return the values of a table that has just these keys, each with a text that is not empty."""
    form = f"write {' and '.join(keys)}, each with a text"
    for key in given:
        if key not in keys:
            raise ConfigError(f"[[{table}]] has an unknown key {key!r}{suggestion(key, keys)}: {form}")
    found = []
    for key in keys:
        value = given.get(key)
        if not isinstance(value, str) or not value:
            cause = f"{key} = {value!r}" if key in given else f"no {key}"
            raise ConfigError(f"[[{table}]] with {cause}: {form}")
        found.append(value)
    return found


def _database(dsn: str) -> str:
    """Return what two DSNs of the same database have in common, as far as a DSN shows it."""
    return str(path_of(dsn).resolve()) if dsn.startswith(SQLITE) else dsn
