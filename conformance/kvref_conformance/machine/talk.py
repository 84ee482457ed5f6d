"""What the rules stand on: two connections, the model, and the comparison of the rows behind at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from kvref_conformance.conversation import Exchange, render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.machine.model import Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.judge import Judge
    from kvref_conformance.machine.model import Alternative

    Command = Callable[[Model], list[Alternative]]

# Seconds: a shrinking machine repeats a hang many times.
PATIENCE = 2.0
# An answer that leaves more states open than this is a get of misses; the likely states come first.
MOST_STATES = 6
CLOSED = "the endpoint closed the connection"
# (mapping or None, number of a key or None): `k`, `@@m.k`, `@@m`.
Word = tuple[str | None, int | None]


class Talk(RuleBasedStateMachine):
    """One conversation; `judge` is set by the subclass that `judge_machine` makes."""

    judge: ClassVar[Judge]
    last_failure: ClassVar[tuple[Exchange, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.keys = [self.judge.fresh_key(f"k{n}") for n in range(3)]
        self.names = self.judge.world.names if self.judge.world else {}
        # States the conversation so far may have led to: one, unless an answer did not tell two apart.
        self.models = [self._new_model()]
        self.exchanges: list[Exchange] = []
        self.failed = False
        self._clean_words()
        self.links = {on: self.judge.endpoint.link() for on in "ab"}
        for on in "ab" if self.names else "":
            self.bind_name(on, self.names["m1"])

    def word(self, word: Word) -> str:
        """Return the text of a word."""
        mapping, key = word
        if mapping is None:
            return self.keys[key or 0]
        name = self.names.get(mapping, mapping)
        return f"@@{name}" if key is None else f"@@{name}.{self.keys[key]}"

    @property
    def model(self) -> Model:
        """Return a state that the conversation may have led to."""
        return self.models[0]

    def say(self, on: str, line: str, command: Command) -> None:
        """Send a command and judge the answer.

        Raises:
            CaseFailed: it is not allowed; the text is the conversation so far.
        """
        reply = self.links[on].ask((f"{line}\r\n".encode("latin-1"),), patience=PATIENCE)
        allowed = dict.fromkeys(alternative.text for model in self.models for alternative in command(model))
        got = reply.data.decode("latin-1")
        note = f"hang: no complete answer within {PATIENCE:g} s" if reply.hang else CLOSED if reply.closed else ""
        self.exchanges.append(Exchange(on, f"{line}\r\n", tuple(allowed), got, note))
        reached = [state for model in self.models for state in model.outcomes(got, command)]
        if note or not reached:
            self._fail()
        self.models = [state for number, state in enumerate(reached) if state not in reached[:number]][:MOST_STATES]

    def bind_name(self, on: str, name: str) -> None:
        """Send `bind`."""
        self.say(on, f"bind {name}", lambda model: model.bind(on, name))

    def get(self, on: str, words: list[str], *, cas: bool = False) -> None:
        """Send `get` or `gets`."""
        self.say(on, f"{'gets' if cas else 'get'} {' '.join(words)}", lambda model: model.get(on, words, cas=cas))

    def store(
        self, on: str, verb: str, word: str, flags: int, value: str, number: int = 0, *, silent: bool = False
    ) -> None:
        """Send a storage verb; `number` is that of `cas`."""
        tail = (f" {number}" if verb == "cas" else "") + (" noreply" if silent else "")
        line = f"{verb} {word} {flags} 0 {len(value)}{tail}\r\n{value}"
        self.say(on, line, _maybe(silent, lambda model: model.store(on, verb, word, flags, value, number)))

    def delete(self, on: str, word: str, *, silent: bool = False) -> None:
        """Send `delete`."""
        line = f"delete {word}{' noreply' if silent else ''}"
        self.say(on, line, _maybe(silent, lambda model: model.delete(on, word)))

    def count(self, on: str, verb: str, word: str, amount: int, *, silent: bool = False) -> None:
        """Send `incr` or `decr`."""
        line = f"{verb} {word} {amount}{' noreply' if silent else ''}"
        self.say(on, line, _maybe(silent, lambda model: model.count(on, verb, word, amount)))

    def teardown(self) -> None:
        """Close the connections and compare the rows behind with the model's."""
        for link in self.links.values():
            link.close()
        if not self.failed:
            for table in sorted(set(self.models[0].tables.values())) if self.judge.world else ():
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
        return Model(profile, tables, words, any_number, names["m1"], self.judge.deviations.documents("KV-MGET-014"))

    def _clean_words(self) -> None:
        # A word too short to switch is an ordinary key (core:map-010), the same in each conversation.
        if self.judge.world is not None:
            for table in set(self.models[0].tables.values()):
                self.judge.world.database.execute(f"DELETE FROM {table} WHERE SUBSTR(c1, 1, 2) = '@@'")  # noqa: S608 - own names

    def _compare_rows(self, table: str) -> None:
        assert self.judge.world is not None
        wanted = [model.rows_of(table) for model in self.models]
        keys = dict.fromkeys([*self.keys, *(key for rows in wanted for key, _, _ in rows)])
        listed = ", ".join(f"'{key}'" for key in keys)
        statement = f"SELECT c1, c2, c3 FROM {table} WHERE c1 IN ({listed}) ORDER BY c1"  # noqa: S608 - own names
        got = sorted(tuple(row) for row in self.judge.world.database.query(statement))
        self.exchanges.append(Exchange("sql", statement, tuple(map(str, wanted)), str(got)))
        if got not in wanted:
            self._fail()

    def _fail(self) -> None:
        self.failed = True
        type(self).last_failure = tuple(self.exchanges)
        raise CaseFailed(render(self.exchanges))


def _maybe(silent: bool, command: Command) -> Command:
    return (lambda model: model.silent(command(model))) if silent else command
