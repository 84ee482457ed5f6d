"""The rules of the machine: many small ones, since hypothesis leaves some out of each conversation.

Two connections, three mappings (two of one table, one of another under a name of one letter), three keys that collide.
Out of reach on purpose: ranges, words of 250 bytes and flush_all, which end or freeze a plugin server; huge amounts,
which literal cases judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from kvref_conformance.stateful.commands.player import Talk

if TYPE_CHECKING:
    from kvref_conformance.stateful.commands.player import Word

CONNECTIONS = st.sampled_from("ab")
KEYS = st.integers(0, 2)
MAPPINGS = st.sampled_from(("m1", "m1b", "q"))
VERBS = st.sampled_from(("set", "add", "replace", "append", "prepend"))
VALUES = st.sampled_from(("x", "", "7", "12", "12ab", "99"))
FLAGS = st.integers(0, 3)
AMOUNTS = st.integers(0, 20)
NUMBER_VERBS = st.sampled_from(("incr", "decr"))
WORDS = st.tuples(st.sampled_from((None, None, "m1", "m1b", "q", "no-such")), st.sampled_from((0, 1, 2, 0, 1, 2, None)))
NO_NUMBER = (1 << 64) - 1


def has_mappings(machine: CommandMachine) -> bool:
    """Return whether the endpoint has mappings: rules that name one need it."""
    return machine.judge.world is not None


def has_cas(machine: CommandMachine) -> bool:
    """Return whether the endpoint has `gets` and `cas`."""
    return not machine.judge.endpoint.features.missing(["cas"])


class CommandMachine(Talk):
    """Every verb, in any order, on either connection."""

    @rule(on=CONNECTIONS, key=KEYS, flags=FLAGS, value=VALUES)
    def set_key(self, on: str, key: int, flags: int, value: str) -> None:
        """Store without conditions."""
        self.store(on, "set", self.keys[key], flags, value)

    @rule(on=CONNECTIONS, verb=VERBS, key=KEYS, flags=FLAGS, value=VALUES)
    def store_key(self, on: str, verb: str, key: int, flags: int, value: str) -> None:
        """Store by any verb."""
        self.store(on, verb, self.keys[key], flags, value)

    @rule(on=CONNECTIONS, verb=VERBS, key=KEYS, flags=FLAGS, value=VALUES)
    def store_silently(self, on: str, verb: str, key: int, flags: int, value: str) -> None:
        """Store by any verb with noreply."""
        self.store(on, verb, self.keys[key], flags, value, silent=True)

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, verb=VERBS, mapping=MAPPINGS, key=KEYS, flags=FLAGS, value=VALUES)
    def store_mapped(self, on: str, verb: str, mapping: str, key: int, flags: int, value: str) -> None:
        """Store under `@@mapping.key`."""
        self.store(on, verb, self.word((mapping, key)), flags, value)

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, verb=VERBS, mapping=MAPPINGS, key=KEYS)
    def store_mapped_silently(self, on: str, verb: str, mapping: str, key: int) -> None:
        """Store under `@@mapping.key` with noreply: it switches all the same."""
        self.store(on, verb, self.word((mapping, key)), 0, "s", silent=True)

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, verb=VERBS, key=KEYS)
    def store_unknown(self, on: str, verb: str, key: int) -> None:
        """Store under an unknown mapping."""
        self.store(on, verb, self.word(("no-such", key)), 0, "u")

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, verb=VERBS, mapping=MAPPINGS)
    def store_switch_word(self, on: str, verb: str, mapping: str) -> None:
        """Store under a word without a key."""
        self.store(on, verb, self.word((mapping, None)), 0, "w")

    @precondition(has_cas)
    @rule(on=CONNECTIONS, key=KEYS, value=VALUES)
    def gets_and_cas(self, on: str, key: int, value: str) -> None:
        """Learn the number of a key and store with it."""
        self.get(on, [self.keys[key]], cas=True)
        number = self.model.number(on, self.keys[key])
        self.store(on, "cas", self.keys[key], 0, value, NO_NUMBER if number is None else number)

    @precondition(has_cas)
    @rule(on=CONNECTIONS, key=KEYS, value=VALUES)
    def cas_with_an_old_number(self, on: str, key: int, value: str) -> None:
        """Store with a number that the key had before."""
        self.store(on, "cas", self.keys[key], 0, value, self.model.old_number(on, self.keys[key], NO_NUMBER))

    @rule(on=CONNECTIONS, key=KEYS)
    def delete_key(self, on: str, key: int) -> None:
        """Delete."""
        self.delete(on, self.keys[key])

    @rule(on=CONNECTIONS, key=KEYS)
    def delete_silently(self, on: str, key: int) -> None:
        """Delete with noreply."""
        self.delete(on, self.keys[key], silent=True)

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, mapping=MAPPINGS, key=KEYS)
    def delete_mapped(self, on: str, mapping: str, key: int) -> None:
        """Delete `@@mapping.key`."""
        self.delete(on, self.word((mapping, key)))

    @rule(on=CONNECTIONS, verb=NUMBER_VERBS, key=KEYS, amount=AMOUNTS)
    def count_key(self, on: str, verb: str, key: int, amount: int) -> None:
        """Count."""
        self.count(on, verb, self.keys[key], amount)

    @rule(on=CONNECTIONS, verb=NUMBER_VERBS, key=KEYS, amount=AMOUNTS)
    def count_silently(self, on: str, verb: str, key: int, amount: int) -> None:
        """Count with noreply."""
        self.count(on, verb, self.keys[key], amount, silent=True)

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, verb=NUMBER_VERBS, mapping=MAPPINGS, key=KEYS, amount=AMOUNTS)
    def count_mapped(self, on: str, verb: str, mapping: str, key: int, amount: int) -> None:
        """Count under `@@mapping.key`."""
        self.count(on, verb, self.word((mapping, key)), amount)

    @rule(on=CONNECTIONS, key=KEYS)
    def get_key(self, on: str, key: int) -> None:
        """Get."""
        self.get(on, [self.keys[key]])

    @rule(on=CONNECTIONS, keys=st.lists(KEYS, min_size=2, max_size=5))
    def get_keys(self, on: str, keys: list[int]) -> None:
        """Get several plain keys."""
        self.get(on, [self.keys[key] for key in keys])

    @precondition(has_cas)
    @rule(on=CONNECTIONS, keys=st.lists(KEYS, min_size=1, max_size=5))
    def gets_keys(self, on: str, keys: list[int]) -> None:
        """Get plain keys with their numbers."""
        self.get(on, [self.keys[key] for key in keys], cas=True)

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, word=WORDS)
    def get_word(self, on: str, word: Word) -> None:
        """Get one word of any kind."""
        self.get(on, [self.word(word)])

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, words=st.lists(WORDS, min_size=2, max_size=5))
    def get_words(self, on: str, words: list[Word]) -> None:
        """Get several words of any kind in any order."""
        self.get(on, [self.word(word) for word in words])

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, words=st.lists(WORDS, min_size=1, max_size=5))
    def gets_words(self, on: str, words: list[Word]) -> None:
        """Get words of any kind with their numbers."""
        self.get(on, [self.word(word) for word in words], cas=True)

    @precondition(has_mappings)
    @rule(on=CONNECTIONS, mapping=st.sampled_from(("m1", "m1b", "q", "no-such")))
    def bind(self, on: str, mapping: str) -> None:
        """Bind a known name or an unknown one."""
        self.bind_name(on, self.names.get(mapping, mapping))
