"""A scenario file as one document for one scale: the file, what its scale changes, and what is set by hand.

`scenario.schema.json` says what may stand in a file.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import jsonschema

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import choices
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Sequence

Document = dict[str, Any]
SCALES: Final = ("small", "laptop", "full")


def resolve(content: bytes, where: str, scale: str, overrides: Sequence[str]) -> Document:
    """Return the document of a scale, each key checked; its series are a list.

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
    check(document, where)
    series, scales = document.pop("series"), document.pop("scale")
    named = {each["name"]: each for each in series}
    if len(named) < len(series):
        raise BenchError(f"{where}: two series have one name: {', '.join(each['name'] for each in series)}")
    chosen = scales[scale]
    for name, changes in chosen.pop("series", {}).items():
        _known(name, named, where)
        named[name] = merge(named[name], changes)
    document = merge(document, chosen)
    for each in overrides:
        document = _set(document, named, each)
    check({**document, "series": list(named.values()), "scale": scales}, f"{where}, {', '.join(overrides)}")
    for name in document.get("only", ()):
        _known(name, named, where)
    document["series"] = [each for name, each in named.items() if name in document.get("only", named)]
    document.pop("only", None)
    return document


def merge(below: Document, above: Document) -> Document:
    """Lay one document over another: tables of known keys are merged, everything else is replaced."""
    merged = copy.deepcopy(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both and key in ("table", "work", "keys", "values") else value
    return merged


@cache
def schema() -> Document:
    """Return the JSON Schema of a scenario file."""
    found: Document = json.loads((files(__package__) / "scenario.schema.json").read_text(encoding="utf-8"))
    return found


@cache
def _validator() -> Any:
    # JSON Schema takes 1.0 for an integer.
    kinds = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, given: isinstance(given, int) and not isinstance(given, bool)
    )
    extend: Any = jsonschema.validators.extend
    return extend(jsonschema.Draft202012Validator, type_checker=kinds)(schema())


def check(document: Document, where: str) -> None:
    """Raise BenchError, naming the first field at fault, unless a document keeps to the schema."""
    error = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    if error is None:
        return
    path = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = sorted(error.schema["properties"])
        unknown = next(str(key) for key in error.instance if key not in known)
        name = f"{path}.{unknown}".lstrip(".")
        raise BenchError(f"{where}: {name}: there is no such key{choices(unknown, known)}")
    raise BenchError(f"{where}: {path}: {error.message[:300]}")


def _known(name: str, named: Document, where: str) -> None:
    if name not in named:
        raise BenchError(f"{where}: no series {name!r}; possible: {', '.join(named)}")


def _set(document: Document, named: Document, override: str) -> Document:
    path, equals, given = override.partition("=")
    if not equals:
        raise BenchError(f"{override!r}: write KEY=VALUE, for example measure=2")
    parts = path.strip().split(".")
    value = _value(given.strip(), _schema_of(parts).get("type") == "array")
    if parts[0] == "series":
        _known(parts[1] if len(parts) > 1 else "", named, override)
        named[parts[1]] = _put(named[parts[1]], parts[2:], value)
        return document
    if parts[0] == "work":
        # What is set for all series is meant for those too that have it themselves.
        for name, each in named.items():
            if parts[1:2] and parts[1] in each:
                named[name] = _put(each, parts[1:], value)
    changed: Document = _put(document, parts, value)
    return changed


def _put(below: Any, parts: Sequence[str], value: Any) -> Any:
    """Return a copy of a document with the value at a path."""
    if not parts:
        return value
    under: Document = below if isinstance(below, dict) else {}
    return {**under, parts[0]: _put(under.get(parts[0]), parts[1:], value)}


def _schema_of(parts: Sequence[str]) -> Document:
    """Return the schema of the value at a path; an empty one for a path that there is not."""
    at: Any = schema()["$defs"]["scale"]
    for part in parts:
        at = at.get("properties", {}).get(part) or at.get("additionalProperties") or {}
        if "$ref" in at:
            at = schema()["$defs"][at["$ref"].rpartition("/")[2]]
    found: Document = at
    return found


def _value(given: str, many: bool) -> Any:
    """Read a value set by hand; many: it is a list, whose brackets may be left out, as quotes of words may."""
    many = many and not given.startswith("[")
    for form in (f"[{given}]",) if many else (given, f"[{given}]"):
        try:
            return documents.toml_of(f"value = {form}")["value"]
        except DocumentError:
            continue
    return [each.strip() for each in given.split(",")] if many else given
