"""Commands in any order, judged by the model.

Two connections, three mappings (two of one table, one of another under a name of one letter), three keys that collide.
Excluded: ranges, words of 250 bytes and flush_all, which end or freeze a plugin server; huge amounts, which literal
cases judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from kvref_conformance.model import steps as s
from kvref_conformance.model.model import Model
from kvref_conformance.model.words import Mappings
from kvref_conformance.stateful.command_rules import (
    AMOUNT,
    COUNT_VERB,
    KEY,
    MAPPING,
    NO_MAPPING,
    ON,
    VERB,
    CommandRules,
    has_cas,
    has_mappings,
    real_names,
)
from kvref_conformance.stateful.player import CONNECTIONS, Player

if TYPE_CHECKING:
    from kvref_conformance.findings import Search
    from kvref_conformance.judge import Judge

CASE: Final = "any-order-of-commands"
TABLES: Final = {"m1": "t1", "m1b": "t1", "q": "t3"}
# (mapping, key), by position; None for none, -1 for a mapping that does not exist: `k`, `@@m.k`, `@@m`.
Word = tuple[int | None, int | None]
WORD = st.tuples(st.sampled_from((None, None, 0, 1, 2, -1)), st.sampled_from((0, 1, 2, 0, 1, 2, None)))
WORDS = st.lists(WORD, min_size=1, max_size=5)


class CommandMachine(CommandRules):
    """Every verb, in any order, on either connection; `judge` and `search` are set by `judge_commands`."""

    judge: ClassVar[Judge]
    search: ClassVar[Search]
    connections = CONNECTIONS
    values = ("x", "", "7", "12", "12ab", "99")

    def __init__(self) -> None:
        self.search.patience.check()
        super().__init__()
        self.keys = [self.judge.fresh_key(f"k{n}") for n in range(3)]
        self.names = self.judge.world.names if self.judge.world else {}
        self.mappings = real_names(self.names, TABLES)
        self.cas_supported = not self.judge.endpoint.features.missing(["cas"])
        self._clean_words()
        self.judge.exercised.begin(self.names)
        self.player = Player(self.judge, self.search, CASE, self._new_model(), self.keys)
        for on in CONNECTIONS if self.names else "":
            self.player.send(s.Bind(on, self.names["m1"]), opening=True)

    @precondition(has_mappings)
    @rule(on=ON, verb=VERB, key=KEY)
    def store_unknown(self, *, on: int, verb: str, key: int) -> None:
        """Store under a mapping that does not exist."""
        self.do(s.Store(self.on(on), verb, self.word((-1, key)), "u"))

    @precondition(has_mappings)
    @rule(on=ON, verb=VERB, mapping=MAPPING)
    def store_switch_word(self, *, on: int, verb: str, mapping: int) -> None:
        """Store under a word without a key."""
        self.do(s.Store(self.on(on), verb, self.word((mapping, None)), "w"))

    @precondition(has_mappings)
    @rule(on=ON, mapping=MAPPING, key=KEY)
    def delete_mapped(self, *, on: int, mapping: int, key: int) -> None:
        """Delete `@@mapping.key`."""
        self.do(s.Delete(self.on(on), self.mapped(mapping, key)))

    @precondition(has_mappings)
    @rule(on=ON, verb=COUNT_VERB, mapping=MAPPING, key=KEY, amount=AMOUNT)
    def count_mapped(self, *, on: int, verb: str, mapping: int, key: int, amount: str) -> None:
        """Count under `@@mapping.key`."""
        self.do(s.Count(self.on(on), verb, self.mapped(mapping, key), amount))

    @precondition(has_mappings)
    @rule(on=ON, words=WORDS)
    def get_words(self, *, on: int, words: list[Word]) -> None:
        """Get words of any kind in any order."""
        self.do(s.Get(self.on(on), tuple(map(self.word, words))))

    @precondition(has_mappings)
    @precondition(has_cas)
    @rule(on=ON, words=WORDS)
    def gets_words(self, *, on: int, words: list[Word]) -> None:
        """Get words of any kind with their numbers."""
        self.do(s.Get(self.on(on), tuple(map(self.word, words)), cas=True))

    def do(self, step: s.Request) -> None:
        """Send a command, and compare the rows behind a write."""
        self.player.send(step)
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
        name = NO_MAPPING if mapping < 0 else self.mappings[mapping]
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
