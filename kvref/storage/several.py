"""The tables of several stores as those of one: which store has which mapping, and the directory of all of them.

A mapping is in one store, or sharded by key over several: the session then has the mapping of the first of them, and
each operation gets the mapping of the store that has its key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from kvref.engine.mapping import Column, Directory, Kind, Mapping
from kvref.engine.operations import Cell
from kvref.engine.values import to_bytes
from kvref.errors import ConfigError, Part, StoreError, choices, suggestion
from kvref.profiles import Profile
from kvref.storage.base import MYSQL, MappedTables, Store, counted_cas_numbers, without_password
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
        key: what equal keys have in common, see `key_bytes`.
    """
    hashes = [blake2b(key, digest_size=8, key=name.encode()).digest() for name in names]
    return max(range(len(names)), key=lambda number: (hashes[number], names[number]))


def placement(
    stores: list[dict[str, Any]], mappings: list[dict[str, Any]], part: Part = nullcontext
) -> Placement | None:
    """Return where the tables `[[store]]` and `[[mapping]]` place mappings; None if there is no `[[store]]`.

    Args:
        stores: each `[[store]]`.
        mappings: each `[[mapping]]`.
        part: of the check of each table.

    Raises:
        ConfigError: one of them is invalid; the text names the value and the fix.
    """
    if not stores:
        if mappings:
            raise ConfigError("[[mapping]] names the store of a mapping: write a table [[store]] for each store first")
        return None
    dsns: dict[str, str] = {}
    names: set[str] = set()  # also of stores whose other values are invalid
    for each in stores:
        with part():
            name, dsn = _texts("store", each, ("name", "dsn"))
            names.add(name)
            if not _NAME.fullmatch(name):
                raise ConfigError(f"[[store]] name {name!r}: write a letter and up to 39 letters, digits, - or _")
            if name in dsns:
                raise ConfigError(f"[[store]] name {name!r} is there twice: give each store its own name")
            scheme_of(dsn)
            same = next((other for other, given in dsns.items() if _database(given) == _database(dsn)), None)
            if same is not None:
                raise ConfigError(
                    f"[[store]] {name!r} and {same!r} have the same dsn {without_password(dsn)!r}: write one [[store]]"
                    " for each database"
                )
            dsns[name] = dsn
    placed: dict[str, tuple[str, ...]] = {}
    for each in mappings:
        with part():
            name, of = _stores_of(each)
            if name in placed:
                raise ConfigError(f"[[mapping]] name {name!r} is there twice: write one [[mapping]] for each mapping")
            if unknown := [store for store in of if store not in names]:
                raise ConfigError(
                    f"[[mapping]] {name!r}: store {unknown[0]!r}: no [[store]] has this name{choices(unknown[0], dsns)}"
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


FIRST: Final = 0  # the store of the options, the default mapping, and all mappings that no other store has


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of one mapping.

    Args:
        numbers: of their stores.
        names: of these stores.
        mappings: the mapping of each store; None: the one that the session has, of the first one.
    """

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    mappings: tuple[Mapping | None, ...] = field(compare=False)

    def all_of(self, mapping: Mapping) -> list[tuple[int, Mapping]]:
        """Return the number of each store with its mapping; `mapping` is the session's."""
        return [(number, each or mapping) for number, each in zip(self.numbers, self.mappings, strict=True)]

    def of_key(self, mapping: Mapping, key: Cell) -> int:
        """Return which of `all_of` has a key; arguments as of `all_of` and `key_bytes`."""
        return shard_of(self.names, key_bytes(mapping, key))


def key_bytes(mapping: Mapping, key: Cell) -> bytes:
    """Return what equal keys of a sharded mapping have in common.

    Args:
        mapping: `refuse_shards` accepts it.
        key: content of its key column.
    """
    data = to_bytes(key)
    # Many collations compare texts without the blanks at their end.
    return data.rstrip(b" ") if mapping.key.kind is Kind.TEXT else data


def refuse_shards(names: Sequence[str], found: Sequence[Mapping]) -> None:
    """Refuse mappings that cannot be shards of one mapping.

    Args:
        names: of their stores.
        found: the mapping of each store.

    Raises:
        ConfigError: they differ, or keys with different bytes can be equal.
    """
    first, where = found[0], f"[[mapping]] {found[0].name!r}"
    for name, each in zip(names, found, strict=True):
        if _columns(each) != _columns(first):
            raise ConfigError(
                f"{where}: store {name} maps other columns than store {names[0]}: give the tables of all shards the"
                " same definition"
            )
    key = first.key
    collation = key.collation.lower()
    if key.kind is Kind.TEXT and collation != "binary" and not collation.endswith("_bin"):
        raise ConfigError(
            f"{where}: it is sharded, but to the collation {key.collation} of its key {key.name}, keys with different"
            " bytes can be equal: use a collation whose name ends in _bin, or VARBINARY"
        )
    if first.beginning:
        raise ConfigError(
            f"{where}: it is sharded, but only a prefix of its key {key.name} is indexed: index the whole column"
        )


def _columns(mapping: Mapping) -> list[Column | None]:
    """Return the mapped columns, without what only their store needs."""
    columns = mapping.key, *mapping.values, mapping.flags, mapping.cas, mapping.expiry
    return [
        each and replace(each, codec=None, surrogates=True, collation=each.collation if each.kind is Kind.TEXT else "")
        for each in columns
    ]


class SeveralStores:
    """Mapped tables of several stores, see `MappedTables`.

    Args:
        placement: names of the stores, and which of them has which mapping.
        stores: opened, in the order of their names.
        profile: decides where cas numbers start.

    Attributes:
        names: of the stores.
        stores: the stores.
    """

    def __init__(self, placement: Placement, stores: Sequence[Store], profile: Profile) -> None:
        self.names = tuple(placement.dsns)
        self.stores = tuple(stores)
        self._dsns = tuple(placement.dsns.values())
        self.dsn = ", ".join(f"{name} {store.dsn}" for name, store in zip(self.names, stores, strict=True))
        self.reads = frozenset[str]().union(*[each.reads for each in stores])
        self.problems: list[str] = []
        self._profile = profile
        self._mappings = placement.mappings
        self._placed: dict[str, tuple[int, ...]] = {}  # numbers by the name of a mapping, as the first store folds it
        self._fold: Callable[[str], str] = str
        self._numbers = {"": FIRST} | {name: number for number, name in enumerate(self.names)}  # by `Mapping.store`

    @property
    def when_committed(self) -> Callable[[float], None] | None:
        """Return what each store calls after a commit."""
        return self.stores[FIRST].when_committed

    @when_committed.setter
    def when_committed(self, called: Callable[[float], None] | None) -> None:
        for each in self.stores:
            each.when_committed = called

    @property
    def sharded(self) -> str:
        """Return the name of a sharded mapping, empty if there is none."""
        return next((name for name, stores in self._mappings.items() if len(stores) > 1), "")

    def store_of(self, mapping: Mapping) -> int | None:
        """Return the number of the store of a mapping that `loaded` has seen, None if it is sharded."""
        return self._numbers.get(mapping.store)

    def shards_of(self, mapping: Mapping) -> Shards:
        """Return the shards of a mapping that `store_of` returns None for."""
        assert isinstance(mapping.shards, Shards)
        return mapping.shards

    def parts_of(self, mapping: Mapping) -> list[tuple[int, Mapping]]:
        """Return the number of each store of a mapping, with the mapping that this store has."""
        number = self.store_of(mapping)
        return self.shards_of(mapping).all_of(mapping) if number is None else [(number, mapping)]

    def stores_named(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the stores that have the mapping with a name, if there is such a mapping."""
        return self._placed.get(self._fold(name), (FIRST,))

    def loaded(self, numbers: tuple[int, ...], found: Sequence[Mapping]) -> Mapping:
        """Note what the stores of a mapping have read, and return the mapping of all of them.

        Raises:
            ConfigError: they cannot be shards of one mapping.
        """
        mapping = found[0]
        if len(numbers) == 1:
            if numbers[0] != FIRST:
                mapping.place_in(self.names[numbers[0]])
            return mapping
        names = tuple(self.names[number] for number in numbers)
        refuse_shards(names, found)
        mapping.shards = Shards(numbers, names, (None, *found[1:]))
        mapping.place_in(", ".join(names))
        return mapping

    @contextmanager
    def errors_of(self, number: int) -> Iterator[None]:
        """Let errors of the block name the store."""
        try:
            yield
        except (ConfigError, StoreError) as error:
            kind = ConfigError if isinstance(error, ConfigError) else StoreError
            raise kind(f"store {self.names[number]}: {error}") from error

    def read_directory(self) -> Directory:
        """Read the configuration of all stores, see `joined`; raises as `Store.read_directory`."""
        found = []
        for number, each in enumerate(self.stores):
            with self.errors_of(number):
                found.append(each.read_directory())
        return self.joined(found)

    def joined(self, found: Sequence[Directory]) -> Directory:
        """Return the configuration of the first store with the mappings of the others, and set `problems`.

        Args:
            found: what each store has read.

        Raises:
            ConfigError: no mapping is usable.
        """
        first = found[FIRST]
        self._compare_names(first.naming.fold)
        self.problems = list(self.stores[FIRST].problems)
        usable = [self.loaded((FIRST,), [each]) for each in first.usable if self.stores_named(each.name) == (FIRST,)]
        for name in self._mappings:
            numbers = self.stores_named(name)
            if numbers != (FIRST,):
                usable += self._usable(name, numbers, found)
        if not usable:
            raise ConfigError("\n  ".join(["no mapping is usable in its store:", *self.problems]))
        first.usable, first.parts = tuple(usable), tuple(found)
        self._choose_default(found)
        return self.adopt(first)

    def adopt(self, directory: Directory) -> Directory:
        """Use a configuration that `joined` has returned, here or in another process, and return it."""
        self._compare_names(directory.naming.fold)
        for store, part in zip(self.stores, directory.parts, strict=True):
            store.adopt(part)
        return directory

    def _compare_names(self, fold: Callable[[str], str]) -> None:
        self._fold = fold
        self._placed = {
            fold(name): tuple(self.names.index(each) for each in stores) for name, stores in self._mappings.items()
        }

    def _choose_default(self, found: Sequence[Directory]) -> None:
        """Make the mapping with the name of the first store's default one that of all, wherever it is placed."""
        first = found[FIRST]
        name = self._fold(first.default.name)
        default = next((each for each in first.usable if self._fold(each.name) == name), first.usable[0])
        for number, mapping in self.parts_of(default):
            found[number].default = mapping
        if default is not first.default:
            first.known.clear()
        first.default = default
        if not first.by_spelling:
            first.remember(default)

    def _usable(self, name: str, numbers: tuple[int, ...], found: Sequence[Directory]) -> list[Mapping]:
        """Return the mapping with a name; none if one of its stores has no usable row for it, which is a problem."""
        mappings = []
        for number in numbers:
            usable = found[number].usable
            mapping = next((each for each in usable if self._fold(each.name) == self._fold(name)), None)
            if mapping is not None:
                mappings.append(mapping)
                continue
            store = self.names[number]
            self.problems.append(
                f"[[mapping]] {name!r}: no usable row of containers in store {store} has this name: add one, or place"
                " the mapping in another store"
            )
            self.problems += [f"store {store}: {problem}" for problem in self.stores[number].problems]
        if len(mappings) < len(numbers):
            return []
        try:
            return [self.loaded(numbers, mappings)]
        except ConfigError as error:
            self.problems.append(str(error))
            return []

    def cas_numbers(self) -> Iterator[int]:
        """Return the counter of cas numbers, one for all stores."""
        return counted_cas_numbers(self._profile)

    def limit_row_cache(self, size: int, *, keeps_rows: bool = False) -> None:  # noqa: ARG002 - a placed mapping is another
        """Set the size of each store's row cache and empty it."""
        for each in self.stores:
            each.limit_row_cache(size)

    def follow_binary_log(self, staleness: float, mappings: Iterable[Mapping]) -> list[str]:
        """Cache the rows of each store mysql://, see `MappedTables`; raises ConfigError if there is none."""
        parts = [part for mapping in mappings for part in self.parts_of(mapping)]
        followed = [number for number, dsn in enumerate(self._dsns) if dsn.startswith(MYSQL)]
        if not followed:
            raise ConfigError(
                f"row_cache_binlog=1 and the stores {', '.join(self.names)}: none of them is mysql://, which has a"
                " binary log: leave it out"
            )
        found: list[str] = []
        for number in followed:
            own = [mapping for of, mapping in parts if of == number]
            with self.errors_of(number):
                sentences = self.stores[number].follow_binary_log(staleness, own)
            found += [f"store {self.names[number]}: {each}" for each in sentences]
        return found

    def missing_privileges(self, mappings: Iterable[Mapping]) -> list[str]:
        """Return the sentences of each store, see `MappedTables`."""
        parts = [part for mapping in mappings for part in self.parts_of(mapping)]
        found: list[str] = []
        for number, store in enumerate(self.stores):
            with self.errors_of(number):
                sentences = store.missing_privileges([mapping for of, mapping in parts if of == number])
            found += [f"store {self.names[number]}: {each}" for each in sentences]
        return found

    def numbers(self) -> dict[str, int]:
        """Return the sums of all stores, and of times the longest."""
        numbers: dict[str, int] = {}
        for each in self.stores:
            for name, number in each.numbers().items():
                before = numbers.get(name, 0)
                numbers[name] = max(before, number) if name.endswith("_us") else before + number
        return numbers

    def close(self) -> None:
        """Close each store, see `Store`."""
        with ExitStack() as stack:
            for each in self.stores:
                stack.callback(each.close)


def tables_of(placement: Placement, stores: Sequence[Store], profile: Profile) -> MappedTables:
    """Return opened stores, at least one, as the server uses them; arguments as of `SeveralStores`."""
    return SeveralStores(placement, stores, profile) if len(stores) > 1 else stores[0]
