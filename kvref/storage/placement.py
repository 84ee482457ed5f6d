"""Which store has the rows of which mapping: `[[store]]` and `[[mapping]]` of a configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
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
        mappings: the names of its stores, by the name of each mapping as the file has it: one, or those of its shards.
    """

    dsns: dict[str, str]
    mappings: dict[str, tuple[str, ...]]


def shard_of(names: Sequence[str], key: bytes) -> int:
    """Return the number of the shard of a key by rendezvous hashing: its name and the key have the highest hash.

    A new shard takes over about 1/N of the keys, and no other key moves. The hash depends on nothing else: each process
    and version of Python returns the same.

    Args:
        names: of the shards' stores, in any order.
        key: what equal keys have in common, see `several.key_bytes`.
    """
    hashes = [blake2b(key, digest_size=8, key=name.encode()).digest() for name in names]
    return max(range(len(names)), key=lambda number: (hashes[number], names[number]))


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
    placed: dict[str, tuple[str, ...]] = {}
    for each in mappings:
        name, of = _stores_of(each)
        if name in placed:
            raise ConfigError(f"[[mapping]] name {name!r} is there twice: write one [[mapping]] for each mapping")
        for store in of:
            if store not in dsns:
                raise ConfigError(
                    f"[[mapping]] {name!r}: store {store!r}: no [[store]] has this name{suggestion(store, dsns)}:"
                    f" choose from {', '.join(dsns)}"
                )
        placed[name] = of
    return Placement(dsns, placed)


def _stores_of(given: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the name of the mapping of a table `[[mapping]]`, and the names of its stores."""
    shards = given.get("stores")
    if shards is None:
        name, store = _texts("mapping", given, ("name", "store"))
        return name, (store,)
    (name,) = _texts("mapping", {key: value for key, value in given.items() if key != "stores"}, ("name",))
    texts = isinstance(shards, list) and all(isinstance(each, str) for each in shards)
    if not texts or len(set(shards)) < max(2, len(shards)):
        raise ConfigError(
            f"[[mapping]] {name!r}: stores = {shards!r}: write a list of two or more names, each once; for one store,"
            ' store = "NAME"'
        )
    return name, tuple(shards)


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
