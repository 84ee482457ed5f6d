"""Compare decoded JSON with types as they are annotated: the fields of a step, the lines of a report."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

_SHOWN = 60


def mismatch(value: object, hint: Any, where: str = "") -> str:
    """Return where decoded JSON does not fit a type, and why; "" where it fits.

    Args:
        value: decoded JSON; a JSON list matches a tuple.
        hint: str, int, float, bool, None, object, tuple, Mapping with names, a union, or a TypedDict.
        where: the name of the value.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        faults = [mismatch(value, part, where) for part in parts]
        return "" if "" in faults else faults[0]
    if origin is tuple:
        return _items(value, parts, where)
    if origin is Mapping:
        if not isinstance(value, dict):
            return _fault(value, "a table", where)
        return _first(mismatch(each, parts[1], f"{where}.{name}") for name, each in value.items())
    if is_typeddict(hint):
        return _table(value, hint, where)
    if hint is object or _is_scalar(value, hint):
        return ""
    return _fault(value, "null" if hint is type(None) else hint.__name__, where)


def faults_of(made: dict[str, Any], hints: Mapping[str, Any], where: str) -> str:
    """Return where a table does not fit the types of its fields; fields that it has not are not fault here.

    Args:
        made: the table.
        hints: types by field.
        where: the name of the table.
    """
    return _first(
        mismatch(value, hints[name], f"{where}.{name}") if name in hints else f"{where}: unknown {name[:_SHOWN]!r}"
        for name, value in made.items()
    )


def _items(value: object, parts: tuple[Any, ...], where: str) -> str:
    if not isinstance(value, list):
        return _fault(value, "a list", where)
    if parts[-1] is not Ellipsis and len(value) != len(parts):
        return _fault(value, f"a list of {len(parts)}", where)
    each = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
    return _first(
        mismatch(item, part, f"{where}[{place}]") for place, (item, part) in enumerate(zip(value, each, strict=True))
    )


def _table(value: object, hint: Any, where: str) -> str:
    if not isinstance(value, dict):
        return _fault(value, "a table", where)
    hints = get_type_hints(hint)
    # Where annotations are strings, Python 3.11 counts fields that are not required as required.
    marked = get_type_hints(hint, include_extras=True)
    required = [
        name for name in hints if name in hint.__required_keys__ and get_origin(marked[name]) is not NotRequired
    ]
    if missing := [name for name in required if name not in value]:
        return f"{where}: no {missing[0]}"
    return _first(mismatch(value[name], part, f"{where}.{name}") for name, part in hints.items() if name in value)


def _is_scalar(value: object, hint: Any) -> bool:
    if hint is float:
        return type(value) is int or (type(value) is float and math.isfinite(value))
    return type(value) is hint


def _first(faults: Any) -> str:
    return next((fault for fault in faults if fault), "")


def _fault(value: object, wanted: str, where: str) -> str:
    return f"{where}: {repr(value)[:_SHOWN]} is not {wanted}"
