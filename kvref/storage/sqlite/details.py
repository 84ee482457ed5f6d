"""Details of SQLite's tables, as far as SQLite has what MySQL has: no FULLTEXT index, and CHECKs have no names."""

from __future__ import annotations

import re
import sqlite3
from typing import Any, Final

from kvref import collations
from kvref.storage.config.details import ACTING, ColumnDetails, TableDetails
from kvref.storage.sqlite.schema import VIRTUAL, SQLiteCatalog, quote

_TEXT: Final = re.compile(r"CHAR|TEXT|ENUM|SET|CLOB", re.IGNORECASE)


def table_details(connection: sqlite3.Connection, catalog: SQLiteCatalog, source: str) -> TableDetails:
    """Read the details of a table.

    Args:
        connection: of the file.
        catalog: over that connection.
        source: the table's name in SQLite.

    Raises:
        ConfigError: a collation that is not known.
    """
    ((definition,),) = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (source,)
    ).fetchall()
    collation = catalog.column_collations(source)
    counts = re.search(r"\bAUTOINCREMENT\b", definition, re.IGNORECASE) is not None
    columns = {}
    for _, name, declared, not_null, default, key, hidden in _pragma(connection, "table_xinfo", source):
        text = _TEXT.search(declared) is not None
        columns[name] = ColumnDetails(
            name,
            declared,
            charset=(collations.charset_of(collation[name]) or "") if text else "",
            collation=collation[name].lower() if text else "",
            nullable=not (not_null or key),
            default=default is not None,
            auto_increment=counts and bool(key),
            generated={0: "", VIRTUAL: "virtual"}.get(hidden, "stored"),
        )
    triggers = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE ORDER BY name", (source,)
    )
    references = _references(connection)
    theirs = [(child, actions) for child, parent, actions in references if parent.lower() == source.lower()]
    return TableDetails(
        columns,
        triggers=tuple(name for (name,) in triggers),
        refers_to=tuple(dict.fromkeys(parent for child, parent, _ in references if child == source)),
        referred_by=tuple(dict.fromkeys(child for child, _ in theirs)),
        cascading=tuple(dict.fromkeys(child for child, actions in theirs if not actions.isdisjoint(ACTING))),
    )


def _references(connection: sqlite3.Connection) -> list[tuple[str, str, frozenset[str]]]:
    """Return child, parent and what ON UPDATE and ON DELETE do, of every foreign key of the file."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [
        (name, row[2], frozenset((row[5].upper(), row[6].upper())))
        for name in names
        for row in _pragma(connection, "foreign_key_list", name)
    ]


def _pragma(connection: sqlite3.Connection, name: str, argument: str) -> list[tuple[Any, ...]]:
    return connection.execute(f"PRAGMA {name}({quote(argument)})").fetchall()
