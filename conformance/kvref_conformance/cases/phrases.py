"""Steps that several chapters share: one key in three tables, columns of a shape, rows of `containers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Shape, send, sql

if TYPE_CHECKING:
    from kvref_conformance.steps import Send, Sql


# Columns for flags, cas number and expiry, as a Shape names them.
OPTIONS: Final = "f INT, c BIGINT UNSIGNED, e INT"


def try_store(word: str, value: str, answer: str | tuple[str, ...], verb: str = "set", *, flags: int = 0) -> Send:
    """Store a value under a word and want that answer."""
    return send(f"{verb} {word} {flags} 0 {len(value)}\r\n{value}\r\n", answer)


def store(word: str, value: str, verb: str = "set", *, flags: int = 0) -> Send:
    """Store a value under a word."""
    return try_store(word, value, "STORED\r\n", verb, flags=flags)


def hit(word: str, value: str, on: str = "a", *, flags: int = 0) -> Send:
    """Get a word and want that value under it."""
    return send(f"get {word}\r\n", f"VALUE {word} {flags} {len(value)}\r\n{value}\r\nEND\r\n", on=on)


def insert(key: str, *cells: str) -> Sql:
    """Insert a row into {t} by SQL; all but the key are SQL literals."""
    return sql(f"INSERT INTO {{t}} VALUES ('{key}', {', '.join(cells)})")  # noqa: S608 - a template


def miss(word: str) -> Send:
    """Get a word and want nothing."""
    return send(f"get {word}\r\n", "END\r\n")


# {k} is 1 in {m1}, 2 in {m2}, 3 in {q}; the connection ends bound to {m1}.
EVERYWHERE: Final = (store("@@{m2}.{k}", "2"), store("@@{q}.{k}", "3"), store("@@{m1}.{k}", "1"))


def map_table(name: str, table: str) -> Sql:
    """Insert a containers row for a table of the usual shape."""
    return mapping(name, table, key="c1", values="c2", flags="c3", cas="c4", expiry="c5")


def mapping(name: str, table: str = "{t}", schema: str = "test", index: str = "PRIMARY", **columns: str | None) -> Sql:
    """Insert a containers row; `columns` are key, values, flags, cas and expiry, where not as a Shape has them."""
    cells = {"key": "k", "values": "v", "flags": "f", "cas": "c", "expiry": "e", **columns}
    texts = [name, schema, table, *cells.values(), index]
    literals = ", ".join("NULL" if text is None else f"'{text}'" for text in texts)
    return sql(f"INSERT INTO {{containers}} VALUES ({literals})")  # noqa: S608 - a template


def unmap(name: str) -> Sql:
    """Delete a containers row."""
    return sql(f"DELETE FROM {{containers}} WHERE name = '{name}'")  # noqa: S608 - a template


def unmapped(name: str) -> Send:
    """Want no mapping of that name: its row cannot be used."""
    return send(f"bind {name}\r\nget @@{name}.{{k}}\r\n", "NOT_FOUND\r\nEND\r\n")


def value_table(declared: str, extra: str = "") -> Shape:
    """Return the usual table with a value column declared so."""
    return Shape(f"k VARCHAR(32) PRIMARY KEY, v {declared}, {OPTIONS}{extra}")


def type_name(declared: str) -> str:
    """Return a type as a part of a case's name."""
    return declared.partition("(")[0].lower().replace(" ", "-")
