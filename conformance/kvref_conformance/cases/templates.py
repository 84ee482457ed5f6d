"""Parameters in the data of a case: `${verb}` is a value, `${#value}` its length, `${line*300}` 300 times a text.

They are replaced when a chapter is read. `{k}` and `<cas>` are names and holes of a run (`wire/template.py`).
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARAMETER: Final = re.compile(r"\$\{(#?)([a-z][a-z0-9_-]*)(?:\*(\d+|[a-z][a-z0-9_-]*))?\}")
_OF_TEXT: Final = ("text", "each", "between")


def filled(value: Any, given: Mapping[str, Any]) -> Any:
    """Return decoded TOML with parameters replaced; a string that is one parameter and nothing else becomes its value.

    Args:
        value: a string, or a list or table with strings at any depth.
        given: values by name; parameters of other names remain.
    """
    if isinstance(value, list):
        return [filled(each, given) for each in value]
    if isinstance(value, dict):
        return {name: filled(each, given) for name, each in value.items()}
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = PARAMETER.fullmatch(value)
    if whole is not None and whole[2] in given and not (whole[1] or whole[3]):
        return given[whole[2]]
    return PARAMETER.sub(lambda found: _text(found, given), value)


def _text(found: re.Match[str], given: Mapping[str, Any]) -> str:
    if found[2] not in given:
        return found[0]
    text, times = str(given[found[2]]), found[3] or "1"
    if not times.isdigit() and not isinstance(given.get(times), int):
        raise ValueError(f"{found[0]}: {times} is not a number of the matrix")
    return str(len(text)) if found[1] else text * int(given.get(times, times))


def parameters(value: Any) -> list[re.Match[str]]:
    """Return the parameters that decoded TOML has."""
    if isinstance(value, list | dict):
        return [found for each in (value.values() if isinstance(value, dict) else value) for found in parameters(each)]
    return list(PARAMETER.finditer(value)) if isinstance(value, str) and "${" in value else []


def rows(matrix: Any) -> Iterator[dict[str, Any]]:
    """Yield the values by name of each combination of a matrix.

    Args:
        matrix: lists of values by name, in which `{ from = 0, to = 9 }` is each of a range; of several names with
            blanks between, lists of as many values.

    Raises:
        ValueError: it has another form.
    """
    if not isinstance(matrix, dict) or not all(isinstance(values, list) for values in matrix.values()):
        raise ValueError(f"{matrix!r} is not a matrix: write lists of values by name")
    for combination in product(*(list(_each(values)) for values in matrix.values())):
        made: dict[str, Any] = {}
        for names, values in zip(map(str.split, matrix), combination, strict=True):
            row = [values] if len(names) == 1 else values
            if not isinstance(row, list) or len(row) != len(names):
                raise ValueError(f"matrix row {values!r}: write {len(names)} values, for {', '.join(names)}")
            made |= zip(names, row, strict=True)
        yield made


def _each(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if not isinstance(value, dict):
            yield value
            continue
        match value:
            case {"from": int(first), "to": int(last), **others} if not others:
                yield from range(first, last + 1)
            case {"from": str(first), "to": str(last), **others} if first.startswith("0x") and not others:
                yield from (f"{number:#04x}" for number in range(int(first, 16), int(last, 16) + 1))
            case {"from": str(first), "to": str(last), **others} if len(first) == len(last) == 1 and not others:
                yield from map(chr, range(ord(first), ord(last) + 1))
            case _:
                raise ValueError(f"{value!r} is not a range: write from and to, two numbers, opcodes or characters")


def joined(text: Any) -> str:
    """Return a text; of a table, its `text` for each combination of `each`, with `between` in between."""
    if isinstance(text, str):
        return text
    if not isinstance(text, dict) or "text" not in text or not text.keys() <= {*_OF_TEXT}:
        raise ValueError(f"{text!r} is not a text: write a string, or a table of {', '.join(_OF_TEXT)}")
    made: str = text.get("between", "").join(str(filled(text["text"], row)) for row in rows(text.get("each", {})))
    return made
