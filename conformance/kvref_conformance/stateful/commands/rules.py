"""The rules of the machine: many small ones, since hypothesis leaves some out of each conversation.

Two connections, three mappings (two of one table, one of another under a name of one letter), three keys that collide.
Out of reach on purpose: ranges, words of 250 bytes and flush_all, which end or freeze a plugin server; huge amounts,
which literal cases judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kvref_conformance.model import steps as s
from kvref_conformance.model.model import Model
from kvref_conformance.model.words import Mappings
from kvref_conformance.stateful.player import CONNECTIONS, Player

if TYPE_CHECKING:
    from kvref_conformance.findings import Search
    from kvref_conformance.judge import Judge

CASE: Final = "any-order-of-commands"
TABLES: Final = {"m1": "t1", "m1b": "t1", "q": "t3"}
# (mapping or None, number of a key or None): `k`, `@@m.k`, `@@m`.
Word = tuple[str | None, int | None]
ON = st.sampled_from(CONNECTIONS)
KEYS = st.integers(0, 2)
MAPPINGS = st.sampled_from(tuple(TABLES))
KNOWN_OR_NOT = st.sampled_from((*TABLES, "no-such"))
VERBS = st.sampled_from(s.STORES)
VALUES = st.sampled_from(("x", "", "7", "12", "12ab", "99"))
FLAGS = st.integers(0, 3)
AMOUNTS = st.integers(0, 20).map(str)
NUMBER_VERBS = st.sampled_from(("incr", "decr"))
WORDS = st.tuples(st.sampled_from((None, None, *TABLES, "no-such")), st.sampled_from((0, 1, 2, 0, 1, 2, None)))


def has_mappings(machine: CommandMachine) -> bool:
    """Return whether the endpoint has mappings: rules that name one need it."""
    return machine.judge.world is not None


def has_cas(machine: CommandMachine) -> bool:
    """Return whether the endpoint has `gets` and `cas`."""
    return not machine.judge.endpoint.features.missing(["cas"])


class CommandMachine(RuleBasedStateMachine):
    """Every verb, in any order, on either connection; `judge` and `search` are set by `judge_commands`."""

    judge: ClassVar[Judge]
    search: ClassVar[Search]

    def __init__(self) -> None:
        self.search.patience.check()
        super().__init__()
        self.keys = [self.judge.fresh_key(f"k{n}") for n in range(3)]
        self.names = self.judge.world.names if self.judge.world else {}
        self.stored = 0
        self._clean_words()
        self.judge.exercised.begin(self.names)
        self.player = Player(self.judge, self.search, CASE, self._new_model(), self.keys)
        for on in CONNECTIONS if self.names else "":
            self.player.say(s.Bind(on, self.names["m1"]), opening=True)

    @rule(on=ON, key=KEYS, flags=FLAGS, value=VALUES)
    def set_key(self, on: str, key: int, flags: int, value: str) -> None:
        """Store without conditions."""
        self.say(s.Store(on, "set", self.keys[key], value, flags))

    @rule(on=ON, verb=VERBS, key=KEYS, flags=FLAGS, value=VALUES)
    def store_key(self, on: str, verb: str, key: int, flags: int, value: str) -> None:
        """Store by any verb."""
        self.say(s.Store(on, verb, self.keys[key], value, flags))

    @rule(on=ON, verb=VERBS, key=KEYS, flags=FLAGS, value=VALUES)
    def store_silently(self, on: str, verb: str, key: int, flags: int, value: str) -> None:
        """Store by any verb with noreply."""
        self.say(s.Store(on, verb, self.keys[key], value, flags, silent=True))

    @precondition(has_mappings)
    @rule(on=ON, verb=VERBS, mapping=MAPPINGS, key=KEYS, flags=FLAGS, value=VALUES)
    def store_mapped(self, on: str, verb: str, mapping: str, key: int, flags: int, value: str) -> None:
        """Store under `@@mapping.key`."""
        self.say(s.Store(on, verb, self.word((mapping, key)), value, flags))

    @precondition(has_mappings)
    @rule(on=ON, verb=VERBS, mapping=MAPPINGS, key=KEYS)
    def store_mapped_silently(self, on: str, verb: str, mapping: str, key: int) -> None:
        """Store under `@@mapping.key` with noreply: it switches all the same."""
        self.say(s.Store(on, verb, self.word((mapping, key)), "s", silent=True))

    @precondition(has_mappings)
    @rule(on=ON, verb=VERBS, key=KEYS)
    def store_unknown(self, on: str, verb: str, key: int) -> None:
        """Store under an unknown mapping."""
        self.say(s.Store(on, verb, self.word(("no-such", key)), "u"))

    @precondition(has_mappings)
    @rule(on=ON, verb=VERBS, mapping=MAPPINGS)
    def store_switch_word(self, on: str, verb: str, mapping: str) -> None:
        """Store under a word without a key."""
        self.say(s.Store(on, verb, self.word((mapping, None)), "w"))

    @precondition(has_cas)
    @rule(on=ON, key=KEYS, value=VALUES)
    def gets_and_cas(self, on: str, key: int, value: str) -> None:
        """Learn the number of a key and store with it."""
        self.say(s.Get(on, (self.keys[key],), cas=True))
        self.say(s.Store(on, "cas", self.keys[key], value))

    @precondition(has_cas)
    @rule(on=ON, key=KEYS, value=VALUES)
    def cas_with_the_number_seen(self, on: str, key: int, value: str) -> None:
        """Store with the number that the connection saw last, which the key may have no more."""
        self.say(s.Store(on, "cas", self.keys[key], value))

    @rule(on=ON, key=KEYS)
    def delete_key(self, on: str, key: int) -> None:
        """Delete."""
        self.say(s.Delete(on, self.keys[key]))

    @rule(on=ON, key=KEYS)
    def delete_silently(self, on: str, key: int) -> None:
        """Delete with noreply."""
        self.say(s.Delete(on, self.keys[key], silent=True))

    @precondition(has_mappings)
    @rule(on=ON, mapping=MAPPINGS, key=KEYS)
    def delete_mapped(self, on: str, mapping: str, key: int) -> None:
        """Delete `@@mapping.key`."""
        self.say(s.Delete(on, self.word((mapping, key))))

    @rule(on=ON, verb=NUMBER_VERBS, key=KEYS, amount=AMOUNTS)
    def count_key(self, on: str, verb: str, key: int, amount: str) -> None:
        """Count."""
        self.say(s.Count(on, verb, self.keys[key], amount))

    @rule(on=ON, verb=NUMBER_VERBS, key=KEYS, amount=AMOUNTS)
    def count_silently(self, on: str, verb: str, key: int, amount: str) -> None:
        """Count with noreply."""
        self.say(s.Count(on, verb, self.keys[key], amount, silent=True))

    @precondition(has_mappings)
    @rule(on=ON, verb=NUMBER_VERBS, mapping=MAPPINGS, key=KEYS, amount=AMOUNTS)
    def count_mapped(self, on: str, verb: str, mapping: str, key: int, amount: str) -> None:
        """Count under `@@mapping.key`."""
        self.say(s.Count(on, verb, self.word((mapping, key)), amount))

    @rule(on=ON, key=KEYS)
    def get_key(self, on: str, key: int) -> None:
        """Get."""
        self.say(s.Get(on, (self.keys[key],)))

    @rule(on=ON, keys=st.lists(KEYS, min_size=2, max_size=5))
    def get_keys(self, on: str, keys: list[int]) -> None:
        """Get several plain keys."""
        self.say(s.Get(on, tuple(self.keys[key] for key in keys)))

    @precondition(has_cas)
    @rule(on=ON, keys=st.lists(KEYS, min_size=1, max_size=5))
    def gets_keys(self, on: str, keys: list[int]) -> None:
        """Get plain keys with their numbers."""
        self.say(s.Get(on, tuple(self.keys[key] for key in keys), cas=True))

    @precondition(has_mappings)
    @rule(on=ON, word=WORDS)
    def get_word(self, on: str, word: Word) -> None:
        """Get one word of any kind."""
        self.say(s.Get(on, (self.word(word),)))

    @precondition(has_mappings)
    @rule(on=ON, words=st.lists(WORDS, min_size=2, max_size=5))
    def get_words(self, on: str, words: list[Word]) -> None:
        """Get several words of any kind in any order."""
        self.say(s.Get(on, tuple(map(self.word, words))))

    @precondition(has_mappings)
    @rule(on=ON, words=st.lists(WORDS, min_size=1, max_size=5))
    def gets_words(self, on: str, words: list[Word]) -> None:
        """Get words of any kind with their numbers."""
        self.say(s.Get(on, tuple(map(self.word, words)), cas=True))

    @precondition(has_mappings)
    @rule(on=ON, mapping=KNOWN_OR_NOT)
    def bind(self, on: str, mapping: str) -> None:
        """Bind a known name or an unknown one."""
        self.say(s.Bind(on, self.names.get(mapping, mapping)))

    def say(self, step: s.Request) -> None:
        """Send a command, and compare the rows behind a write."""
        self.player.say(step)
        if not isinstance(step, s.Get | s.Bind):
            self.compare_rows()

    def compare_rows(self) -> None:
        """Compare the rows with the model's: behind each write, since what follows a failure cannot be shrunk away."""
        for table in self.player.model.all_tables() if self.names else ():
            self.player.compare_rows(table)

    def word(self, word: Word) -> str:
        """Return the text of a word."""
        mapping, key = word
        if mapping is None:
            return self.keys[key or 0]
        name = self.names.get(mapping, mapping)
        return f"@@{name}" if key is None else f"@@{name}.{self.keys[key]}"

    def teardown(self) -> None:
        """Close the connections and compare the rows."""
        self.player.close()
        self.compare_rows()

    def _new_model(self) -> Model:
        profile, world = self.judge.endpoint.profile, self.judge.world
        if world is None:
            return Model(profile)
        tables = {self.names[mapping]: self.names[table] for mapping, table in TABLES.items()}
        return Model(profile, Mappings.of(profile, tables, world.default_words()))

    def _clean_words(self) -> None:
        # A word too short to switch is an ordinary key (core:map-010), the same in each conversation.
        if self.judge.world is not None:
            for table in {self.names[table] for table in TABLES.values()}:
                self.judge.world.database.execute(f"DELETE FROM {table} WHERE SUBSTR(c1, 1, 2) = '@@'")  # noqa: S608 - own names
