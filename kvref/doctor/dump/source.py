"""The tables of a dump as a server would show them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref.collations.charsets import CHARSETS, UTF8MB4
from kvref.doctor.dump.changes import CONFIGURATION, Changes
from kvref.doctor.dump.script import STANDARD_INPUT, Script, is_cut, read_dump, server_of
from kvref.doctor.dump.statements import full, quoted
from kvref.doctor.dump.tables import FULLTEXT
from kvref.doctor.source import Source
from kvref.documents import DocumentError
from kvref.errors import ConfigError, RowError, StoreError
from kvref.storage.config.catalog import naming_of
from kvref.storage.config.column_types import as_bigint, members
from kvref.storage.config.containers import CONTAINER_COLUMNS, Container, PolicyCell, TableDetails
from kvref.storage.mysql.schema import column_as_shown, refuse_unmappable, table_of

if TYPE_CHECKING:
    from kvref.doctor.dump.rows import Row
    from kvref.doctor.dump.tables import Table as DumpTable
    from kvref.engine.mapping import Naming
    from kvref.profiles import Profile
    from kvref.storage.config.containers import Table

_FIX: Final = "create the tables with `kvref init`"
_SERVER: Final = "check the server itself (--store)"


@contextmanager
def open_dump(path: Path) -> Iterator[DumpSource]:
    """Read a dump, also compressed; `-` is standard input.

    Raises:
        StoreError: the file cannot be read, or it or a statement exceeds a limit.
    """
    text = read_dump(path)
    server = server_of(text)
    changes = Changes(server)
    script = Script(text, server, changes.needs_rows)
    try:
        for statement in script:
            changes.apply(statement)
    except DocumentError as error:
        raise StoreError(f"dump {path}, {error}") from error
    changes.finish()
    yield DumpSource(path, changes, script, cut=is_cut(text))


class DumpSource(Source):
    """The tables of a dump, which does not show how the server writes its log."""

    def __init__(self, path: Path, changes: Changes, script: Script, *, cut: bool) -> None:
        server = changes.server
        self.name = "standard input" if str(path) == STANDARD_INPUT else str(path)
        self.of_mysql = not server.mariadb
        self.version = server.name if server.known and self.of_mysql else ""
        self._changes = changes
        self._cut = cut
        self.notes = [f"skipped, as no mapping depends on it: {each}" for each in dict.fromkeys(changes.skipped)]
        self.notes += [f"not a part of the dump: {each}" for each in dict.fromkeys(script.messages)]
        if cut:
            self.notes.append("the dump has no last line `-- Dump completed`: mysqldump did not finish it")
        if changes.doubt:
            self.notes.append(f"the whole dump cannot be judged: {changes.doubt}: {_SERVER}")
        doubts = {**changes.doubts, **{key: table.doubt for key, table in changes.tables.items() if table.doubt}}
        self.notes += [f"table {'.'.join(key)} cannot be read from the dump: {doubt}" for key, doubt in doubts.items()]

    def catalog(self, profile: Profile) -> DumpCatalog:
        return DumpCatalog(self._changes, profile)

    def details(self, schema: str, name: str) -> TableDetails:
        key = (schema, name)
        table = self._changes.tables.get(key)
        if table is None:
            return TableDetails()
        children = {
            ".".join(child): each.acts
            for child, other in self._changes.tables.items()
            for each in other.foreign.values()
            if each.parent == key
        }
        return TableDetails(
            {column.name: column.details() for column in table.columns},
            triggers=tuple(sorted(table.triggers)),
            checks=tuple(sorted(table.checks)),
            fulltext=tuple(sorted(name for name, index in table.indexes.items() if index.kind == FULLTEXT)),
            refers_to=tuple(dict.fromkeys(".".join(each.parent) for each in table.foreign.values())),
            referred_by=tuple(children),
            cascading=tuple(child for child, acts in children.items() if acts),
        )

    def why_missing(self, schema: str, name: str) -> str:
        key = (schema, name)
        if reason := self._changes.doubts.get(key):
            return f"table {schema}.{name} cannot be read from the dump: {reason}: {_SERVER}"
        if self._cut:
            return f"the dump has no table {schema}.{name}, and its end is missing: dump it again"
        if schema in self._changes.complete_schemas or key in self._changes.dropped:
            return ""
        return f"the dump has no table {schema}.{name}: dump its database too (mysqldump --databases … {schema})"


class DumpCatalog:
    """The catalog of a dump (`kvref.storage.config.containers.Catalog`)."""

    def __init__(self, changes: Changes, profile: Profile) -> None:
        self._changes = changes
        self._profile = profile

    def containers(self) -> list[Container]:
        """Return all rows; raises ConfigError if the table is missing, or the dump has no rows at all."""
        if (CONFIGURATION, "containers") not in self._changes.tables:
            doubt = f" ({self._changes.doubt})" if self._changes.doubt else ""
            fix = f"mysqldump --databases {CONFIGURATION} … has it"
            raise ConfigError(f"the dump has no table {CONFIGURATION}.containers{doubt}: {fix}")
        self._check("containers")
        if not self._changes.configured:
            raise ConfigError(f"the dump has no row of {CONFIGURATION}: make it without --no-data")
        rows = self._rows("containers", CONTAINER_COLUMNS)
        return [Container(name, *others) for name, *others in rows if name is not None]

    def options(self) -> dict[str, bytes | None]:
        table = self._required("config_options")
        text = next((column.text for column in table.columns if column.name.lower() == "value"), None)
        charset = UTF8MB4 if text is None else CHARSETS.get(text.charset, UTF8MB4)
        rows = self._rows("config_options", ("name", "value"))
        return {name: None if value is None else charset.encode(value) for name, value in rows if name is not None}

    def policies(self) -> list[PolicyCell] | None:
        table = self._certain_table("cache_policies")
        rows = self._changes.rows.get((CONFIGURATION, "cache_policies"))
        if table is None or not rows:
            return None
        first = _first(table, rows)
        cells = []
        for column in table.columns:
            cell = first[column.name.lower()]
            known = members(column.type.arguments) if column.type.word == "enum" else []
            cells.append(PolicyCell(column.name, cell, known.index(cell) + 1 if cell in known else None))
        return cells

    def naming(self) -> Naming:
        table = self._required("containers")
        if table.engine.lower() != "innodb":
            where = f"configuration table {CONFIGURATION}.containers"
            raise ConfigError(f"{where} is of engine {table.engine}: make it an InnoDB table")
        name = next((column for column in table.columns if column.name.lower() == "name"), None)
        if name is None or name.text is None:
            return naming_of(None, "")
        column = column_as_shown(name.name, name.type.declared, name.text.charset, self._profile)
        return naming_of(column, name.text.collation)

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table; raises RowError if something of it is not known, as of one that cannot be read."""
        key, source = (schema, name), full((schema, name))
        if key in self._changes.views:
            refuse_unmappable(source, "VIEW", "", bool)
        table = self._changes.tables.get(key)
        doubt = self._changes.doubt or ("" if table is None else table.doubt)
        if doubt:
            raise RowError(f"table {schema}.{name} cannot be read from the dump: {doubt}: {_SERVER}", "unseen")
        if table is None:
            return None
        refuse_unmappable(source, "BASE TABLE", table.engine, lambda: table.partitioned)
        described = [column.described() for column in table.columns]
        return table_of(source, described, table.index_rows(), self._profile)

    def to_64_bits(self, schema: str, name: str, column: str) -> str:
        table = self._changes.tables[schema, name]
        found = table.column(column)
        default = None if found.value is None else found.value.sql(dialect="mysql")
        definition = as_bigint(found.type.declared, default, nullable=found.nullable)
        return f"ALTER TABLE {full((schema, name))} MODIFY {quoted(found.name)} {definition}"

    def _check(self, name: str) -> None:
        """Raise StoreError if something of a configuration table is not known."""
        key = (CONFIGURATION, name)
        table = self._changes.tables.get(key)
        reason = self._changes.doubt or self._changes.doubts.get(key) or ("" if table is None else table.doubt)
        if reason:
            raise StoreError(f"{name} cannot be read from the dump: {reason}: {_SERVER}")

    def _certain_table(self, name: str) -> DumpTable | None:
        """Return a configuration table; None if the server certainly has none."""
        self._check(name)
        key = (CONFIGURATION, name)
        table = self._changes.tables.get(key)
        if table is None and CONFIGURATION not in self._changes.complete_schemas and key not in self._changes.dropped:
            fix = f"mysqldump --databases {CONFIGURATION} … has it"
            raise StoreError(f"the dump has no table {CONFIGURATION}.{name}: {fix}")
        return table

    def _required(self, name: str) -> DumpTable:
        table = self._certain_table(name)
        if table is None:
            raise ConfigError(f"the dump has no configuration table {CONFIGURATION}.{name}: {_FIX}")
        return table

    def _rows(self, name: str, columns: tuple[str, ...]) -> list[list[str | None]]:
        rows = self._changes.rows[CONFIGURATION, name]
        table = self._changes.tables[CONFIGURATION, name]
        for column in columns:
            if not table.has(column):
                raise ConfigError(f"configuration table {CONFIGURATION}.{name} has no column {column!r}: {_FIX}")
        return [[row[column] for column in columns] for row in rows]


def _first(table: DumpTable, rows: list[Row]) -> Row:
    """Return the first row in the order of the primary key."""
    names = [part.column for part in table.indexes["PRIMARY"].parts] if "PRIMARY" in table.indexes else []
    columns = [table.column(name) for name in names]
    orders = [naming_of(None, "" if column.text is None else column.text.collation).order for column in columns]

    def sort_key(row: Row) -> list[object]:
        return [order(row[column.name.lower()] or "") for column, order in zip(columns, orders, strict=True)]

    return min(rows, key=sort_key) if columns else rows[0]
