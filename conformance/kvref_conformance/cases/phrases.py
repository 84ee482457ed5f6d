"""Steps that several chapters share: one key in three tables, rows of `containers` that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import say, sql

if TYPE_CHECKING:
    from kvref_conformance.case import Say, Sql


def stored(word: str, value: str) -> Say:
    """Store a value under a word."""
    return say(f"set {word} 0 0 {len(value)}\r\n{value}\r\n", "STORED\r\n")


def shows(word: str, value: str, on: str = "a") -> Say:
    """Get a word and want that value under it."""
    return say(f"get {word}\r\n", f"VALUE {word} 0 {len(value)}\r\n{value}\r\nEND\r\n", on=on)


def misses(word: str) -> Say:
    """Get a word and want nothing."""
    return say(f"get {word}\r\n", "END\r\n")


# {k} is 1 in {m1}, 2 in {m2}, 3 in {q}; the connection ends bound to {m1}.
EVERYWHERE: Final = (stored("@@{m2}.{k}", "2"), stored("@@{q}.{k}", "3"), stored("@@{m1}.{k}", "1"))


def row_added(name: str, table: str) -> Sql:
    """Insert a containers row for a table of the usual shape."""
    columns = "'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY'"
    return sql(f"INSERT INTO {{containers}} VALUES ('{name}', 'test', '{table}', {columns})")  # noqa: S608 - a template


def row_removed(name: str) -> Sql:
    """Delete a containers row."""
    return sql(f"DELETE FROM {{containers}} WHERE name = '{name}'")  # noqa: S608 - a template
