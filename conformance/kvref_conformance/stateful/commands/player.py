"""What the rules stand on: two connections, the model, and the comparison of the rows behind at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from kvref_conformance.conversation import Exchange
from kvref_conformance.findings import signature
from kvref_conformance.next_word import told_by_address
from kvref_conformance.stateful.commands.model import Model

if TYPE_CHECKING:
    from kvref_conformance.findings import Search
    from kvref_conformance.judge import Judge
    from kvref_conformance.stateful.commands.model import Alternative

# Seconds: a shrinking machine repeats a hang many times.
PATIENCE = 2.0
# (mapping or None, number of a key or None): `k`, `@@m.k`, `@@m`.
Word = tuple[str | None, int | None]


class Talk(RuleBasedStateMachine):
    """One conversation; `judge` and `search` are set by the subclass that `judge_machine` makes."""

    judge: ClassVar[Judge]
    search: ClassVar[Search]

    def __init__(self) -> None:
        self.search.patience.check()
        super().__init__()
        self.keys = [self.judge.fresh_key(f"k{n}") for n in range(3)]
        self.names = self.judge.world.names if self.judge.world else {}
        self.model = self._new_model()
        self.exchanges: list[Exchange] = []
        self.failed = False
        self._clean_words()
        self.connections = {on: self.judge.endpoint.connect() for on in "ab"}
        self.judge.exercised.begin(self.names)
        for on in "ab" if self.names else "":
            self.bind_name(on, self.names["m1"])

    def word(self, word: Word) -> str:
        """Return the text of a word."""
        mapping, key = word
        if mapping is None:
            return self.keys[key or 0]
        name = self.names.get(mapping, mapping)
        return f"@@{name}" if key is None else f"@@{name}.{self.keys[key]}"

    def say(self, on: str, line: str, allowed: list[Alternative]) -> None:
        """Send a command and judge the answer.

        Raises:
            CaseFailed: it is not allowed; the text is the conversation so far.
        """
        if self.failed:
            return
        reply = self.connections[on].ask((f"{line}\r\n".encode("latin-1"),), patience=PATIENCE)
        texts = tuple(alternative.text for alternative in allowed)
        got = reply.data.decode("latin-1")
        note = reply.note(PATIENCE)
        self.judge.exercised.say(on, f"{line}\r\n".encode("latin-1"), got)
        kept = not note and self.model.accept(got, allowed)
        self.exchanges.append(Exchange(on, f"{line}\r\n", texts, got, note, kept))
        if not kept:
            self._fail()

    def bind_name(self, on: str, name: str) -> None:
        """Send `bind`."""
        self.say(on, f"bind {name}", self.model.bind(on, name))

    def get(self, on: str, words: list[str], *, cas: bool = False) -> None:
        """Send `get` or `gets`, with fewer words where the answer would hang on an address."""
        verb = "gets" if cas else "get"
        while told_by_address(f"{verb} {' '.join(words)}".encode("latin-1"), sys.maxsize):
            words = words[:-1]
        self.say(on, f"{verb} {' '.join(words)}", self.model.get(on, words, cas=cas))

    def store(
        self, on: str, verb: str, word: str, flags: int, value: str, number: int = 0, *, silent: bool = False
    ) -> None:
        """Send a storage verb; `number` is that of `cas`."""
        allowed = self.model.store(on, verb, word, flags, value, number)
        tail = (f" {number}" if verb == "cas" else "") + (" noreply" if silent else "")
        line = f"{verb} {word} {flags} 0 {len(value)}{tail}\r\n{value}"
        self.say(on, line, self.model.silent(allowed) if silent else allowed)

    def delete(self, on: str, word: str, *, silent: bool = False) -> None:
        """Send `delete`."""
        allowed = self.model.delete(on, word)
        self.say(on, f"delete {word}{' noreply' if silent else ''}", self.model.silent(allowed) if silent else allowed)

    def count(self, on: str, verb: str, word: str, amount: int, *, silent: bool = False) -> None:
        """Send `incr` or `decr`."""
        allowed = self.model.count(on, verb, word, amount)
        line = f"{verb} {word} {amount}{' noreply' if silent else ''}"
        self.say(on, line, self.model.silent(allowed) if silent else allowed)

    def teardown(self) -> None:
        """Close the connections and compare the rows behind with the model's."""
        for connection in self.connections.values():
            connection.close()
        if not self.failed:
            for table in sorted(set(self.model.tables.values())) if self.judge.world else ():
                self._compare_rows(table)

    def _new_model(self) -> Model:
        profile = self.judge.endpoint.profile
        any_number = self.judge.deviations.documents("KV-ARITH-007")
        if self.judge.world is None:
            return Model(profile, {"": "all"}, {}, any_number, "")
        names = self.names
        tables = {names["m1"]: names["t1"], names["m1b"]: names["t1"], names["q"]: names["t3"]}
        words: dict[str, tuple[str, ...]] = {mapping: (f"test/{table}",) for mapping, table in tables.items()}
        if profile["mapping.switch_word_names"] == "default":
            every = tuple({*self.judge.world.default_words(), *(text for texts in words.values() for text in texts)})
            words = dict.fromkeys(words, every)
        return Model(profile, tables, words, any_number, names["m1"])

    def _clean_words(self) -> None:
        # A word too short to switch is an ordinary key (core:map-010), the same in each conversation.
        if self.judge.world is not None:
            for table in set(self.model.tables.values()):
                self.judge.world.database.execute(f"DELETE FROM {table} WHERE SUBSTR(c1, 1, 2) = '@@'")  # noqa: S608 - own names

    def _compare_rows(self, table: str) -> None:
        assert self.judge.world is not None
        wanted = self.model.rows_of(table)
        listed = ", ".join(f"'{key}'" for key in dict.fromkeys([*self.keys, *(str(row[0]) for row in wanted)]))
        statement = f"SELECT c1, c2, c3 FROM {table} WHERE c1 IN ({listed}) ORDER BY c1"  # noqa: S608 - own names
        got = sorted(tuple(row) for row in self.judge.world.database.query(statement))
        self.exchanges.append(Exchange("sql", statement, (str(wanted),), str(got), "", got == wanted))
        if got != wanted:
            self._fail()

    def _fail(self) -> None:
        """End the conversation; quietly, where an earlier one of this run has failed so."""
        self.failed = True
        last = self.exchanges[-1]
        found = signature(last.sent, last.allowed, f"{last.note} {last.got}" if last.note else last.got, self.keys)
        self.search.fail("any-order-of-commands", tuple(self.exchanges), found)
