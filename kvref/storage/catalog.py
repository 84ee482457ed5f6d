"""From rows of the configuration schema to mappings: every check the plugin makes at its start, with words for each.

Rules follow innodb_config.c (innodb_verify, innodb_config_container) and what was seen of it; the store supplies the
tables' columns and indexes as `Table`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Protocol

from kvref.errors import ConfigError
from kvref.profiles import Profile
from kvref.semantics.mapping import (
    DEFAULT_DELIMITER,
    DEFAULT_SEPARATOR,
    Column,
    Directory,
    Kind,
    Mapping,
    default_name,
    fold,
    option,
)

CONTAINER_COLUMNS: Final = (
    "name", "db_schema", "db_table", "key_columns", "value_columns",
    "flags", "cas_column", "expire_time_column", "unique_idx_name_on_key",
)  # fmt: skip
# How value_columns may separate names; a list of one name is not split (columns page, section 1).
_NAME_SEPARATORS: Final = re.compile(r"[,;| \n]+")


@dataclass(frozen=True, slots=True)
class Container:
    """One row of `containers` as it stands there; None is NULL."""

    name: str
    db_schema: str | None
    db_table: str | None
    key_columns: str | None
    value_columns: str | None
    flags: str | None
    cas_column: str | None
    expire_time_column: str | None
    unique_idx_name_on_key: str | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a store sees it.

    Args:
        source: its name in the store.
        columns: mappable columns by name.
        unusable: the other columns, each with its declared type.
        unique: unique indexes by name, each with its columns in order.
        generated: those of the other columns that cannot be written.
    """

    source: str
    columns: dict[str, Column]
    unusable: dict[str, str] = field(default_factory=dict)
    unique: dict[str, tuple[str, ...]] = field(default_factory=dict)
    generated: frozenset[str] = frozenset()


class Catalog(Protocol):
    """What this module asks of a store."""

    def containers(self) -> list[Container]:
        """Return all rows; raises ConfigError where the table is missing."""

    def options(self) -> dict[str, bytes | None]:
        """Return the rows of `config_options` by name; raises ConfigError where the table is missing."""

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table's columns and indexes, None when there is no such table."""


def read_directory(catalog: Catalog, profile: Profile) -> tuple[Directory, list[str]]:
    """Read the configuration and choose the default mapping.

    Args:
        catalog: the store.
        profile: decides what missing options mean and how names are ordered.

    Returns:
        The directory, and one sentence for each row that cannot be used.

    Raises:
        ConfigError: no usable row, or options that the profile does not do without.
    """
    delimiter, separator, problems = _options(catalog, profile)
    rows = {row.name: row for row in catalog.containers()}
    mappings: list[Mapping] = []
    for name in default_name(list(rows), profile["mapping.name_order"] == "upper"):
        try:
            mappings.append(check(rows[name], catalog, profile))
        except ConfigError as error:
            problems.append(str(error))
    if not mappings:
        causes = "".join(f"\n  {problem}" for problem in problems) or " it is empty"
        raise ConfigError(f"no usable row in containers:{causes}")
    directory = Directory(mappings[0], delimiter, separator)
    directory.remember(mappings[0])
    return directory, problems


def _options(catalog: Catalog, profile: Profile) -> tuple[bytes, bytes, list[str]]:
    rows = catalog.options()
    problems: list[str] = []
    if not rows or None in rows.values():
        if profile["config.missing_row"] == "refused":
            raise ConfigError("config_options is empty or holds a NULL: the plugin does not start with it either")
        problems += [f"config_options row {name!r} is NULL: taken as missing" for name, v in rows.items() if v is None]
    for name, builtin in (("table_map_delimiter", DEFAULT_DELIMITER), ("separator", DEFAULT_SEPARATOR)):
        if name not in rows:
            problems.append(f"config_options has no row {name!r}: {builtin.decode()!r} is used")
    return (
        option(rows.get("table_map_delimiter"), DEFAULT_DELIMITER),
        option(rows.get("separator"), DEFAULT_SEPARATOR),
        problems,
    )


def find(catalog: Catalog, profile: Profile, name: str) -> tuple[Mapping | None, str]:
    """Read one container by name, as a switch or bind asks for it.

    Returns:
        The mapping and an empty text, or None and why there is none.
    """
    for row in catalog.containers():
        if fold(row.name) == fold(name):
            try:
                return check(row, catalog, profile), ""
            except ConfigError as error:
                return None, str(error)
    return None, f"no container {name!r}"


def check(row: Container, catalog: Catalog, profile: Profile) -> Mapping:
    """Turn a containers row into a mapping.

    Raises:
        ConfigError: names the row, what is wrong with it and how to mend it.
    """
    where = f"container {row.name!r}"
    for column in ("db_schema", "db_table", "key_columns", "value_columns", "unique_idx_name_on_key"):
        if getattr(row, column) is None:
            raise ConfigError(f"{where}: {column} is NULL: name one")
    table = catalog.table(row.db_schema or "", row.db_table or "")
    if table is None:
        raise ConfigError(f"{where}: there is no table {row.db_schema}.{row.db_table}: create it or correct the row")
    key = _column(where, table, row.key_columns or "", "key column")
    if key.kind is Kind.BYTES:
        raise ConfigError(f"{where}: the key column {key.name} should be INTEGER, CHAR or VARCHAR")
    names = [name for name in _NAME_SEPARATORS.split(row.value_columns or "") if name]
    if len(names) < 2:
        names = [row.value_columns or ""]
    values = tuple(_column(where, table, name, "value column") for name in names)
    _check_index(where, table, key, row.unique_idx_name_on_key or "")
    flags, cas, expiry = (
        _option_column(where, table, getattr(row, column), column, profile)
        for column in ("flags", "cas_column", "expire_time_column")
    )
    if profile["containers.contradiction"] == "refused":
        _check_once(where, key, values, (flags, cas, expiry))
    # A column that holds a part of the value serves for nothing else (col-036, col-072, flag-073).
    flags, cas, expiry = (None if column in values else column for column in (flags, cas, expiry))
    mapped = {c.name for c in (key, *values, flags, cas, expiry) if c is not None}
    unmapped = tuple(n for n in (*table.columns, *table.unusable) if n not in mapped and n not in table.generated)
    return Mapping(
        row.name, row.db_schema or "", row.db_table or "", table.source, key, values, flags, cas, expiry, unmapped
    )


def _check_once(where: str, key: Column, values: tuple[Column, ...], options: tuple[Column | None, ...]) -> None:
    names = [column.name for column in (key, *values, *options) if column is not None]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{where}: column {', '.join(twice)} is mapped twice: a write would contradict itself")


def _column(where: str, table: Table, name: str, what: str) -> Column:
    if name in table.columns:
        return table.columns[name]
    if name in table.unusable:
        raise ConfigError(
            f"{where}: the {what} {name} is of type {table.unusable[name]}: map a CHAR, VARCHAR, TEXT, BLOB or INTEGER"
        )
    known = ", ".join((*table.columns, *table.unusable))
    raise ConfigError(f"{where}: table {table.source} has no {what} {name!r}: its columns are {known}")


def _check_index(where: str, table: Table, key: Column, index: str) -> None:
    columns = {name.lower(): columns for name, columns in table.unique.items()}.get(index.lower())
    if columns is None:
        known = ", ".join(table.unique) or "none"
        raise ConfigError(
            f"{where}: {index!r} is no unique index of table {table.source} (unique indexes: {known}):"
            f" the index on key column must be a unique index"
        )
    if columns != (key.name,):
        raise ConfigError(
            f"{where}: index {index} is on {', '.join(columns)}: it must be on the key column {key.name} only"
        )


def _option_column(where: str, table: Table, name: str | None, what: str, profile: Profile) -> Column | None:
    if name is None:
        if profile["containers.null_option"] == "refused":
            raise ConfigError(f"{where}: {what} has an invalid NULL value: write '0' for a feature that is not in use")
        return None
    column = table.columns.get(name)
    if column is None and name not in table.unusable:
        return None  # '0', '' or any name the table does not have: not in use (flag-002..024)
    if column is None or column.kind is not Kind.INTEGER:
        raise ConfigError(f"{where}: the {what} {name} in table {table.source} should be INTEGER")
    return column
