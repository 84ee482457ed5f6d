"""The suite's own TOML files, in tables of one kind: one loader, which names the file and what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import SuiteError
from kvref_conformance.data.typed import faults_of, mismatch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable


def tables(file: Traversable, row: type) -> Mapping[str, Any]:
    """Return the tables of a file by name.

    Args:
        file: TOML.
        row: TypedDict of each table; `object` checks none.

    Raises:
        SuiteError: no TOML, or a table that does not fit.
    """
    found = _parsed(file.read_text(encoding="utf-8"), file.name)
    for name, table in found.items():
        _check(table, row, f"{file.name}: {name}")
    return found


def rows(file: Traversable, key: str, row: type) -> list[Any]:
    """Return the rows `[[key]]` of a file, which has no other; arguments and errors as of `tables`."""
    return rows_of(file.read_text(encoding="utf-8"), file.name, key, row)


def rows_of(text: str, name: str, key: str, row: type) -> list[Any]:
    """Return the rows of a text; `name` is that of its file, for errors."""
    found = _parsed(text, name)
    if unknown := found.keys() - {key}:
        raise SuiteError(f"{name}: unknown {', '.join(sorted(unknown))}; it has [[{key}]]")
    listed: list[Any] = found.get(key, [])
    for number, each in enumerate(listed, 1):
        _check(each, row, f"{name}: {key} {number}")
    return listed


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return documents.toml_of(text)
    except DocumentError as error:
        raise SuiteError(f"{name}: {error}") from error


def _check(table: Any, row: type, where: str) -> None:
    if row is object:
        return
    fault = mismatch(table, row, where) or faults_of(table, get_type_hints(row), where)
    if not fault and (empty := [name for name, value in table.items() if value in ("", [], {})]):
        fault = f"{where}: {empty[0]} is empty"
    if fault:
        raise SuiteError(f"{fault}: a row has {', '.join(get_type_hints(row))}")
