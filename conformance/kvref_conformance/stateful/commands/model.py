"""The model of the machine: tables as dicts, and for each command the answers that are allowed.

Every method returns alternatives; `accept` takes the answer that came, runs the effect of the alternative that allows
it, and says no when none does. Nothing changes before an answer is accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kvref_conformance.stateful.commands.mapping_words import Reach, reach, reaches
from kvref_conformance.template import CAS, with_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref.profiles import Profile

TWO_64: Final = 1 << 64
NOT_A_NUMBER: Final = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"


@dataclass
class Row:
    """A row: what SQL would see of it, and its cas number once `gets` has shown it."""

    value: str
    flags: int
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """An allowed reply.

    Args:
        text: the reply; CAS is a placeholder for a number.
        effect: applies it to the state, given the numbers; returns False if they are impossible.
    """

    text: str
    effect: Callable[[list[int]], bool]


@dataclass
class Model:
    """The state of the endpoint as far as the conversation shows it.

    Args:
        profile: facts.
        tables: name of the table by mapping; one mapping without a name if the endpoint has none.
        words: allowed values of a switch word for each mapping.
        any_number: incr of a missing key may return any number (a documented deviation).
        start: mapping that each connection begins with.
    """

    profile: Profile
    tables: dict[str, str]
    words: dict[str, tuple[str, ...]]
    any_number: bool
    start: str
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    used: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)

    def accept(self, answer: str, alternatives: list[Alternative]) -> bool:
        """Take an answer; returns False when no alternative allows it."""
        for alternative in alternatives:
            found = re.fullmatch(with_numbers(alternative.text), answer)
            if found and alternative.effect([int(digits) for digits in found.groups()]):
                return True
        return False

    def bind(self, on: str, name: str) -> list[Alternative]:
        """Allow the answers to `bind`."""
        if name not in self.tables:
            return [Alternative("NOT_FOUND\r\n", self._moves(on, self._bound(on)))]
        return [Alternative("SUCCEED\r\n", self._moves(on, name))]

    def get(self, on: str, words: list[str], *, cas: bool) -> list[Alternative]:
        """Allow the answers to `get` (`gets` with cas) of one word or more."""
        steps = reaches(self.profile, self.tables, self._bound(on), words)
        answers = [""]
        places: list[tuple[str, str]] = []
        for word, step in zip(words, steps, strict=True):
            if step.kind == "unknown":
                continue
            place = self._place(step)
            if step.kind == "key" and place in self.rows and cas:
                places.append(place)
            blocks = self._blocks(word, place, step, cas=cas)
            answers = [answer + block for answer in answers for block in blocks]
        return [Alternative(f"{answer}END\r\n", self._learns(on, steps[-1].mapping, places)) for answer in answers]

    def store(self, on: str, verb: str, word: str, flags: int, value: str, number: int = 0) -> list[Alternative]:
        """Allow the answers to a storage verb; `number` is that of `cas`."""
        step = reach(self.profile, self.tables, self._bound(on), word, switching=True)
        if step.kind == "unknown":
            return [Alternative("NOT_FOUND\r\n", self._moves(on, step.mapping))]
        if step.kind == "switch":
            return [Alternative("NOT_STORED\r\n", self._moves(on, step.mapping))]
        place = self._place(step)
        row = self.rows.get(place)
        refusal = _refusal(verb, row, number)
        if refusal:
            return [Alternative(refusal, self._moves(on, step.mapping))]
        if row is not None and verb in {"append", "prepend"}:
            value = row.value + value if verb == "append" else value + row.value
            flags = row.flags if self.profile["append.flags_and_expiry"] == "row" else flags
        return [Alternative("STORED\r\n", self._writes(on, step.mapping, place, Row(value, flags)))]

    def delete(self, on: str, word: str) -> list[Alternative]:
        """Allow the answers to `delete`."""
        step = self._reach_of_other_verbs(on, word)
        if step.kind != "key" or self._place(step) not in self.rows:
            return [Alternative("NOT_FOUND\r\n", self._moves(on, step.mapping))]
        return [Alternative("DELETED\r\n", self._writes(on, step.mapping, self._place(step), None))]

    def count(self, on: str, verb: str, word: str, amount: int) -> list[Alternative]:
        """Allow the answers to `incr` and `decr`; the amount is small, so that no answer lies beyond 2^63 for decr."""
        step = self._reach_of_other_verbs(on, word)
        place = self._place(step)
        row = self.rows.get(place) if step.kind == "key" else None
        stays = self._moves(on, step.mapping)
        if row is None:
            return [Alternative("NOT_FOUND\r\n", stays)] + (
                [Alternative(f"{CAS}\r\n", stays)] if self.any_number else []
            )
        old = self._number_in(row.value)
        if old is None:
            return [Alternative(NOT_A_NUMBER, stays)]
        new = (old + amount) % TWO_64 if verb == "incr" else max(0, old - amount)
        text = str(new).ljust(len(row.value)) if self.profile.flag("arith.decr_pads") else str(new)
        return [Alternative(f"{new}\r\n", self._writes(on, step.mapping, place, Row(text, row.flags)))]

    def silent(self, alternatives: list[Alternative]) -> list[Alternative]:
        """Turn the answers to a command into the silence of its noreply form."""
        return [Alternative("", alternatives[0].effect)]

    def rows_of(self, table: str) -> list[tuple[object, ...]]:
        """Return key, value and flags of the rows of a table, sorted."""
        return sorted((key, row.value, row.flags) for (of, key), row in self.rows.items() if of == table)

    def number(self, on: str, key: str) -> int | None:
        """Return the cas number of a plain key, where `gets` has shown it."""
        row = self.rows.get((self.tables[self._bound(on)], key))
        return row.number if row else None

    def old_number(self, on: str, key: str, otherwise: int) -> int:
        """Return a number that a plain key had and has no more, else another one that it cannot have."""
        return max(self.used.get((self.tables[self._bound(on)], key), ()), default=otherwise)

    def _bound(self, on: str) -> str:
        return self.bound.get(on, self.start)

    def _place(self, step: Reach) -> tuple[str, str]:
        return self.tables[step.mapping], step.key

    def _reach_of_other_verbs(self, on: str, word: str) -> Reach:
        switching = self.profile["mapping.switching_verbs"] == "all"
        return reach(self.profile, self.tables, self._bound(on), word, switching=switching)

    def _number_in(self, text: str) -> int | None:
        if re.fullmatch(r"\d+ *", text):
            return int(text)
        if self.profile["arith.text"] == "error":
            return None
        leading = re.match(r"\d+", text)
        return int(leading[0]) if leading else 0

    def _blocks(self, word: str, place: tuple[str, str], step: Reach, *, cas: bool) -> list[str]:
        if step.kind == "switch":
            zero = " 0" if cas else ""
            return [f"VALUE {word} 0 {len(text)}{zero}\r\n{text}\r\n" for text in self.words[step.mapping]]
        row = self.rows.get(place)
        if row is None:
            return [""]
        return [f"VALUE {word} {row.flags} {len(row.value)}{f' {CAS}' if cas else ''}\r\n{row.value}\r\n"]

    def _moves(self, on: str, mapping: str) -> Callable[[list[int]], bool]:
        def effect(_: list[int]) -> bool:
            self.bound[on] = mapping
            return True

        return effect

    def _writes(self, on: str, mapping: str, place: tuple[str, str], row: Row | None) -> Callable[[list[int]], bool]:
        def effect(_: list[int]) -> bool:
            self.bound[on] = mapping
            before = self.rows.pop(place, None)
            if before is not None and before.number is not None:
                self.used.setdefault(place, set()).add(before.number)
            if row is not None:
                self.rows[place] = row
            return True

        return effect

    def _learns(self, on: str, mapping: str, places: list[tuple[str, str]]) -> Callable[[list[int]], bool]:
        def effect(numbers: list[int]) -> bool:
            for place, number in zip(places, numbers, strict=True):
                row = self.rows[place]
                if row.number not in {None, number} or number in self.used.get(place, set()):
                    return False
                row.number = number
            self.bound[on] = mapping
            return True

        return effect


def _refusal(verb: str, row: Row | None, number: int) -> str:
    if verb == "cas":
        if row is None:
            return "NOT_FOUND\r\n"
        return "" if row.number == number else "EXISTS\r\n"
    if (verb == "add") == (row is not None) and verb != "set":
        return "NOT_STORED\r\n"
    return ""
