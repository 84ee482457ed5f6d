"""Mappings: a checked row of `innodb_memcache.containers`, the set in force, and how a client's word names one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Final, NamedTuple

from kvref.collations.charsets import UTF8MB4, Charset
from kvref.engine.cache.memory import Policies
from kvref.engine.rules import Rules
from kvref.protocol.rules import MAX_KEY

DEFAULT_DELIMITER: Final = b"."
DEFAULT_SEPARATOR: Final = b"|"
# Columns that a mapping may have, by the names of the attributes of `Mapping` and `Row`.
OPTIONS: Final = ("flags", "cas", "expiry")
# Longer values of config_options count with their first 32 bytes (KV-DELIM-013, KV-SEP-008).
MAX_OPTION: Final = 32


class Kind(Enum):
    """What a column holds, as far as a mapping cares."""

    TEXT = "text"
    BYTES = "bytes"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True)
class ColumnCodec:
    """How a store keeps content that SQL shows otherwise than the wire; only stores call it, never for NULL.

    pads: the wire has spaces behind the text that SQL does not show.
    """

    to_sql: Callable[[Any], Any]
    from_sql: Callable[[Any], Any]
    pads: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A mapped column.

    Args:
        name: as the table spells it.
        width: longest content, in characters for CHAR and VARCHAR over UTF-8, else in bytes; None without limit.
        counts_bytes: the width counts bytes.
        cuts: the plugin cuts longer content to the width (CHAR, VARCHAR, BINARY, VARBINARY).
        exact: only content of just this width can be stored (FLOAT, DOUBLE).
        fixed: InnoDB keeps just this width, and the plugin does not fill shorter content up.
        indexable: its bytes have any length and an index holds all of them (VARBINARY), so that they can be a key.
        charset: of its text. Cells are str where that is UTF-8, else the bytes in this character set.
        surrogates: UTF-8 text in it may have the bytes of surrogates, as the plugin of 5.6 stores them.
        codec: between the wire and SQL; None if both have the same bytes.
        collation: how it compares, by the name that its store has for that; empty unless it is text.
    """

    name: str
    kind: Kind
    width: int | None = None
    counts_bytes: bool = False
    cuts: bool = False
    exact: bool = False
    fixed: bool = False
    indexable: bool = False
    low: int = 0
    high: int = 0
    charset: Charset = UTF8MB4
    surrogates: bool = True
    codec: ColumnCodec | None = None
    nullable: bool = False
    collation: str = ""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Mapping:
    """One usable row of `containers`; two reads of one row make two mappings.

    The store updates it in place when the table has changed; the verbs only read it.

    Args:
        source: the table as the store names it.
        values: one or more value columns in the order of the list.
        flags: the flags column, None if the mapping has none; the same holds for cas and expiry.
        unmapped: the table's other columns.
        columns: the table's columns, mapped or not.
        following: for each value column, the columns that follow it in InnoDB's record.
        secondary: the key's index is not the primary key.
        clustered: with a secondary index, the first column of InnoDB's clustered index; None if that is a hidden row
            ID, or of a type whose bytes are not known.
        descending: the key's index is descending.
        unsearchable: no key finds a row (an index of more columns than the key, which one profile accepts).
        not_null: columns without NULL in which the store must prevent NULL itself.
        hidden: the table has a hidden column of a FULLTEXT index.
        beginning: length in characters of the key prefix that is indexed; 0: the whole key.
        cascades: when a row is deleted, a foreign key may delete rows of this table.
        other_unique: another unique index than the key's may refuse a row.
        unique_values: such an index has a column that a write of an existing row may change.
        vindex: in Vitess, quoted name of what finds the shard of a key; empty: all rows are in one database.
        row: the containers row as the store read it.
        fault: why the table no longer fits, empty while it does.
        store: the name of its store, empty for the first or only one.
        identity: identifies the table among those of all stores; of the first or only store, it is `source`.
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
    columns: frozenset[str] = frozenset()
    following: tuple[tuple[Column, ...], ...] = ()
    secondary: bool = False
    clustered: Column | None = None
    descending: bool = False
    unsearchable: bool = False
    not_null: frozenset[str] = frozenset()
    hidden: bool = False
    beginning: int = 0
    cascades: bool = False
    other_unique: bool = False
    unique_values: bool = False
    vindex: str = ""
    row: object = None
    fault: str = ""
    store: str = ""
    identity: str = ""

    def __post_init__(self) -> None:
        self.identity = self.identity or self.source

    @property
    def written(self) -> frozenset[str]:
        """Return the names of the mapped columns, which commands write."""
        columns = (self.key, *self.values, self.flags, self.cas, self.expiry)
        return frozenset(each.name for each in columns if each is not None)

    def assign_store(self, store: str) -> None:
        """Note that the mapping is one of a store with this name."""
        self.store, self.identity = store, f"{store}:{self.source}"

    def become(self, other: Mapping) -> None:
        """Take over what a later check of the same row found; the store stays."""
        store = self.store
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))
        if store:
            self.assign_store(store)

    @property
    def options(self) -> dict[str, Column | None]:
        """Return the columns for flags, cas and expiry, by OPTIONS; None where the mapping has none."""
        return {use: getattr(self, use) for use in OPTIONS}

    @property
    def label(self) -> bytes:
        """Return `database/table`, the value of a switch word."""
        return f"{self.schema}/{self.table}".encode()


@dataclass(frozen=True, slots=True)
class Naming:
    """How names of containers are read and compared: by their column, `containers.name`.

    Args:
        charset: what a client's bytes are.
        width: longest name in characters, None without limit.
        fold: what equal names have in common.
        order: sort key; the first name is the default mapping's.
    """

    charset: Charset = UTF8MB4
    width: int | None = None
    fold: Callable[[str], str] = str.casefold
    order: Callable[[str], Any] = str.lower


@dataclass(slots=True)
class Directory:
    """The mappings in force and the options of `config_options`; shared by all sessions.

    Args:
        delimiter: value of table_map_delimiter, 1 to 32 bytes.
        separator: value of separator, 1 to 32 bytes.
        known: mappings read so far and kept until the next reload.
        generation: counts reloads, so that a session notices one.
        by_exact_name: a mapping is found again only under its row's own spelling, not under any equal name.
        policies: what the table and the memory cache are each for.
        usable: the mappings of all usable rows as they were read, to be shown.
        parts: of several stores, what each of them has read.
    """

    default: Mapping
    naming: Naming
    delimiter: bytes = DEFAULT_DELIMITER
    separator: bytes = DEFAULT_SEPARATOR
    known: dict[str, Mapping] = field(default_factory=dict)
    generation: int = 0
    by_exact_name: bool = False
    policies: Policies = field(default_factory=Policies)
    usable: tuple[Mapping, ...] = ()
    parts: tuple[Directory, ...] = field(default=(), repr=False, compare=False)

    @property
    def options(self) -> tuple[object, ...]:
        """Return what decides, of the configuration, how words are read and where commands look."""
        naming = self.naming.charset.name, self.naming.width
        return self.delimiter, self.separator, self.policies, self.by_exact_name, naming

    def find(self, name: str) -> Mapping | None:
        """Return a mapping that was read before and is kept under this name."""
        return self.known.get(self._key_of(name))

    def remember(self, mapping: Mapping) -> None:
        """Keep a mapping that was read; one that is kept already stays (innodb_config_container, HASH_INSERT)."""
        self.known.setdefault(self._key_of(mapping.name), mapping)

    def _key_of(self, name: str) -> str:
        return name if self.by_exact_name else self.naming.fold(name)

    def replace(self, other: Directory) -> None:
        """Put a freshly read configuration in force for every session."""
        self.default, self.delimiter, self.separator = other.default, other.delimiter, other.separator
        self.naming, self.known, self.by_exact_name = other.naming, other.known, other.by_exact_name
        self.policies, self.usable, self.parts = other.policies, other.usable, other.parts
        self.generation += 1


def default_name(names: list[str], order: Callable[[str], Any]) -> Iterator[str]:
    """Yield container names as candidates for the default mapping, sorted by the sort key `order`."""
    if "default" in names:
        yield "default"
    yield from sorted((n for n in names if n != "default"), key=order)


def option(value: bytes | None, builtin: bytes) -> bytes:
    """Return the effective value of a `config_options` row, the built-in one when missing or empty."""
    return value[:MAX_OPTION] if value else builtin


MARK: Final = b"@@"
_UNSENDABLE: Final = re.compile(rb"[\0\r\n ]")


class Switch(NamedTuple):
    """A word that selects a mapping; `key` is empty if there is none, `delimited` is whether there is a delimiter."""

    name: bytes
    key: bytes
    delimited: bool


def is_sendable(key: bytes) -> bool:
    """Return whether a client can send a key: SQL may have written a row under one that no line can have."""
    return 0 < len(key) <= MAX_KEY and not _UNSENDABLE.search(key)


def split_word(word: bytes, delimiter: bytes, rules: Rules) -> Switch | None:
    """Split a client's word, or return None for an ordinary key.

    Args:
        word: 1 to MAX_KEY bytes without blanks.
        delimiter: value of table_map_delimiter, 1 to 32 bytes.
        rules: how the profile splits (check_key_name_for_map_switch and innodb_switch_mapping in innodb_engine.cc).
    """
    if not word.startswith(MARK) or len(word) < rules.shortest_word:
        return None
    rest = word[len(MARK) :]
    if rules.delimiter_is_string:
        name, found, key = rest.partition(delimiter)
        return Switch(name, key, bool(found))
    # strtok_r: the word and the delimiter, a set of bytes, end at NUL (more:bin-207), leading members are skipped; the
    # delimiter's whole length is cut off after the name, whatever bytes are there.
    members, name = delimiter.split(b"\0")[0], rest.split(b"\0")[0]
    name = name.lstrip(members) if members else name
    for position, byte in enumerate(name):
        if byte in members:
            name = name[:position]
            break
    key = word[len(MARK) + len(name) + len(delimiter) :]
    return Switch(name, key, delimited=len(name) < len(rest))


def mapping_name(name: bytes, naming: Naming, rules: Rules) -> str:
    """Return a mapping's name as a client wrote it: to the plugin a key, up to MAX_KEY bytes, of `containers.name`."""
    malformed = naming.charset.malformed_at(name)
    if not rules.cuts_keys:
        return naming.charset.decode(name) if malformed is None else name.decode("utf-8", "replace")  # names nothing
    return naming.charset.decode(name[:malformed])[: naming.width]


def is_whole_name(name: bytes, text: str, naming: Naming, rules: Rules) -> bool:
    """Return whether `mapping_name`, which returned `text`, cut nothing off a client's name; the rest is as there."""
    return not rules.cuts_keys or naming.charset.encode(text) == name
