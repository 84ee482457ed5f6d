"""Rows of `containers`, the tables that they name, and which of them a connection uses."""

import re
import sqlite3
from dataclasses import dataclass, field

from columns import Column, column_of, quote
from database import Database
from refusal import Refusal

FIELDS = ("name, db_schema, db_table, key_columns, value_columns, flags, cas_column, expire_time_column, "
          "unique_idx_name_on_key")
SEPARATORS = re.compile(r"[,;| \n]+")
TOKEN = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|[A-Za-z_\x80-\U0010ffff]"
                   r"[\w$]*|\s+|.", re.DOTALL)


class Fault(Exception):
    """A row of `containers` that cannot be used."""


@dataclass(frozen=True)
class Container:
    """One row of `containers`."""

    name: str
    schema: str
    table: str
    key: str
    values: str
    flags: str
    cas: str
    expiry: str
    index: str


@dataclass(frozen=True)
class Table:
    """What a mapping uses of its table."""

    name: str
    key: Column
    values: tuple[Column, ...]
    flags: Column | None
    cas: Column | None
    expiry: Column | None
    references: tuple[tuple[str, str, str], ...]

    @property
    def quoted(self) -> str:
        """The name of the table as SQL writes it."""
        return quote(self.name)

    @property
    def selection(self) -> str:
        """The mapped columns, as a query selects them."""
        extra = [column.quoted if column else "NULL" for column in (self.flags, self.cas, self.expiry)]
        return ", ".join([self.key.quoted, *extra, *(column.quoted for column in self.values)])


@dataclass
class Mapping:
    """A usable row of `containers` with its table as the schema was when it was last read."""

    container: Container
    table: Table
    version: int


def _bare_name(token: str) -> str:
    """Remove the quotation marks of a name."""
    if token[:1] in "\"'`" and len(token) > 1:
        return token[1:-1].replace(token[0] * 2, token[0])
    return token[1:-1] if token[:1] == "[" else token


def collations_of(sql: str) -> dict[str, str]:
    """Find the collations that a CREATE TABLE declares for its columns."""
    depth = 0
    first: str | None = None
    after_collate = False
    found: dict[str, str] = {}
    for token in TOKEN.findall(sql):
        if token.isspace() or token.startswith("--") or token.startswith("/*"):
            continue
        if token == "(":
            depth += 1
            if depth == 1:
                first = None
        elif token == ")":
            depth -= 1
        elif token == "," and depth == 1:
            first = None
        elif depth == 1:
            if first is None:
                first = _bare_name(token)
            elif after_collate:
                found[first] = _bare_name(token)
            after_collate = token.upper() == "COLLATE"
    return found


def _find_table(database: Database, container: Container) -> tuple[str, str]:
    """Find the table that a row names, and its CREATE TABLE."""
    for name in (f"{container.schema}.{container.table}", container.table):
        rows = database.rows("SELECT name, type, sql FROM sqlite_master WHERE name = ?", [name])
        for found, kind, sql in rows:
            if kind == "table" and str(sql)[:14].upper().startswith("CREATE TABLE"):
                return str(found), str(sql)
            raise Fault(f"{name} is no table")
    raise Fault(f"there is no table {container.table}")


def _has_index(database: Database, container: Container, table: str, key: str) -> bool:
    """Tell whether the index of the row is unique and on the key column alone."""
    wanted = container.index
    if wanted.lower() == "primary":
        rows = database.rows("SELECT name FROM pragma_table_xinfo(?) WHERE pk > 0", [table])
        return [row[0] for row in rows] == [key]
    names = {f"{container.table}.{wanted}".lower(), wanted.lower(), f"{table}.{wanted}".lower()}
    for name, is_unique, is_partial in database.rows('SELECT name, "unique", partial FROM pragma_index_list(?)',
                                                     [table]):
        if str(name).lower() in names and is_unique and not is_partial:
            rows = database.rows("SELECT name FROM pragma_index_xinfo(?) WHERE key = 1", [name])
            if [row[0] for row in rows] == [key]:
                return True
    return False


def _references(database: Database, table: str, key: str) -> tuple[tuple[str, str, str], ...]:
    """Find the foreign keys of other tables that forbid to delete rows: the table, its column and the column here."""
    found = []
    for (other,) in database.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name != ?", [table]):
        for target, here, there, deletes in database.rows(
                'SELECT "table", "from", "to", on_delete FROM pragma_foreign_key_list(?)', [other]):
            if str(target).lower() == table.lower() and deletes not in ("CASCADE", "SET NULL"):
                found.append((str(other), str(here), key if there is None else str(there)))
    return tuple(found)


def value_names(text: str) -> list[str]:
    """Split `value_columns`; one name only is not split."""
    names = [name for name in SEPARATORS.split(text) if name]
    return names if len(names) > 1 else [text]


def resolve(database: Database, container: Container) -> Table:
    """Read the table of a row, or find the fault of the row."""
    if not container.schema or not container.table or not container.index:
        raise Fault("db_schema, db_table or unique_idx_name_on_key is empty")
    table, sql = _find_table(database, container)
    collations = collations_of(sql)
    columns: dict[str, Column | None] = {}
    generated = set()
    for name, declared, hidden in database.rows("SELECT name, type, hidden FROM pragma_table_xinfo(?)", [table]):
        columns[str(name)] = column_of(str(name), str(declared or ""), collations.get(str(name)))
        if hidden:
            generated.add(str(name))

    def needed(name: str) -> Column:
        """Give a column that must exist and be of a usable type."""
        if name not in columns:
            raise Fault(f"{table} has no column {name!r}")
        column = columns[name]
        if column is None or name in generated:
            raise Fault(f"column {name!r} of {table} cannot be used")
        return column

    def optional(name: str) -> Column | None:
        """Give a column for flags, cas number or expiry, if the table has it."""
        if not name or name == "0" or name not in columns:
            return None
        column = needed(name)
        if column.kind != "int":
            raise Fault(f"column {name!r} of {table} is no integer")
        return column

    key = needed(container.key)
    if key.kind != "int" and key.type not in ("CHAR", "VARCHAR", "VARBINARY"):
        raise Fault(f"column {key.name!r} of {table} cannot be a key")
    values = tuple(needed(name) for name in value_names(container.values))
    flags, cas, expiry = optional(container.flags), optional(container.cas), optional(container.expiry)
    if cas is not None and cas.bits < 64:
        raise Fault(f"column {cas.name!r} of {table} is too narrow for cas numbers")
    used = [column.name for column in (key, *values, flags, cas, expiry) if column]
    if len(set(used)) != len(used):
        raise Fault("a column is used twice")
    if not _has_index(database, container, table, key.name):
        raise Fault(f"{table} has no unique index {container.index!r} on {key.name!r} alone")
    return Table(table, key, values, flags, cas, expiry, _references(database, table, key.name))


@dataclass
class Registry:
    """The mappings in use: a row is read once, and again after a reload."""

    database: Database
    delimiter: bytes = b"."
    separator: bytes = b"|"
    default: str | None = None
    faults: list[str] = field(default_factory=list)
    used: dict[str, Mapping] = field(default_factory=dict)

    def reload(self) -> None:
        """Read options and rows again, and find the default mapping."""
        self.delimiter = self._option("table_map_delimiter", b".")
        self.separator = self._option("separator", b"|")
        self.used = {}
        self.default = None
        self.faults = []
        try:
            containers = self._containers("ORDER BY name")
        except sqlite3.Error as error:
            self.faults.append(f"containers: {error}")
            return
        containers.sort(key=lambda container: container.name != "default")
        for container in containers:
            try:
                self.used[container.name.lower()] = Mapping(container, resolve(self.database, container),
                                                            self.database.version())
            except (Fault, sqlite3.Error) as fault:
                self.faults.append(f"{container.name}: {fault}")
                continue
            self.default = container.name.lower()
            break

    def _option(self, name: str, default: bytes) -> bytes:
        """Read an option; empty, NULL and missing ones have their default."""
        try:
            rows = self.database.rows("SELECT name, value FROM config_options")
        except sqlite3.Error:
            return default
        for found, value in rows:
            if found == name and value not in (None, "", b""):
                data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
                return data[:32]
        return default

    def _containers(self, condition: str, *cells: str) -> list[Container]:
        """Read rows of `containers`."""
        rows = self.database.rows(f"SELECT {FIELDS} FROM containers {condition}", cells)
        return [Container(*("" if cell is None else str(cell) for cell in row)) for row in rows]

    def find(self, name: bytes) -> str | None:
        """Find a mapping by its name; None is an unknown one."""
        try:
            text = name.decode("utf-8")
        except UnicodeDecodeError:
            return None
        if text.lower() in self.used:
            return text.lower()
        try:
            for container in self._containers("WHERE name = ?", text):
                canonical = container.name.lower()
                if canonical not in self.used:
                    self.used[canonical] = Mapping(container, resolve(self.database, container),
                                                   self.database.version())
                return canonical
        except (Fault, sqlite3.Error):
            pass
        return None

    def mapping(self, binding: str | None) -> Mapping:
        """Give the mapping of a binding, with its table as it is now."""
        name = self.default if binding is None else binding
        if name is None:
            raise Refusal("SERVER_ERROR no row of containers is usable")
        if name not in self.used and self.find(name.encode()) is None:
            raise Refusal(f"SERVER_ERROR mapping {name} is no longer in containers: bind another")
        mapping = self.used[name]
        version = self.database.version()
        if mapping.version != version:
            try:
                table = resolve(self.database, mapping.container)
            except Fault as fault:
                raise Refusal(f"SERVER_ERROR mapping {name}: {fault}") from fault
            for old, new in ((mapping.table.flags, table.flags), (mapping.table.cas, table.cas),
                             (mapping.table.expiry, table.expiry)):
                if old is not None and new is None:
                    raise Refusal(f"SERVER_ERROR mapping {name}: column {old.name} no longer exists")
            mapping.table, mapping.version = table, version
        return mapping
