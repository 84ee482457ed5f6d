"""Hold a conversation with both sides and find the first difference."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus.templates import bytes_of
from kvref_conformance.differential import exchange
from kvref_conformance.differential.compare import Counted, differing_rows, explained, lines, row_of, same, same_line
from kvref_conformance.frames import BETWEEN, decode_requests
from kvref_conformance.steps import Send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.differential.compare import Line, Rows
    from kvref_conformance.differential.exchange import Side
    from kvref_conformance.differential.generate import Script
    from kvref_conformance.differential.known_differences import Known
    from kvref_conformance.steps import Step
    from kvref_conformance.strategies.world import Table

Sides = tuple["Side", "Side"]
# The kind of a difference where a server could not be talked to.
LOST: Final = "connection lost"
_FRAME: Final = re.compile(r"(\S+)(?: (\S+))?((?: (?!value=)\w+=\S*)*)(?: (.*))?", re.DOTALL)
_WORDS: Final = re.compile(
    rb"END|STORED|NOT_STORED|EXISTS|NOT_FOUND|DELETED|OK|RESET|ERROR|SUCCEED|<\w+>|(?:CLIENT|SERVER)_ERROR [^\r\n]*"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the two sides part.

    Args:
        step: number of the step, from 0; None: the rows afterwards.
        kind: under which it is counted.
        left: what the first side showed.
        right: what the other showed.
    """

    step: int | None
    kind: str
    left: str
    right: str


@dataclass(slots=True)
class Outcome:
    """One conversation as it went.

    Args:
        answers: of the steps taken, for the reader.
        difference: the first one, None where there is none.
        known: ids of rows of `known_differences.toml` that explained something.
        died: names of the sides whose server ended.
    """

    answers: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    difference: Difference | None = None
    known: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)


def run_script(script: Script, sides: Sides, known: Sequence[Known], patience: float = exchange.PATIENCE) -> Outcome:
    """Fill the tables, take the steps, compare, close.

    Args:
        script: the conversation.
        sides: both servers, in the script's world.
        known: rows that explain differences.
        patience: seconds to wait for an answer.
    """
    outcome = Outcome()
    counted = Counted()
    try:
        for side in sides:
            side.begin(script.rows)
        for number, step in enumerate(script.steps):
            left, right = exchange.take(step, sides, patience)
            outcome.answers.append((left, right))
            if left is None or right is None:
                continue
            whole = bytes_of(step) if isinstance(step, Send) else b""
            outcome.difference = _compare(number, step, whole, (left, right), known, counted, outcome)
            if outcome.difference is not None or exchange.SILENCE in left:
                break
        else:
            for side in sides:
                side.end()
            outcome.difference = _compare_rows(script, sides, counted)
    except OSError as error:
        outcome.difference = Difference(len(outcome.answers), LOST, str(error), str(error))
    finally:
        for side in sides:
            side.end()
    if outcome.difference is not None:
        _look_for_death(outcome, sides)
    return outcome


def _compare(
    number: int,
    step: Step,
    whole: bytes,
    answers: tuple[bytes, bytes],
    known: Sequence[Known],
    counted: Counted,
    outcome: Outcome,
) -> Difference | None:
    binary = isinstance(step, Send) and step.binary
    left, right = (lines(answer, binary=binary) for answer in answers)
    if same(left, right, counted):
        return None
    sent = decode_requests(whole).replace(BETWEEN, "\n") if binary else whole.decode("latin-1")
    ids = explained(sent, left, right, known, counted)
    if ids is not None:
        outcome.known += ids
        return None
    kind = kind_of_frames(sent, left, right, known, counted) if binary else _kind(whole, *answers)
    return Difference(number, kind, *(repr(answer)[2:-1] for answer in answers))


def _compare_rows(script: Script, sides: Sides, counted: Counted) -> Difference | None:
    for table in script.world.mapped:
        found = differing_rows(script.world, table, sides[0].rows(table), sides[1].rows(table), counted)
        if found is not None:
            left, right = found
            kind = f"rows: {_row_kind(table, left, right)}"
            return Difference(None, kind, f"{table.name}: {left}", f"{table.name}: {right}")
    return None


def _look_for_death(outcome: Outcome, sides: Sides) -> None:
    difference = outcome.difference
    assert difference is not None, "a server is looked for where something differs"
    if difference.kind != LOST and not any("<EOF>" in text for text in (difference.left, difference.right)):
        return
    for side in sides:
        status = side.exit_status()
        if status is not None:
            outcome.died.append(side.name)
            outcome.difference = Difference(
                difference.step, f"{side.name} died ({status})", difference.left, difference.right
            )


def _kind(whole: bytes, left: bytes, right: bytes) -> str:
    verb = whole.split()[:1] or [b"SQL"]
    lines = left.split(b"\r\n"), right.split(b"\r\n")
    place = next(
        (n for n, pair in enumerate(zip(*lines, strict=False)) if pair[0] != pair[1]), min(map(len, lines)) - 1
    )
    shapes = [_shape(side[place]) for side in lines]
    if shapes == ["VALUE", "VALUE"]:
        words = [side[place].split(b" ") for side in lines]
        names = ("VALUE", "key", "flags", "length", "cas")
        shapes = [next((name for name, a, b in zip(names, *words, strict=False) if a != b), "number of words")] * 2
    return f"{verb[0].decode('latin-1')}: {shapes[0]} / {shapes[1]}"


def kind_of_frames(
    sent: str, left: Sequence[Line], right: Sequence[Line], known: Sequence[Known], counted: Counted
) -> str:
    """Return the first command that is answered differently, and what of the answer differs."""
    for mine, theirs in zip(left, right, strict=False):
        if same_line(mine, theirs, counted) or row_of(sent, mine, theirs, known, counted) is not None:
            continue
        (a, fields), (b, others) = _fields(mine.text), _fields(theirs.text)
        if a != b or fields.get("opaque") != others.get("opaque"):
            return f"{a} / {b}: one has nothing to say"
        if fields["status"] != others["status"]:
            return f"{a}: {fields['status']} / {others['status']}"
        differing = [name for name in {**fields, **others} if fields.get(name) != others.get(name)] or ["cas"]
        key = f" {fields.get('key')}" if a == "stat" and "key" not in differing else ""
        return f"{a}{key} {fields['status']}: {' and '.join(differing)}"
    more = [*left[len(right) :], *right[len(left) :]][0].text
    return f"{more.split(' ')[0]}: " + ("answered / not" if len(left) > len(right) else "not / answered")


def _fields(line: str) -> tuple[str, dict[str, str]]:
    """Return the name of a frame in words, and its fields."""
    found = _FRAME.fullmatch(line)
    assert found is not None, "a line has a first word"
    name, status, named, value = found.groups("")
    fields = dict(word.split("=", 1) for word in named.split())
    return name, {"status": "0x00" if status == "ok" else status, **fields, "value": value}


def _shape(line: bytes) -> str:
    if not line:
        return "nothing"
    if line.startswith(b"VALUE "):
        return "VALUE"
    if line.isdigit():
        return "number"
    found = _WORDS.fullmatch(line)
    return re.sub(r"\d+", "N", found[0].decode("latin-1")) if found else "data"


def _row_kind(table: Table, left: Rows, right: Rows) -> str:
    if len(left) != len(right):
        return "more on the left" if len(left) > len(right) else "more on the right"
    if len(left) > 1:
        return "several differ"
    # A counter's number differs anyway, up to renaming; whatever else differs says more.
    places = [place for place, (a, b) in enumerate(zip(left[0], right[0], strict=True)) if repr(a) != repr(b)]
    columns = [table.columns[place] for place in places if table.columns[place].name != "c" or len(places) == 1]
    return " and ".join(f"{column.name[0]} {column.type}" for column in columns) or "cas numbers"
