"""The tables of several stores as those of one: which store has which mapping, and the directory of all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from kvref.engine.mapping import Directory, Mapping
from kvref.errors import ConfigError, Part, StoreError, choices, suggestion
from kvref.profiles import Profile
from kvref.storage.base import MYSQL, MappedTables, Store, counted_cas_numbers, without_password
from kvref.storage.sqlite.file import SCHEME as SQLITE
from kvref.storage.sqlite.file import path_of
from kvref.storage.stores import scheme_of

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class Placement:
    """DSNs by the names of stores, and for each mapping that is not in the first one the name of its store.

    The first store has the options and the default mapping.
    """

    dsns: dict[str, str]
    mappings: dict[str, str]


def placement(
    stores: list[dict[str, Any]], mappings: list[dict[str, Any]], part: Part = nullcontext
) -> Placement | None:
    """Return where the tables `[[store]]` and `[[mapping]]` place mappings; None if there is no `[[store]]`.

    Raises ConfigError in `part()` of the table that is invalid; the text names the value and the fix.
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
    placed: dict[str, str] = {}
    for each in mappings:
        with part():
            name, store = _texts("mapping", each, ("name", "store"))
            if name in placed:
                raise ConfigError(f"[[mapping]] name {name!r} is there twice: write one [[mapping]] for each mapping")
            if store not in names:
                raise ConfigError(
                    f"[[mapping]] {name!r}: store {store!r}: no [[store]] has this name{choices(store, dsns)}"
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


FIRST: Final = 0  # the store of the options, the default mapping, and all mappings that no other store has


class SeveralStores:
    """Mapped tables of several stores, see `MappedTables`; `stores` are opened, in the order of their `names`."""

    def __init__(self, placement: Placement, stores: Sequence[Store], profile: Profile) -> None:
        self.names = tuple(placement.dsns)
        self.stores = tuple(stores)
        self._dsns = tuple(placement.dsns.values())
        self.dsn = ", ".join(f"{name} {store.dsn}" for name, store in zip(self.names, stores, strict=True))
        self.reads = frozenset[str]().union(*[each.reads for each in stores])
        self.problems: list[str] = []
        self._profile = profile
        self._mappings = placement.mappings
        self._placed: dict[str, int] = {}  # numbers by the name of a mapping, as the first store folds it
        self._fold: Callable[[str], str] = str
        self._numbers = {"": FIRST} | {name: number for number, name in enumerate(self.names)}  # by `Mapping.store`

    @property
    def when_committed(self) -> Callable[[float], None] | None:
        return self.stores[FIRST].when_committed

    @when_committed.setter
    def when_committed(self, called: Callable[[float], None] | None) -> None:
        for each in self.stores:
            each.when_committed = called

    def store_of(self, mapping: Mapping) -> int:
        """Return the number of the store of a mapping that `loaded` has seen."""
        return self._numbers[mapping.store]

    def store_named(self, name: str) -> int:
        """Return the number of the store that has the mapping with a name, if there is such a mapping."""
        return self._placed.get(self._fold(name), FIRST)

    def loaded(self, number: int, mapping: Mapping) -> Mapping:
        """Note in its mapping which store it was read from, and return it."""
        if number != FIRST:
            mapping.assign_store(self.names[number])
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
        """Return the configuration of the first store with the mappings of the others, and set `problems`."""
        first = found[FIRST]
        self._compare_names(first.naming.fold)
        self.problems = list(self.stores[FIRST].problems)
        usable = [each for each in first.usable if self.store_named(each.name) == FIRST]
        for name in self._mappings:
            number = self.store_named(name)
            mapping = None if number == FIRST else self._usable(name, number, found[number])
            if mapping is not None:
                usable.append(mapping)
        if not usable:
            raise ConfigError("\n  ".join(["no mapping is usable in its store:", *self.problems]))
        first.usable, first.parts = tuple(usable), tuple(found)
        self._choose_default(found)
        return self.adopt(first)

    def adopt(self, directory: Directory) -> Directory:
        self._compare_names(directory.naming.fold)
        for store, part in zip(self.stores, directory.parts, strict=True):
            store.adopt(part)
        return directory

    def _compare_names(self, fold: Callable[[str], str]) -> None:
        self._fold = fold
        self._placed = {fold(name): self.names.index(store) for name, store in self._mappings.items()}

    def _choose_default(self, found: Sequence[Directory]) -> None:
        """Make the mapping with the name of the first store's default one that of all, wherever it is placed."""
        first = found[FIRST]
        name = self._fold(first.default.name)
        default = next((each for each in first.usable if self._fold(each.name) == name), first.usable[0])
        found[self.store_of(default)].default = default
        if default is not first.default:
            first.known.clear()
        first.default = default
        if not first.by_exact_name:
            first.remember(default)

    def _usable(self, name: str, number: int, found: Directory) -> Mapping | None:
        """Return the mapping with a name; None if its store has no usable row for it, which is a problem."""
        mapping = next((each for each in found.usable if self._fold(each.name) == self._fold(name)), None)
        if mapping is not None:
            return self.loaded(number, mapping)
        store = self.names[number]
        self.problems.append(
            f"[[mapping]] {name!r}: no usable row of containers in store {store} has this name: add one, or place the"
            " mapping in another store"
        )
        self.problems += [f"store {store}: {problem}" for problem in self.stores[number].problems]
        return None

    def cas_numbers(self) -> Iterator[int]:
        return counted_cas_numbers(self._profile)

    def limit_row_cache(self, size: int, *, keeps_rows: bool = False) -> None:  # noqa: ARG002 - a placed mapping is another
        for each in self.stores:
            each.limit_row_cache(size)

    def follow_binary_log(self, staleness: float, mappings: Iterable[Mapping]) -> list[str]:
        """Cache the rows of each store mysql://, see `MappedTables`; raises ConfigError if there is none."""
        followed = [number for number, dsn in enumerate(self._dsns) if dsn.startswith(MYSQL)]
        if not followed:
            raise ConfigError(
                f"row_cache_binlog=1 and the stores {', '.join(self.names)}: none of them is mysql://, which has a"
                " binary log: leave it out"
            )
        return self._sentences(followed, mappings, lambda store, own: store.follow_binary_log(staleness, own))

    def missing_privileges(self, mappings: Iterable[Mapping]) -> list[str]:
        return self._sentences(range(len(self.stores)), mappings, lambda store, own: store.missing_privileges(own))

    def _sentences(
        self, numbers: Iterable[int], mappings: Iterable[Mapping], of: Callable[[Store, list[Mapping]], list[str]]
    ) -> list[str]:
        """Return the sentences of some stores about their mappings, each with the name of its store."""
        placed = list(mappings)
        found: list[str] = []
        for number in numbers:
            with self.errors_of(number):
                sentences = of(self.stores[number], [each for each in placed if self.store_of(each) == number])
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
        with ExitStack() as stack:
            for each in self.stores:
                stack.callback(each.close)


def tables_of(placement: Placement, stores: Sequence[Store], profile: Profile) -> MappedTables:
    """Return opened stores, at least one, as the server uses them; arguments as of `SeveralStores`."""
    return SeveralStores(placement, stores, profile) if len(stores) > 1 else stores[0]
