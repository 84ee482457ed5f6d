"""The tables of several stores as those of one: which store has which mapping, and the directory of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kvref.engine.mapping import Directory, Mapping
from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile
from kvref.storage.base import Store, counted_cas_numbers
from kvref.storage.placement import Placement

FIRST: Final = 0  # the store of the options, the default mapping, and all mappings that no other store has


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
        self.dsn = ", ".join(f"{name} {store.dsn}" for name, store in zip(self.names, stores, strict=True))
        self.problems: list[str] = []
        self._profile = profile
        self._mappings = placement.mappings
        self._placed: dict[str, int] = {}  # number of the store by the name of a mapping, as the first store folds it
        self._fold: Callable[[str], str] = str
        self._number_of: dict[str, int] = {}  # by the name of a mapping as its row has it

    @property
    def when_committed(self) -> Callable[[float], None] | None:
        """Return what each store calls after a commit."""
        return self.stores[FIRST].when_committed

    @when_committed.setter
    def when_committed(self, called: Callable[[float], None] | None) -> None:
        for each in self.stores:
            each.when_committed = called

    def store_of(self, mapping: Mapping) -> int:
        """Return the number of the store of a mapping that `joined` or `loaded` has seen."""
        return self._number_of[mapping.name]

    def store_named(self, name: str) -> int:
        """Return the number of the store that has the mapping with a name, whether there is such a mapping or not."""
        return self._placed.get(self._fold(name), FIRST)

    def loaded(self, number: int, mapping: Mapping) -> None:
        """Note that a store has read a mapping."""
        self._number_of[mapping.name] = number
        if number != FIRST:
            mapping.place_in(self.names[number])

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
            ConfigError: all mappings of the first store are placed in others, so that there is no default mapping.
        """
        first = found[FIRST]
        fold = self._fold = first.naming.fold
        self._placed = {fold(name): self.names.index(store) for name, store in self._mappings.items()}
        self.problems = list(self.stores[FIRST].problems)
        usable = [each for each in first.usable if self.store_named(each.name) == FIRST]
        if not usable:
            raise ConfigError(
                f"store {self.names[FIRST]}: [[mapping]] places all of its mappings in other stores: leave one, which"
                " becomes the default mapping"
            )
        if first.default not in usable:
            first.default = usable[0]
            first.known.clear()
            if not first.by_spelling:
                first.remember(first.default)
            self.stores[FIRST].adopt(first)
        for each in usable:
            self.loaded(FIRST, each)
        for name, store in self._mappings.items():
            number = self.names.index(store)
            if number != FIRST:
                usable += self._usable(name, number, found[number])
        first.usable = tuple(usable)
        return first

    def _usable(self, name: str, number: int, directory: Directory) -> list[Mapping]:
        """Return the mapping of a store that has a name; none if no usable row has it, which is a problem."""
        mapping = next((each for each in directory.usable if self._fold(each.name) == self._fold(name)), None)
        if mapping is None:
            store = self.names[number]
            self.problems.append(
                f"[[mapping]] {name!r}: no usable row of containers in store {store} has this name: add one, or place"
                " the mapping in another store"
            )
            self.problems += [f"store {store}: {problem}" for problem in self.stores[number].problems]
            return []
        self.loaded(number, mapping)
        return [mapping]

    def cas_numbers(self) -> Iterator[int]:
        """Return the counter of cas numbers, one for all stores."""
        return counted_cas_numbers(self._profile)

    def limit_row_cache(self, size: int) -> None:
        """Set the size of each store's row cache."""
        for each in self.stores:
            each.limit_row_cache(size)

    def follow_binary_log(self, staleness: float, mappings: Iterable[Mapping]) -> list[str]:  # noqa: ARG002
        """Raise ConfigError: the binary logs of several databases are not followed."""
        raise ConfigError(
            f"row_cache_binlog=1 and the stores {', '.join(self.names)}: rows are cached for one store mysql:// only:"
            " leave out row_cache_binlog, or serve this database alone"
        )

    def row_cache_numbers(self) -> dict[str, int]:
        """Return nothing: no binary log is followed."""
        return {}
