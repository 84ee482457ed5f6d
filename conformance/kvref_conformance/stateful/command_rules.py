"""The rules by which state machines draw commands; `commands` and `concurrency` add their own.

There are many small rules, since hypothesis leaves some of them out of each conversation. The first key is drawn most
often: only commands on one key affect each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kvref_conformance.model import steps as s

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kvref_conformance.endpoint import Endpoint

T = TypeVar("T")
# (mapping, key), by position; None for none, -1 for a mapping that does not exist: `k`, `@@m.k`, `@@m`.
Word = tuple[int | None, int | None]

# Positions in the pools of a machine; a position beyond the end counts from the beginning.
ON = st.integers(0, 2)
KEY = st.sampled_from((0,) * 5 + (1,) * 3 + (2,) * 2)
PLAIN = KEY.map(lambda key: (None, key))
MAPPING = st.sampled_from((0, 2, 1, 2))
MAPPED = st.tuples(MAPPING, KEY)
KEYS = st.lists(PLAIN, min_size=1, max_size=8) | MAPPED.map(lambda word: [word])
WORDS = st.lists(
    st.tuples(st.sampled_from((None, None, 0, 1, 2, -1)), st.sampled_from((0, 1, 2, 0, 1, 2, None))),
    min_size=1,
    max_size=5,
)
VALUE = st.integers(0, 15)
FLAGS = st.integers(0, 6)
EXPIRY = st.integers(0, 5)
AMOUNT = st.integers(0, 23)
INITIAL = st.none() | st.integers(0, 3)
VERB = st.sampled_from(s.STORES)
COUNT_VERB = st.sampled_from(("incr", "decr"))
NO_MAPPING: Final = "no-such-mapping"
SELDOM = st.sampled_from((False, False, False, True))
# What is drawn of a command in addition to its arguments: not answered, reply with the key, a meta command.
MANNER = st.fixed_dictionaries({"silent": SELDOM, "named": SELDOM, "meta": SELDOM})
OFTEN_SILENT = st.fixed_dictionaries({"silent": st.booleans(), "named": st.just(value=False), "meta": SELDOM})
Manner = dict[str, bool]
# Which commands of a rule with two are sent, so that each can be left out alone.
BOTH = st.tuples(*[st.sampled_from((False, True, True, True))] * 2)
PROTOCOLS = st.tuples(*[st.sampled_from((s.TEXT, s.TEXT, s.BINARY))] * 3)


def has_mappings(machine: CommandRules) -> bool:
    """Return whether the endpoint has mappings."""
    return bool(machine.mappings)


def has_cas(machine: CommandRules) -> bool:
    """Return whether the endpoint has `gets` and `cas`."""
    return "cas" not in machine.missing


def has_times(machine: CommandRules) -> bool:
    """Return whether the endpoint has commands that give an item another expiry time."""
    return not {"touch", "gat"} & set(machine.missing)


def at(pool: Sequence[T], position: int) -> T:
    """Return a member of a pool."""
    return pool[position % len(pool)]


class CommandRules(RuleBasedStateMachine):
    """Commands on the keys and mappings of a subclass, which says what a step does.

    connections: names.
    protocols: of the connections; those of text also have meta commands.
    values, flags, expiries, amounts: that are sent.
    keys: that are used.
    mappings: names; none if the endpoint has no mappings.
    missing: features that the endpoint has not.
    """

    connections: ClassVar[Sequence[str]]
    values: ClassVar[Sequence[str]]
    flags: ClassVar[Sequence[int]] = (0, 1, 2, 3)
    expiries: ClassVar[Sequence[int]] = (0,)
    amounts: ClassVar[Sequence[str]] = (*map(str, range(21)), "100")
    keys: Sequence[str]
    mappings: Sequence[str]
    missing: Collection[str] = ()
    protocols: Mapping[str, str]

    def do(self, *steps: s.Request) -> None:
        """Do steps, which may be in one packet."""
        raise NotImplementedError

    def begin_with(self, protocols: Sequence[str]) -> None:
        """Set the protocols of the connections: those that the endpoint has."""
        chosen = zip(self.connections, protocols, strict=False)
        self.protocols = {on: s.TEXT if "binary" in self.missing else protocol for on, protocol in chosen}

    def place(self, on: int, *, meta: bool = False) -> tuple[str, str]:
        """Return name and protocol of a connection."""
        name = at(self.connections, on)
        spoken = self.protocols[name]
        return name, s.META if meta and spoken == s.TEXT and "meta" not in self.missing else spoken

    def word(self, word: Word) -> str:
        """Return the text of a word."""
        mapping, key = word
        if mapping is None or not self.mappings:
            return self.keys[key or 0]
        name = NO_MAPPING if mapping < 0 else self.mappings[mapping]
        return f"@@{name}" if key is None else f"@@{name}.{self.keys[key]}"

    def read(self, on: int, words: Sequence[Word], manner: Manner, *, cas: bool = False, expiry: int = -1) -> None:
        """Get items, by one command in the text protocol and by one for each word in the others."""
        name, protocol = self.place(on, meta=manner["meta"])
        time = None if expiry < 0 else self.expiry(protocol, expiry)
        texts = tuple(map(self.word, words))
        if protocol == s.TEXT:
            self.do(s.Get(name, texts, cas, time))
            return
        how = manner["silent"], manner["named"]
        self.do(*(s.Get(name, (text,), cas, time, *how, protocol=protocol) for text in texts))

    def amount(self, protocol: str, position: int) -> str:
        """Return an amount; frames have numbers of 64 bits only."""
        text = at(self.amounts, position)
        return text if protocol != s.BINARY or (text.isdigit() and int(text) < 1 << 64) else "1"

    def expiry(self, protocol: str, position: int) -> int:
        """Return an expiry time; frames have no negative ones."""
        time = at(self.expiries, position)
        return max(0, time) if protocol == s.BINARY else time

    @rule()
    def absent(self) -> None:
        """Do nothing: the simplest rule, which hypothesis tries in the place of every other one."""

    @rule(on=ON, key=KEY, value=VALUE, flags=FLAGS)
    def set_key(self, *, on: int, key: int, value: int, flags: int) -> None:
        """Store without conditions: most conversations need items."""
        name, protocol = self.place(on)
        store = s.Store(name, "set", self.keys[key], at(self.values, value), at(self.flags, flags), protocol=protocol)
        self.do(store)

    set_key_again = set_key

    @rule(on=ON, verb=VERB, word=PLAIN, value=VALUE, flags=FLAGS, expiry=EXPIRY, manner=MANNER)
    def store(self, *, on: int, verb: str, word: Word, value: int, flags: int, expiry: int, manner: Manner) -> None:
        """Store by any verb."""
        name, protocol = self.place(on, meta=manner["meta"])
        number, time = at(self.flags, flags), self.expiry(protocol, expiry)
        text = self.word(word)
        self.do(s.Store(name, verb, text, at(self.values, value), number, time, manner["silent"], protocol=protocol))

    @precondition(has_mappings)
    @rule(on=ON, verb=VERB, word=MAPPED, value=VALUE, manner=OFTEN_SILENT)
    def store_mapped(self, *, on: int, verb: str, word: Word, value: int, manner: Manner) -> None:
        """Store under the name of a mapping."""
        self.store(on=on, verb=verb, word=word, value=value, flags=0, expiry=0, manner=manner)

    @precondition(has_mappings)
    @rule(on=ON, word=MAPPED, value=VALUE, manner=OFTEN_SILENT, both=BOTH)
    def store_and_read(self, *, on: int, word: Word, value: int, manner: Manner, both: tuple[bool, bool]) -> None:
        """Store under the name of a mapping, and read in the mapping that is bound then."""
        if both[0]:
            self.store(on=on, verb="set", word=word, value=value, flags=0, expiry=0, manner=manner)
        if both[1]:
            self.read(on, [(None, word[1])], manner)

    @rule(on=ON, words=KEYS, manner=MANNER)
    def get(self, *, on: int, words: list[Word], manner: Manner) -> None:
        """Read keys, or a key under the name of a mapping."""
        self.read(on, words, manner)

    @precondition(has_cas)
    @rule(on=ON, words=st.lists(PLAIN, min_size=1, max_size=5), manner=MANNER)
    def gets(self, *, on: int, words: list[Word], manner: Manner) -> None:
        """Read keys with their cas numbers."""
        self.read(on, words, manner, cas=True)

    @precondition(has_cas)
    @rule(on=ON, key=KEY, value=VALUE, both=BOTH, stale=SELDOM, manner=MANNER)
    def cas(self, *, on: int, key: int, value: int, both: tuple[bool, bool], stale: bool, manner: Manner) -> None:
        """Store with the number that the connection saw last, or with one that no item has."""
        if both[0]:
            self.set_key(on=on, key=key, value=value, flags=1)
        name, protocol = self.place(on, meta=manner["meta"])
        if both[1]:
            self.do(s.Store(name, "cas", self.keys[key], at(self.values, value), stale=stale, protocol=protocol))

    @rule(on=ON, key=KEY, value=VALUE, verb=COUNT_VERB, amount=AMOUNT, both=BOTH)
    def count_stored(self, *, on: int, key: int, value: int, verb: str, amount: int, both: tuple[bool, bool]) -> None:
        """Store a value and count from it."""
        if both[0]:
            self.set_key(on=on, key=key, value=value, flags=0)
        if both[1]:
            name, protocol = self.place(on)
            text = self.amount(protocol, amount)
            self.do(s.Count(name, verb, self.keys[key], text, protocol=protocol))

    @rule(on=ON, verb=COUNT_VERB, word=PLAIN | MAPPED, amount=AMOUNT, initial=INITIAL, manner=MANNER)
    def count(self, *, on: int, verb: str, word: Word, amount: int, initial: int | None, manner: Manner) -> None:
        """Increment or decrement; only meta commands and frames have an initial number."""
        name, protocol = self.place(on, meta=manner["meta"])
        text = self.amount(protocol, amount)
        # memcached 1.6.18 answers a silent `ma` that creates the item.
        first = None if protocol == s.TEXT or (protocol == s.META and manner["silent"]) else initial
        self.do(s.Count(name, verb, self.word(word), text, manner["silent"], first, protocol=protocol))

    @rule(on=ON, word=PLAIN | MAPPED, manner=MANNER)
    def delete(self, *, on: int, word: Word, manner: Manner) -> None:
        """Delete."""
        name, protocol = self.place(on, meta=manner["meta"])
        self.do(s.Delete(name, self.word(word), manner["silent"], protocol=protocol))

    @precondition(has_mappings)
    @rule(on=ON, mapping=MAPPING, unknown=SELDOM)
    def bind(self, *, on: int, mapping: int, unknown: bool) -> None:
        """Bind a mapping, or one that does not exist, by its command."""
        name, protocol = self.place(on)
        self.do(s.Bind(name, NO_MAPPING if unknown else self.mappings[mapping], protocol=protocol))

    @precondition(has_mappings)
    @rule(on=ON, mapping=MAPPING, unknown=SELDOM, manner=MANNER)
    def bind_by_word(self, *, on: int, mapping: int, unknown: bool, manner: Manner) -> None:
        """Bind a mapping, or one that does not exist, by its word."""
        self.read(on, [(-1 if unknown else mapping, None)], manner)


def real_names(names: Mapping[str, str], mappings: Mapping[str, str]) -> list[str]:
    """Return the names of mappings at the endpoint, in their order; none if the endpoint has none."""
    return [names[mapping] for mapping in mappings if mapping in names]


def missing_in(endpoint: Endpoint) -> set[str]:
    """Return the features that an endpoint or its profile has not."""
    lacking = {name for name, there in endpoint.features.there.items() if not there}
    return lacking | ({"touch", "gat", "meta"} if not endpoint.profile.flag("verbs.beyond_plugin") else set())
