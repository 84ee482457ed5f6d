"""The rules by which state machines draw commands; `commands` and `concurrency` add their own.

There are many small rules, since hypothesis leaves some of them out of each conversation. The first key is drawn most
often: only commands on one key affect each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kvref_conformance.model import steps as s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Positions in `connections`, `keys`, `values` and `mappings`; a position beyond the end counts from the beginning.
ON = st.integers(0, 2)
KEY = st.sampled_from((0,) * 5 + (1,) * 3 + (2,) * 2)
KEYS = st.lists(st.integers(0, 2), min_size=2, max_size=5)
VALUE = st.integers(0, 5)
MAPPING = st.sampled_from((0, 0, 1, 2))
NO_MAPPING: Final = "no-such-mapping"
VERB = st.sampled_from(s.STORES)
COUNT_VERB = st.sampled_from(("incr", "decr"))
AMOUNT = (st.integers(0, 20) | st.just(100)).map(str)
FLAGS = st.integers(0, 3)
SELDOM = st.sampled_from((False, False, False, True))


def has_mappings(machine: CommandRules) -> bool:
    """Return whether the endpoint has mappings."""
    return bool(machine.mappings)


def has_cas(machine: CommandRules) -> bool:
    """Return whether the endpoint has `gets` and `cas`."""
    return machine.cas_supported


class CommandRules(RuleBasedStateMachine):
    """Commands of the text protocol on the keys and mappings of a subclass, which says what a step does.

    connections: names.
    values: that are stored.
    keys: that are used.
    mappings: names; none if the endpoint has no mappings.
    cas_supported: the endpoint has `gets` and `cas`.
    """

    connections: ClassVar[Sequence[str]]
    values: ClassVar[Sequence[str]]
    keys: Sequence[str]
    mappings: Sequence[str]
    cas_supported: bool = True

    def do(self, step: s.Request) -> None:
        """Do a step."""
        raise NotImplementedError

    def on(self, position: int) -> str:
        """Return the name of a connection."""
        return self.connections[position % len(self.connections)]

    def value(self, position: int) -> str:
        """Return a value."""
        return self.values[position % len(self.values)]

    def mapped(self, mapping: int, key: int) -> str:
        """Return a word that names a mapping and a key."""
        return f"@@{self.mappings[mapping]}.{self.keys[key]}"

    @rule()
    def absent(self) -> None:
        """Do nothing: the simplest rule, which hypothesis tries in the place of every other one."""

    @rule(on=ON, key=KEY, value=VALUE, flags=FLAGS)
    def set_key(self, *, on: int, key: int, value: int, flags: int) -> None:
        """Store without conditions."""
        self.do(s.Store(self.on(on), "set", self.keys[key], self.value(value), flags))

    @rule(on=ON, key=KEY, value=VALUE)
    def set_key_again(self, *, on: int, key: int, value: int) -> None:
        """Store: most conversations need items."""
        self.do(s.Store(self.on(on), "set", self.keys[key], self.value(value)))

    @rule(on=ON, verb=VERB, key=KEY, value=VALUE, flags=FLAGS, silent=SELDOM)
    def store(self, *, on: int, verb: str, key: int, value: int, flags: int, silent: bool) -> None:
        """Store by any verb."""
        self.do(s.Store(self.on(on), verb, self.keys[key], self.value(value), flags, silent=silent))

    @precondition(has_mappings)
    @rule(on=ON, verb=VERB, mapping=MAPPING, key=KEY, value=VALUE, silent=st.booleans())
    def store_mapped(self, *, on: int, verb: str, mapping: int, key: int, value: int, silent: bool) -> None:
        """Store under the name of a mapping."""
        self.do(s.Store(self.on(on), verb, self.mapped(mapping, key), self.value(value), silent=silent))

    @rule(on=ON, key=KEY)
    def get(self, *, on: int, key: int) -> None:
        """Read a key."""
        self.do(s.Get(self.on(on), (self.keys[key],)))

    @rule(on=ON, keys=KEYS)
    def get_several(self, *, on: int, keys: list[int]) -> None:
        """Read several keys."""
        self.do(s.Get(self.on(on), tuple(self.keys[key] for key in keys)))

    @precondition(has_mappings)
    @rule(on=ON, mapping=MAPPING, key=KEY)
    def get_mapped(self, *, on: int, mapping: int, key: int) -> None:
        """Read under the name of a mapping."""
        self.do(s.Get(self.on(on), (self.mapped(mapping, key),)))

    @precondition(has_cas)
    @rule(on=ON, key=KEY)
    def gets(self, *, on: int, key: int) -> None:
        """Read a key with its cas number."""
        self.do(s.Get(self.on(on), (self.keys[key],), cas=True))

    @precondition(has_cas)
    @rule(on=ON, keys=KEYS)
    def gets_several(self, *, on: int, keys: list[int]) -> None:
        """Read several keys with their cas numbers."""
        self.do(s.Get(self.on(on), tuple(self.keys[key] for key in keys), cas=True))

    @precondition(has_cas)
    @rule(on=ON, key=KEY, value=VALUE, stale=SELDOM)
    def cas(self, *, on: int, key: int, value: int, stale: bool) -> None:
        """Store with the number that the connection saw last, or with one that no item has."""
        self.do(s.Store(self.on(on), "cas", self.keys[key], self.value(value), stale=stale))

    @rule(on=ON, verb=COUNT_VERB, key=KEY, amount=AMOUNT, silent=SELDOM)
    def count(self, *, on: int, verb: str, key: int, amount: str, silent: bool) -> None:
        """Increment or decrement."""
        self.do(s.Count(self.on(on), verb, self.keys[key], amount, silent))

    @rule(on=ON, key=KEY, silent=SELDOM)
    def delete(self, *, on: int, key: int, silent: bool) -> None:
        """Delete."""
        self.do(s.Delete(self.on(on), self.keys[key], silent))

    @precondition(has_mappings)
    @rule(on=ON, mapping=MAPPING, word=st.booleans())
    def bind(self, *, on: int, mapping: int, word: bool) -> None:
        """Bind a mapping by its command or by its word."""
        name = self.mappings[mapping]
        self.do(s.Get(self.on(on), (f"@@{name}",)) if word else s.Bind(self.on(on), name))

    @precondition(has_mappings)
    @rule(on=ON, word=st.booleans())
    def bind_unknown(self, *, on: int, word: bool) -> None:
        """Bind a mapping that does not exist."""
        self.do(s.Get(self.on(on), (f"@@{NO_MAPPING}",)) if word else s.Bind(self.on(on), NO_MAPPING))


def real_names(names: Mapping[str, str], mappings: Mapping[str, str]) -> list[str]:
    """Return the names of mappings at the endpoint, in their order; none if the endpoint has none."""
    return [names[mapping] for mapping in mappings if mapping in names]
