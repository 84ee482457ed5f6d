"""SQLite's tables as the catalog and the doctor see them: columns, indexes, and the configuration tables.

The plugin's schema `innodb_memcache` is kept as plain tables `containers`, `config_options` and `cache_policies`. A
file is one database: `db_schema.db_table` names the table called literally so where there is one, else `db_table`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from kvref import collations
from kvref.collations.charsets import UTF8MB4
from kvref.engine.mapping import Column, Naming
from kvref.errors import ConfigError, RowError, StoreError
from kvref.profiles import Profile
from kvref.storage.config.catalog import CONFIG_COLUMNS, DEFAULT_NAME, cache_script, foreign, naming_of
from kvref.storage.config.column_types import column_of, constraints
from kvref.storage.config.containers import (
    ACTING,
    CONTAINER_COLUMNS,
    ColumnDetails,
    Container,
    PolicyCell,
    Table,
    TableDetails,
)
from kvref.storage.rows import text_of
from kvref.storage.sqlite.blobs import keeping_blobs
from kvref.storage.sqlite.errors import of_opening
from kvref.storage.sqlite.file import OPEN_WAIT, SCHEME

# Words of a definition that make a table refuse rows, or change them.
_RULES: Final = re.compile(r"\b(CHECK|STRICT|CONFLICT|GENERATED|AS)\b", re.IGNORECASE)
# Defaults that are never NULL (lang_createtable.html, 3.2). PRAGMA table_xinfo shows expressions without brackets.
_LITERAL: Final = re.compile(r"[+-]?\d+(\.\d+)?|'([^']|'')*'|CURRENT_(TIME|DATE|TIMESTAMP)", re.IGNORECASE)
_VIRTUAL_TABLE: Final = re.compile(r"\s*CREATE\s+VIRTUAL\s", re.IGNORECASE)
_MEMBERS: Final = re.compile(r"'([^']*)'")
_OTHER_FILE: Final = "name another file, or rename the table and run `kvref init`"
_SHOWN: Final = 5  # names of tables in a message
VIRTUAL: Final = 2  # PRAGMA table_xinfo, column `hidden`; 3 is a stored generated column


def quote(identifier: str) -> str:
    """Return an identifier quoted for SQL; a hostile name stays a name."""
    if "\0" in identifier:
        raise ConfigError(f"{identifier!r} is not a name SQLite can hold: it contains NUL")
    return '"' + identifier.replace('"', '""') + '"'


def create(connection: sqlite3.Connection, collation: str, *, demo: bool) -> bool:
    """Create the configuration tables that are missing; return whether `containers` was created.

    `collation` is that of the demo table's key and the names of containers. With `demo`, the plugin's demo table and
    its row, too, if `containers` is missing.
    """
    there = {name.lower() for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    missing = [name for name in CONFIG_COLUMNS if name not in there]
    new = "containers" in missing
    for name in [*missing, *(["demo"] if demo and new else [])]:
        script = files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
        connection.executescript(f"BEGIN;\n{script.replace('{collation}', collation)}\nCOMMIT;")
    return new


def create_cache(connection: sqlite3.Connection, name: str) -> bool:
    """Create a cache table and its row of `containers`, and return True, unless there is a row with this name.

    Raises:
        ConfigError: no mapping can have this name, or another table has it.
    """
    script = cache_script(__package__, name)
    if _has_row(connection, name):
        return False
    if name.lower() in {table.lower() for table in _names(connection, "table")}:
        raise ConfigError(_taken(name))
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nCOMMIT;")
    except sqlite3.Error:
        connection.rollback()
        raise
    return True


def refuse_foreign(path: Path, *, missing_is_new: bool) -> None:
    """Raise ConfigError for a file that belongs to something else; nothing is written to it.

    Args:
        path: of the file; one without tables may become a store.
        missing_is_new: and so may one that does not exist.

    Raises:
        StoreError: the file cannot be read.
    """
    if not path.exists():
        if missing_is_new:
            return
        raise ConfigError(
            f"store {path}: there is no such file: create it with kvref init --store {SCHEME}{path}, or add --create"
        )
    if path.is_dir():
        raise StoreError(f"store {path}: it is a directory: name a file")
    with _read_only(path) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        names = [name for (name,) in found if not name.startswith("sqlite_")]
        columns = _column_names(connection, "containers")
    if not names or {each.lower() for each in columns}.issuperset(CONTAINER_COLUMNS):
        return
    if columns:
        raise ConfigError(f"store {path}: {foreign('containers', columns, CONTAINER_COLUMNS)}: {_OTHER_FILE}")
    shown = ", ".join(repr(name) for name in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    raise ConfigError(
        f"store {path}: the file has tables ({shown}) and no table containers: name another file, or add the"
        f" configuration tables to this one: kvref init --store {SCHEME}{path}"
    )


@contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file to read it in the block; raises StoreError if that fails."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=OPEN_WAIT)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise of_opening(path, error) from error


def _column_names(connection: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in _pragma(connection, "table_info", table)]


def refuse_clashes(path: Path, *, demo: bool, cache: str | None) -> None:
    """Raise ConfigError if tables that `kvref init` creates have names of other tables; nothing is written to the file.

    Args:
        path: of the file; it may not exist.
        demo: the demo table is created, if `containers` is missing.
        cache: name of a cache table that is created, None: `cache` if `containers` is missing and `demo` is not set.

    Raises:
        StoreError: the file cannot be read.
    """
    if not path.is_file():
        return
    with _read_only(path) as connection:
        kinds = {name.lower(): kind for name, kind in connection.execute("SELECT name, type FROM sqlite_master")}
        new = "containers" not in kinds
        wanted = CONFIG_COLUMNS | ({"demo_test": ("c1", "c2", "c3", "c4", "c5")} if demo and new else {})
        found = [foreign(each, _column_names(connection, each), wanted[each]) for each in wanted if each in kinds]
        if refusal := "; ".join(filter(None, found)):
            raise ConfigError(f"store {path}: {refusal}: {_OTHER_FILE}")
        name = cache or (DEFAULT_NAME if new and not demo else "")
        taken = [each for each in (name, f"{name}_expires") if each.lower() in kinds] if name else []
        if taken and (new or not _has_row(connection, name)):
            raise ConfigError(f"store {path}: {_taken(taken[0], kinds[taken[0].lower()])}")


def _has_row(connection: sqlite3.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM containers WHERE containers.name = ?", (name,))
    return found.fetchone() is not None


def _taken(name: str, kind: str = "table") -> str:
    article = "an" if kind == "index" else "a"
    return f"there is {article} {kind} {name!r} already: give the cache another name, --cache NAME"


class SQLiteCatalog:
    """Read the configuration tables and the mapped tables' shape from one connection."""

    def __init__(self, connection: sqlite3.Connection, profile: Profile) -> None:
        self._connection = connection
        self._profile = profile

    def containers(self) -> list[Container]:
        # Qualified: SQLite takes a bare "name" that no column has for a string literal.
        columns = ", ".join(f"containers.{quote(name)}" for name in CONTAINER_COLUMNS)
        rows = self._read(f"SELECT {columns} FROM containers", "containers")  # noqa: S608 - constant names
        return [
            Container(text_of(row[0]), *(None if cell is None else text_of(cell) for cell in row[1:]))
            for row in rows
            if row[0] is not None
        ]

    def options(self) -> dict[str, bytes | None]:
        rows = self._read("SELECT name, value FROM config_options", "config_options")
        value_column, _ = self._text_column("config_options", "value")
        charset = UTF8MB4 if value_column is None else value_column.charset
        return {text_of(name): None if value is None else charset.encode(text_of(value)) for name, value in rows}

    def naming(self) -> Naming:
        return naming_of(*self._text_column("containers", "name"))

    def _config_table(self, table: str) -> str | None:
        return next((name for name in _names(self._connection, "table") if name.lower() == table), None)

    def _text_column(self, table: str, wanted: str) -> tuple[Column | None, str]:
        """Return a column of a configuration table and its collation; None and "" where it is a view."""
        source = self._config_table(table)
        if source is None:
            return None, ""
        rows = self._pragma("table_xinfo", source)
        column, declared = next((row[1], row[2]) for row in rows if row[1].lower() == wanted)
        collation = self.column_collations(source)[column]
        return column_of(column, declared, collation, self._profile), collation

    def policies(self) -> list[PolicyCell] | None:
        found = self._config_table("cache_policies")
        if found is None:
            return None
        columns = [(row[1], row[2], row[5]) for row in self._pragma("table_xinfo", found)]
        order = ", ".join(quote(name) for name, _, place in sorted(columns, key=lambda each: each[2]) if place)
        rows = self._read(f"SELECT * FROM {quote(found)} ORDER BY {order or 'rowid'} LIMIT 1", found)  # noqa: S608
        cells = [
            (name, declared, None if cell is None else text_of(cell))
            for (name, declared, _), cell in zip(columns, rows[0] if rows else (), strict=False)
        ]
        return [PolicyCell(name, cell, _member(declared, cell)) for name, declared, cell in cells] or None

    def referenced(self, source: str) -> bool:
        return any(
            row[2].lower() == source.lower()
            for name in _names(self._connection, "table")
            for row in self._pragma("foreign_key_list", name)
        )

    def has_rules(self, source: str, filled: Collection[str]) -> bool:
        """Return whether a table can refuse a row for more than its key, or does something of its own with it.

        Commands write the columns `filled`, and into the other ones nothing but NULL and their defaults.
        """
        return self._acts(source, filled) or any(row[3] and not row[5] for row in self._pragma("table_xinfo", source))

    def has_rules_for_sets(self, source: str, filled: Collection[str], *, clear_unmapped: bool) -> bool:
        """Return what `has_rules` does for sets, which never leave the columns `filled` NULL.

        With `clear_unmapped`, a set writes NULL into the other ones; otherwise a new row has their defaults.
        """
        others = [row for row in self._pragma("table_xinfo", source) if row[1] not in filled]
        refuses = any(
            (not_null or position)
            if clear_unmapped
            else (not_null and not position and not _LITERAL.fullmatch(default or ""))
            for _, _, _, not_null, default, position, _ in others
        )
        return refuses or self._acts(source, filled)

    def _acts(self, source: str, filled: Collection[str]) -> bool:
        """Return what `has_rules` does, but for columns that are NOT NULL."""
        definitions = self._connection.execute(
            "SELECT type, sql FROM sqlite_master WHERE tbl_name = ? COLLATE NOCASE AND type IN ('table', 'trigger')",
            (source,),
        ).fetchall()
        return (
            any(kind == "trigger" or _RULES.search(definition) for kind, definition in definitions)
            or self._may_conflict(source, filled)
            or bool(self._pragma("foreign_key_list", source))
            or self.referenced(source)
        )

    def _may_conflict(self, source: str, filled: Collection[str]) -> bool:
        """Return whether a further unique index may refuse a row: all but those that only have NULL of new rows."""
        described = self._pragma("table_xinfo", source)
        null = {row[1] for row in described if row[4] is None and not (row[5] or row[6])} - {*filled}
        indexes = self._pragma("index_list", source)
        unique = [index for _, index, is_unique, _, _ in indexes if is_unique]
        columns = [{column for _, _, column in self._pragma("index_info", index)} for index in unique]
        # An INTEGER PRIMARY KEY has no index, and new rows get a free number in it unless commands write it.
        rowid = set() if any(row[3] == "pk" for row in indexes) else {row[1] for row in described if row[5]}
        return sum(not each <= null for each in columns) + (not rowid.isdisjoint(filled)) > 1

    def rolls_back(self) -> bool:
        """Return whether a trigger or a table names ROLLBACK: triggers write to other tables, so any of them counts."""
        found = self._connection.execute("SELECT 1 FROM sqlite_master WHERE sql LIKE '%ROLLBACK%' LIMIT 1")
        return found.fetchone() is not None

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table's columns and unique indexes, None when there is no such table; raises RowError for a view."""
        source = self.source_of(schema, name)
        if source is None:
            if self._named("view", schema, name) is not None:
                raise RowError(f"{schema}.{name} is a view: only tables can be mapped", "view")
            return None
        collation = self.column_collations(source)
        columns: dict[str, Column] = {}
        unusable: dict[str, str] = {}
        primary: dict[int, str] = {}
        generated: dict[str, int] = {}
        described = self._pragma("table_xinfo", source)
        for _, column, declared, not_empty, _, position, hidden in described:
            usable = column_of(column, declared, collation[column], self._profile)
            if hidden:
                unusable[column] = f"{declared} (generated)"
                generated[column] = hidden
            elif usable is None:
                unusable[column] = declared
            else:
                nullable = not (not_empty or position)
                columns[column] = keeping_blobs(replace(usable, nullable=nullable, collation=collation[column]))
            if position:
                primary[position] = column
        unique = {"PRIMARY": tuple(primary[n] for n in sorted(primary))} if primary else {}
        unique |= self._unique_indexes(source)
        virtual = frozenset(name for name, hidden in generated.items() if hidden == VIRTUAL)
        order, not_null = tuple(row[1] for row in described), {row[1] for row in described if row[3]}
        # InnoDB's rule: without a primary key the first unique index without NULLs takes its place.
        candidates = (names for name, names in unique.items() if name == "PRIMARY" or not_null.issuperset(names))
        clustered = next(candidates, ())
        return Table(
            source, columns, unusable, unique, frozenset(generated), virtual, order, clustered,
            self._descending(source),
        )  # fmt: skip

    def to_64_bits(self, schema: str, name: str, column: str) -> str:
        """See `Catalog`; SQLite changes no type, so that a new column takes the name of the old one."""
        source = self.source_of(schema, name) or name
        not_null, default = next(row[3:5] for row in self._pragma("table_xinfo", source) if row[1] == column)
        definition = f"INTEGER{constraints(default, nullable=not not_null)}"  # of 64 bits, in a STRICT table too
        if definition.endswith("NOT NULL"):
            definition += " DEFAULT 0"  # SQLite adds no such column without a DEFAULT
        table, old, new = (quote(each) for each in (source, column, f"{column}_wide"))
        return (
            f"ALTER TABLE {table} ADD COLUMN {new} {definition}; UPDATE {table} SET {new} = {old};"  # noqa: S608
            f" ALTER TABLE {table} DROP COLUMN {old}; ALTER TABLE {table} RENAME COLUMN {new} TO {old}"
        )

    def source_of(self, schema: str, name: str) -> str | None:
        return self._named("table", schema, name)

    def _named(self, kind: str, schema: str, name: str) -> str | None:
        known = _names(self._connection, kind)
        return next((n for n in (f"{schema}.{name}", name) if n in known), None)

    def column_collations(self, source: str) -> dict[str, str]:
        """Return the collation of each column, read from indexes of a copy: SQLite reports it for indexes only."""
        definition = _definition(self._connection, source)
        if _VIRTUAL_TABLE.match(definition):
            raise ConfigError(f"table {source} is a virtual table, which cannot be mapped: map an ordinary table")
        return dict(_collations_of(source, definition))

    def _unique_indexes(self, source: str) -> dict[str, tuple[str, ...]]:
        found = {}
        for _, index, unique, origin, partial in self._pragma("index_list", source):
            if unique and origin != "pk" and not partial:
                columns = [column for _, _, column in self._pragma("index_info", index)]
                if None not in columns and self._serves(source, index, columns[0]):
                    # Index names are global in SQLite: MySQL's name may stand behind the table's.
                    found[index.removeprefix(f"{source}.")] = tuple(columns)
        return found

    def _descending(self, source: str) -> frozenset[str]:
        return frozenset(
            "PRIMARY" if origin == "pk" else index.removeprefix(f"{source}.")
            for _, index, unique, origin, _ in self._pragma("index_list", source)
            if unique and self._pragma("index_xinfo", index)[0][3]
        )

    def _serves(self, source: str, index: str, column: str) -> bool:
        """Return whether a look-up by the column can use the index: one of another collation holds other rows equal."""
        table = quote(source)
        query = f"SELECT 1 FROM {table} INDEXED BY {quote(index)} WHERE {table}.{quote(column)} = 'x'"  # noqa: S608
        try:
            plan = self._connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
        except sqlite3.OperationalError:
            return False
        return any(str(step[-1]).startswith("SEARCH") for step in plan)

    def _pragma(self, name: str, argument: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(f"PRAGMA {name}({quote(argument)})").fetchall()
        except sqlite3.Error as error:
            raise ConfigError(f"{argument}: {error}") from error

    def _read(self, sql: str, table: str) -> list[tuple[object, ...]]:
        try:
            return self._connection.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            columns = [str(row[1]) for row in self._pragma("table_info", table)]
            fix = (
                f"{foreign(table, columns, CONFIG_COLUMNS[table.lower()])}: {_OTHER_FILE}"
                if columns
                else "create the tables with `kvref init`"
            )
            raise ConfigError(f"configuration table {table}: {error}: {fix}") from error
        except sqlite3.Error as error:
            raise ConfigError(f"configuration table {table}: {error}") from error


def _names(connection: sqlite3.Connection, kind: str) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))}


@lru_cache(maxsize=256)  # a reload, a further worker and a check of a file read the same definitions again
def _collations_of(source: str, definition: str) -> Mapping[str, str]:
    """Return the collation of each column of the table that a definition makes."""
    with closing(sqlite3.connect(":memory:")) as scratch:
        collations.register(scratch)
        try:
            scratch.execute(definition)
            names = [row[1] for row in scratch.execute(f"PRAGMA table_xinfo({quote(source)})")]
            scratch.execute(f"CREATE INDEX probe ON {quote(source)} ({', '.join(map(quote, names))})")
        except sqlite3.Error as error:
            raise ConfigError(f"table {source}: {error} (names of collations: see kvref.collations)") from error
        return {row[2]: row[4] for row in scratch.execute("PRAGMA index_xinfo(probe)") if row[2] is not None}


def _definition(connection: sqlite3.Connection, source: str) -> str:
    sql = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    return str(connection.execute(sql, (source,)).fetchone()[0])


def _member(declared: str, cell: str | None) -> int | None:
    members = _MEMBERS.findall(declared) if declared.upper().startswith("ENUM") else []
    return members.index(cell) + 1 if cell in members else None


_TEXT: Final = re.compile(r"CHAR|TEXT|ENUM|SET|CLOB", re.IGNORECASE)


def table_details(connection: sqlite3.Connection, catalog: SQLiteCatalog, source: str) -> TableDetails:
    """Read the details of a table; raises ConfigError if a collation is not known."""
    definition = _definition(connection, source)
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
