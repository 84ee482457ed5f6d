"""Mappings: what a row of `innodb_memcache.containers` says once it is checked, and the set of them in force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

DEFAULT_DELIMITER: Final = b"."
DEFAULT_SEPARATOR: Final = b"|"
# Longer values of config_options count with their first 32 bytes (core page, section 9; columns page, section 1).
MAX_OPTION: Final = 32


class Kind(Enum):
    """What a column holds, as far as a mapping cares."""

    TEXT = "text"
    BYTES = "bytes"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True)
class Column:
    """A mapped column.

    Args:
        name: as the table spells it.
        kind: text, bytes or integer.
        width: longest content, in characters for CHAR and VARCHAR, else in bytes; None without limit.
        counts_bytes: the width counts bytes.
        cuts: the plugin cuts longer content to the width (CHAR, VARCHAR, BINARY, VARBINARY).
        low: smallest integer it holds.
        high: largest integer it holds.
    """

    name: str
    kind: Kind
    width: int | None = None
    counts_bytes: bool = False
    cuts: bool = False
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    """One usable row of `containers`; two readings of one row are two mappings.

    Args:
        name: the container's name.
        schema: its db_schema.
        table: its db_table.
        source: the table as the store names it.
        key: the key column.
        values: one or more value columns in the order of the list.
        flags: the flags column, None where not in use; likewise cas and expiry.
        unmapped: the table's other columns.
    """

    name: str
    schema: str
    table: str
    source: str
    key: Column
    values: tuple[Column, ...]
    flags: Column | None
    cas: Column | None
    expiry: Column | None
    unmapped: tuple[str, ...] = ()

    @property
    def label(self) -> bytes:
        """Return `database/table`, the value of a switch word."""
        return f"{self.schema}/{self.table}".encode()


def fold(name: str) -> str:
    """Return the form in which container names are compared: their column's collation ignores case."""
    return name.casefold()


@dataclass(slots=True)
class Directory:
    """The mappings in force and the options of `config_options`; shared by all sessions.

    Args:
        default: the mapping of a new connection.
        delimiter: value of table_map_delimiter, 1 to 32 bytes.
        separator: value of separator, 1 to 32 bytes.
        known: mappings used or loaded so far, by folded name.
        generation: counts reloads, so that a session notices one.
    """

    default: Mapping
    delimiter: bytes = DEFAULT_DELIMITER
    separator: bytes = DEFAULT_SEPARATOR
    known: dict[str, Mapping] = field(default_factory=dict)
    generation: int = 0

    def find(self, name: str) -> Mapping | None:
        """Return a mapping already known by this name, whatever its case."""
        return self.known.get(fold(name))

    def remember(self, mapping: Mapping) -> None:
        """Keep a mapping that was found in `containers` until the next reload."""
        self.known[fold(mapping.name)] = mapping

    def replace(self, other: Directory) -> None:
        """Put a freshly read configuration in force for every session."""
        self.default, self.delimiter, self.separator = other.default, other.delimiter, other.separator
        self.known = other.known
        self.generation += 1


def default_name(names: list[str], upper: bool) -> Iterator[str]:
    """Yield container names in the order in which they are candidates for the default mapping.

    Args:
        names: all names.
        upper: letters compare as upper case (fact `mapping.name_order`).
    """
    if "default" in names:
        yield "default"
    yield from sorted((n for n in names if n != "default"), key=str.upper if upper else str.lower)


def option(value: bytes | None, builtin: bytes) -> bytes:
    """Return the effective value of a `config_options` row, the built-in one when missing or empty."""
    return value[:MAX_OPTION] if value else builtin
