"""The kinds under which differences are counted: the command, and what of its reply or of a row differs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kvref_conformance.differential.compare import row_of, same_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.differential.compare import Counted, Line, Rows
    from kvref_conformance.differential.known_differences import Known
    from kvref_conformance.strategies.world import Table

_FRAME: Final = re.compile(r"(\S+)(?: (\S+))?((?: (?!value=)\w+=\S*)*)(?: (.*))?", re.DOTALL)
_WORDS: Final = re.compile(
    rb"END|STORED|NOT_STORED|EXISTS|NOT_FOUND|DELETED|OK|RESET|ERROR|SUCCEED|<\w+>|(?:CLIENT|SERVER)_ERROR [^\r\n]*"
)


def kind_of_text(whole: bytes, left: bytes, right: bytes) -> str:
    """Return the verb of a request, and how the first differing lines of its two answers begin."""
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


def kind_of_rows(table: Table, left: Rows, right: Rows) -> str:
    """Return the columns in which the rows of a table differ, or that there are more on one side."""
    if len(left) != len(right):
        return "more on the left" if len(left) > len(right) else "more on the right"
    if len(left) > 1:
        return "several differ"
    # A counter's number differs anyway, up to renaming; whatever else differs says more.
    places = [place for place, (a, b) in enumerate(zip(left[0], right[0], strict=True)) if repr(a) != repr(b)]
    columns = [table.columns[place] for place in places if table.columns[place].name != "c" or len(places) == 1]
    return " and ".join(f"{column.name[0]} {column.type}" for column in columns) or "cas numbers"
