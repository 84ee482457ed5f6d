"""A scenario file as one document for one scale: the file, what its scale changes, and what is set by hand."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import choices
from kvref_bench.errors import BenchError
from kvref_bench.scenario.checks import ABOUT, AT_A_SCALE, SERIES, Check, Tree, check

if TYPE_CHECKING:
    from collections.abc import Sequence

Document = dict[str, Any]
SCALES: Final = ("small", "laptop", "full")
_WHOLE: Final = {**ABOUT, **AT_A_SCALE}


def resolve(content: bytes, where: str, scale: str, overrides: Sequence[str]) -> Document:
    """Return the document of a scale, each key checked.

    content: of the file; where: its name for errors. overrides: `key=value`, the key with points between its parts.

    Raises:
        BenchError: no TOML, an unknown key or scale, a value that is not possible; with what is.
    """
    if scale not in SCALES:
        raise BenchError(f"scale {scale!r}: possible: {', '.join(SCALES)}")
    try:
        document: Document = documents.toml_of(content.decode())
    except ValueError as error:
        raise BenchError(f"{where}: no TOML: {error}") from error
    series, scales = document.pop("series", None), document.pop("scale", None)
    check(document, _WHOLE, where)
    named = _named(series, where)
    _check_scales(scales, named, where)
    chosen = scales[scale]
    for name, changes in chosen.pop("series", {}).items():
        named[name] = merge(named[name], changes)
    document = merge(document, chosen)
    for each in overrides:
        _set(document, named, each)
    document["series"] = _chosen(document.pop("only", list(named)), named, where)
    return document


def merge(below: Document, above: Document) -> Document:
    """Lay one document over another: tables of known keys are merged, everything else is replaced."""
    merged = copy.deepcopy(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both and key in ("table", "work", "keys", "values") else value
    return merged


def _named(series: Any, where: str) -> dict[str, Document]:
    if not isinstance(series, list) or not series or not all(isinstance(each, dict) for each in series):
        raise BenchError(f"{where}: series: write one or more [[series]]")
    named: dict[str, Document] = {}
    for place, each in enumerate(series, 1):
        check(each, SERIES, where, f"series {place}: ")
        for key in ("name", "over"):
            if key not in each:
                raise BenchError(f"{where}: series {place}: it has no {key}")
        if each["name"] in named:
            raise BenchError(f"{where}: series {place}: name = {each['name']!r} is taken; give another")
        named[each["name"]] = each
    return named


def _check_scales(scales: Any, named: dict[str, Document], where: str) -> None:
    if not isinstance(scales, dict) or sorted(scales) != sorted(SCALES):
        found = ", ".join(scales) if isinstance(scales, dict) else "none"
        raise BenchError(f"{where}: scale: it must have the tables {', '.join(SCALES)}; found: {found}")
    for name, given in scales.items():
        path = f"scale.{name}."
        if not isinstance(given, dict):
            raise BenchError(f"{where}: scale.{name} = {given!r}: it must be a table")
        check({key: value for key, value in given.items() if key != "series"}, AT_A_SCALE, where, path)
        check(given.get("series", {}), dict.fromkeys(named, SERIES), where, f"{path}series.")


def _chosen(names: Sequence[str], named: dict[str, Document], where: str) -> list[Document]:
    unknown = [name for name in names if name not in named]
    if unknown:
        raise BenchError(f"{where}: only = {unknown!r}: no such series; possible: {', '.join(named)}")
    return [named[name] for name in named if name in names]


def _set(document: Document, named: dict[str, Document], override: str) -> None:
    path, equals, given = override.partition("=")
    if not equals:
        raise BenchError(f"{override!r}: write KEY=VALUE, for example measure=2")
    parts = path.strip().split(".")
    tree: Tree = {**AT_A_SCALE, "series": dict.fromkeys(named, SERIES)}
    expected = _find(tree, parts)
    value = _value(given.strip(), expected)
    change: Any = value
    for part in reversed(parts):
        change = {part: change}
    check({key: each for key, each in change.items() if key != "series"}, AT_A_SCALE, "set by hand")
    if parts[0] == "series":
        check(change["series"], dict.fromkeys(named, SERIES), "set by hand", "series.")
        named[parts[1]] = merge(named[parts[1]], change["series"][parts[1]])
        return
    document.update(_laid(document, change, parts))
    if parts[0] == "work":
        # What is set for all series is meant for those too that have it themselves.
        for name, each in named.items():
            if parts[1] in each:
                named[name] = _laid(each, change["work"], parts[1:])


def _laid(below: Document, above: Document, parts: Sequence[str]) -> Document:
    if parts[0] in ("settings", "verbs", "statements", "procedures") and len(parts) > 1:
        return {**below, parts[0]: {**below.get(parts[0], {}), **above[parts[0]]}}
    if len(parts) > 1:
        return {**below, parts[0]: _laid(below.get(parts[0], {}), above[parts[0]], parts[1:])}
    return {**below, **above}


def _find(tree: Tree, parts: Sequence[str]) -> Check | None:
    """Return the check of a path; none for a name inside a table of free names, or where the path ends too early."""
    at: Check | Tree = tree
    for place, part in enumerate(parts):
        if isinstance(at, Check):
            return at if place == len(parts) - 1 else None
        if part not in at:
            path = ".".join(parts[: place + 1])
            raise BenchError(f"{path}: there is no such key to set{choices(part, sorted(at))}")
        at = at[part]
    return at if isinstance(at, Check) else None


def _value(given: str, expected: Check | None) -> Any:
    many = expected is not None and expected.many and not given.startswith(("[", "{"))
    for form in (f"[{given}]",) if many else (given,):
        try:
            return documents.toml_of(f"value = {form}")["value"]
        except DocumentError:
            continue
    # A word needs no quotes in a shell.
    return [each.strip() for each in given.split(",")] if many else given
