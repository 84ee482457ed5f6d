"""From one row of `containers` to a mapping: every check of the plugin, and what else explains its table.

Rules follow innodb_config.c (innodb_verify_low) and what was seen of it; the store supplies the tables' columns and
indexes as `Table`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Final, Protocol

from kvref.engine.mapping import Column, Kind, Mapping, Naming
from kvref.errors import ConfigError, RowError
from kvref.profiles import Profile
from kvref.storage.config.codecs import LARGEST_INTEGER

ACTING: Final = ("CASCADE", "SET NULL")  # what a foreign key does to its own table's rows


@dataclass(frozen=True, slots=True)
class ColumnDetails:
    """One column as its table declares it.

    Args:
        charset, collation: of its text, by MySQL's name or one of SQLite's own; empty for other types.
        default: it has a DEFAULT.
        generated: `virtual`, `stored`, or empty for an ordinary column.
    """

    name: str
    declared: str
    charset: str = ""
    collation: str = ""
    nullable: bool = True
    default: bool = False
    auto_increment: bool = False
    generated: str = ""

    @property
    def word(self) -> str:
        """Return the type's name in upper case, without width and sign."""
        return self.declared.partition("(")[0].upper().partition(" ")[0]

    @property
    def unsigned(self) -> bool:
        return "UNSIGNED" in self.declared.upper() or "ZEROFILL" in self.declared.upper()


@dataclass(frozen=True, slots=True)
class TableDetails:
    """One table; names of its parts, and of tables that its foreign keys refer to, and whose foreign keys refer to it.

    `cascading`: those of them that change or delete rows then: ON DELETE or ON UPDATE CASCADE or SET NULL.
    """

    columns: dict[str, ColumnDetails] = field(default_factory=dict)
    triggers: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    fulltext: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()
    referred_by: tuple[str, ...] = ()
    cascading: tuple[str, ...] = ()


CONTAINER_COLUMNS: Final = (
    "name", "db_schema", "db_table", "key_columns", "value_columns",
    "flags", "cas_column", "expire_time_column", "unique_idx_name_on_key",
)  # fmt: skip
# How value_columns may separate names; a list of one name is not split (KV-COL-033, KV-COL-035).
_NAME_SEPARATORS: Final = re.compile(r"[,;| \n]+")
_VALUE_TYPES: Final = "INTEGER, CHAR, VARCHAR, TEXT or BLOB"


@dataclass(frozen=True, slots=True)
class Container:
    """One row of `containers`, unchanged; None is NULL."""

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
class Vindex:
    """The primary vindex of a table of Vitess, which finds the shard of a row by columns; no `name`: it has none."""

    keyspace: str
    name: str
    kind: str
    columns: tuple[str, ...]

    @property
    def source(self) -> str:
        return ".".join([f"`{each.replace('`', '``')}`" for each in (self.keyspace, self.name)])


@dataclass(frozen=True, slots=True)
class Table:
    """A table, as the store describes it.

    Args:
        source: its name in the store.
        columns: mappable columns by name.
        unusable: the other columns, each with its declared type.
        unique: unique indexes by name, each with its columns in order.
        generated: those of the other columns that cannot be written.
        virtual: those of the generated ones that are computed when read.
        order: all columns, in the order of the table.
        clustered: the columns of InnoDB's clustered index, which come first in its record.
        descending: unique indexes whose first column is.
        not_null: columns whose NULL SQL would replace or refuse.
        hidden: a FULLTEXT index stores its document IDs in a hidden column.
        beginnings: for each unique index on a prefix of a column, the length of the prefix in characters.
        cascades: when a row is deleted, a foreign key may delete rows of this table.
        denial: why the store does not show all columns, in parentheses, and the fix; "" if it shows all.
        vindex: what distributes its rows over the shards of Vitess; None: they are in one database.
    """

    source: str
    columns: dict[str, Column]
    unusable: dict[str, str] = field(default_factory=dict)
    unique: dict[str, tuple[str, ...]] = field(default_factory=dict)
    generated: frozenset[str] = frozenset()
    virtual: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    clustered: tuple[str, ...] = ()
    descending: frozenset[str] = frozenset()
    not_null: frozenset[str] = frozenset()
    hidden: bool = False
    beginnings: dict[str, int] = field(default_factory=dict)
    cascades: bool = False
    denial: str = ""
    vindex: Vindex | None = None


@dataclass(frozen=True, slots=True)
class PolicyCell:
    """One cell of the first row in primary key order; `word`: as in SQL, None for NULL.

    `member`: its number in the column's ENUM, from 1; None where the column is of another type, or for NULL.
    """

    column: str
    word: str | None
    member: int | None


class Catalog(Protocol):
    """What this module requires of a store."""

    def containers(self) -> list[Container]:
        """Return all rows; raises ConfigError where the table is missing."""

    def options(self) -> dict[str, bytes | None]:
        """Return the rows of `config_options` by name; raises ConfigError where the table is missing."""

    def policies(self) -> list[PolicyCell] | None:
        """Return the first row of `cache_policies` in primary key order; None where table or row is missing."""

    def naming(self) -> Naming: ...

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table's columns and indexes, None without such a table; raises RowError if it cannot be mapped."""

    def to_64_bits(self, schema: str, name: str, column: str) -> str:
        """Return the SQL that makes a column of such a table a BIGINT: its numbers, NOT NULL and DEFAULT stay."""


def check(row: Container, catalog: Catalog, profile: Profile) -> Mapping:
    """Return the mapping of a row of `containers`; a ConfigError names the row, what is wrong and how to fix it."""
    try:
        return _checked(row, catalog, profile)
    except RowError as error:
        raise RowError(f"container {row.name!r}: {error}", error.rule) from error
    except ConfigError as error:
        raise ConfigError(f"container {row.name!r}: {error}") from error


def _checked(row: Container, catalog: Catalog, profile: Profile) -> Mapping:
    for column in ("db_schema", "db_table", "key_columns", "value_columns", "unique_idx_name_on_key"):
        if getattr(row, column) is None:
            raise RowError(f"{column} is NULL: name one", f"null-{column}")
    for column in ("db_table", "key_columns", "value_columns", "unique_idx_name_on_key"):
        if not getattr(row, column):
            raise RowError(f"{column} is empty: name one", f"empty-{column}")
    if profile["containers.null_option"] == "refused":
        _refuse_null_options(row)
    table = _table(row, catalog, profile)
    names = [name for name in _NAME_SEPARATORS.split(row.value_columns or "") if name]
    if len(names) < 2:
        names = [row.value_columns or ""]
    _refuse_unreadable(table, row, names)
    if table.virtual and profile["containers.virtual_columns"] == "refused":
        columns = ", ".join(sorted(table.virtual))
        raise RowError(f"table {table.source} contains virtual columns: {columns}: make them STORED", "virtual-columns")
    key = _column(table, row.key_columns or "", "key column", _key_types(profile))
    _check_key(key, profile)
    values = tuple(_column(table, name, "value column", _VALUE_TYPES) for name in names)
    if len(values) > 1 and profile["containers.bytes_among_several"] == "refused":
        _check_several(table, values)
    if key in values and profile["containers.key_as_value"] == "refused":
        raise RowError(f"the key column {key.name} cannot be a value column too", "key-among-values")
    index, indexed = key_index(table, key, row.unique_idx_name_on_key or "", profile)
    beginning = table.beginnings.get(index, 0) if profile["store.index_on_beginning"] == "beginning" else 0
    if table.vindex is not None:
        _check_vindex(table.source, table.vindex, key)
    flags, cas, expiry = _option_columns(table, row, (key, *values), catalog, profile)
    if profile["containers.narrow_cas"] == "refused":
        _refuse_narrow_cas(table, row, cas, catalog, profile)
    mapped = {c.name for c in (key, *values, flags, cas, expiry) if c is not None}
    secondary = indexed != table.clustered
    clustered = table.columns.get(table.clustered[0]) if secondary and table.clustered else None
    others = {column for name, columns in table.unique.items() if name != index for column in columns}
    unmapped = tuple(n for n in (*table.columns, *table.unusable) if n not in mapped and n not in table.generated)
    return Mapping(
        row.name, row.db_schema or "", row.db_table or "", table.source, key, values, flags, cas, expiry, unmapped,
        columns=frozenset(table.order), following=tuple(_following_columns(table, column) for column in values),
        secondary=secondary, clustered=clustered, descending=index in table.descending,
        unsearchable=indexed != (key.name,), not_null=table.not_null, hidden=table.hidden, beginning=beginning,
        cascades=table.cascades, other_unique=bool(table.unique.keys() - {index}),
        unique_values=bool(others & (mapped - {key.name} | table.generated)), row=row,
        vindex="" if table.vindex is None else table.vindex.source,
    )  # fmt: skip


def _refuse_unreadable(table: Table, row: Container, values: list[str]) -> None:
    """Refuse a row that names a column which may be there unseen: taken for an option not in use, it would be lost."""
    options = [each for each in (row.flags, row.cas_column, row.expire_time_column) if each not in (None, "", "0")]
    unseen = [name for name in (row.key_columns, *values, *options) if name not in table.order]
    if table.denial and unseen:
        text = f"the account lacks SELECT on the column {unseen[0]} of {table.source}, or it does not exist"
        raise RowError(f"{text} {table.denial}", "unseen")


def _check_key(key: Column, profile: Profile) -> None:
    maps_bytes = profile["containers.binary_key"] == "mapped"
    if key.kind is Kind.INTEGER or (key.indexable and maps_bytes) or (key.kind is Kind.TEXT and key.cuts):
        return
    raise RowError(f"the key column {key.name} should be {_key_types(profile)}", "key-type")


def refuse_without_vindex(source: str, vindex: Vindex) -> None:
    if not vindex.name:
        raise RowError(
            f"{source} has no vindex, and its keyspace {vindex.keyspace} is sharded: give it one of the key column,"
            f" ALTER VSCHEMA ON {source} ADD VINDEX …",
            "vindex-of-others",
        )


# Vindexes that take a text for another one as the usual collations do; all others compare bytes.
_FOLDING: Final = ("unicode_loose_md5", "unicode_loose_xxhash")
# Character sets whose bytes a client with utf8mb4 sends, too.
_HASHED: Final = ("utf8mb4", "utf8mb3", "utf8", "ascii")


def _check_vindex(source: str, vindex: Vindex, key: Column) -> None:
    if vindex.columns != (key.name,):
        raise RowError(
            f"{source} is sharded by vindex {vindex.name} ({vindex.kind}) of {', '.join(vindex.columns)}, so"
            f" that no key says which shard has its row: make a vindex of {key.name} the first one of the table",
            "vindex-of-others",
        )
    if key.kind is Kind.TEXT and key.charset.name not in _HASHED:
        raise RowError(
            f"the key column {key.name} of {source} has character set {key.charset.name}, in which its vindex"
            f" {vindex.name} may have hashed other bytes: use one of {', '.join(_HASHED)}",
            "vindex-compares-bytes",
        )
    if key.kind is Kind.TEXT and not key.collation.endswith("_bin") and vindex.kind not in _FOLDING:
        raise RowError(
            f"the key column {key.name} of {source} compares by {key.collation}, and its vindex {vindex.name}"
            f" ({vindex.kind}) by bytes: one key would have rows in several shards: use a collation _bin, VARBINARY, or"
            f" a vindex {' or '.join(_FOLDING)}",
            "vindex-compares-bytes",
        )


def _key_types(profile: Profile) -> str:
    more = ", or VARBINARY for keys of any bytes" if profile["containers.binary_key"] == "mapped" else ""
    return f"INTEGER, CHAR or VARCHAR{more}"


def _table(row: Container, catalog: Catalog, profile: Profile) -> Table:
    named = table_name(row, profile)
    table = None if named is None else catalog.table(*named)
    if table is None:
        raise RowError(f"there is no table {row.db_schema}.{row.db_table}: create it or correct the row", "no-table")
    return table


def check_again(mapping: Mapping, catalog: Catalog, profile: Profile) -> None:
    update_mapping(mapping, checked(mapping, catalog, profile))


def checked(mapping: Mapping, catalog: Catalog, profile: Profile) -> Mapping | ConfigError:
    """Check the row of a mapping again and return what it makes now, or why nothing."""
    assert isinstance(mapping.row, Container)
    try:
        return check(mapping.row, catalog, profile)
    except ConfigError as error:
        return error


def update_mapping(mapping: Mapping, found: Mapping | ConfigError) -> None:
    """Bring a mapping up to date: columns are found by name again, or it gets a fault.

    What the row had in use when it was read must still be there (innodb_verify_low, called at run time).
    """
    if isinstance(found, ConfigError):
        mapping.fault = str(found)
        return
    for what, before in mapping.options.items():
        if before is not None and found.options[what] is None:
            mapping.fault = (
                f"container {mapping.name!r}: table {found.source} has no {what} column {before.name!r} any more"
            )
            return
    mapping.become(found)


def table_name(row: Container, profile: Profile) -> tuple[str, str] | None:
    """Return schema and name of the table that a row names, as files or as in SQL; None where it cannot exist."""
    schema: str | None = row.db_schema or ""
    name: str | None = row.db_table or ""
    if profile["containers.table_names"] != "sql":
        canonical = profile["containers.table_names"] == "canonical-files"
        files = file_names(row.db_schema or "", row.db_table or "", canonical=canonical)
        schema, name = (sql_name(each, canonical=canonical) for each in files)
    return None if schema is None or name is None else (schema, name)


def _following_columns(table: Table, column: Column) -> tuple[Column, ...]:
    """Return what follows a column in InnoDB's record, up to a column whose storage form never reads as digits."""
    record = [name for name in table.order if name not in table.clustered]
    following = record[record.index(column.name) + 1 :] if column.name in record else []
    return tuple(table.columns[name] for name in takewhile(table.columns.__contains__, following))


def _refuse_null_options(row: Container) -> None:
    for what in ("flags", "cas_column", "expire_time_column"):
        if getattr(row, what) is None:
            text = f"{what} has an invalid NULL value: write '0' for a feature that is not in use"
            raise RowError(text, "null-option")


def _check_several(table: Table, values: tuple[Column, ...]) -> None:
    wrong = [column.name for column in values if column.kind is Kind.BYTES and (column.cuts or column.exact)]
    if wrong:
        raise RowError(
            f"the value column {wrong[0]} in table {table.source} should be INTEGER, CHAR or VARCHAR",
            "bytes-among-several",
        )


def _option_columns(
    table: Table, row: Container, used: tuple[Column, ...], catalog: Catalog, profile: Profile
) -> tuple[Column | None, Column | None, Column | None]:
    """Return the columns for flags, cas and expiry.

    A column serves its first use only, in the order key, value, flags, cas, expiry, and its type does not matter to a
    later one (columns:flag-073, columns:flag-074, columns:cont-027); or the row is refused.
    """
    refuses = profile["containers.contradiction"] == "refused"
    names = [column.name for column in used]
    found: list[Column | None] = []
    for what in ("flags", "cas_column", "expire_time_column"):
        name = getattr(row, what)
        if name in names and not refuses:
            found.append(None)
            continue
        column = option_column(table, name, what, partial(_to_64_bits, row, catalog, profile))
        found.append(column)
        names += [] if column is None else [column.name]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice and refuses:
        text = f"column {', '.join(twice)} is mapped twice: a write would contradict itself"
        raise RowError(text, "mapped-twice")
    flags, cas, expiry = found
    return flags, cas, expiry


def _refuse_narrow_cas(table: Table, row: Container, cas: Column | None, catalog: Catalog, profile: Profile) -> None:
    if cas is None or not repeats(cas):
        return
    raise RowError(
        f"the cas_column {cas.name} in table {table.source} has numbers from {cas.low} to {cas.high}, so that"
        f" a number would recur and an outdated cas would overwrite: {_to_64_bits(row, catalog, profile, cas.name)}",
        "narrow-cas",
    )


def repeats(cas: Column) -> bool:
    """Return whether a cas column lacks some of the counter's numbers, so that their low bits recur in it."""
    return cas.low > 0 or cas.high < LARGEST_INTEGER


def _to_64_bits(row: Container, catalog: Catalog, profile: Profile, column: str) -> str:
    named = table_name(row, profile)
    assert named is not None, "its table was found"
    return catalog.to_64_bits(*named, column)


def _column(table: Table, name: str, what: str, types: str) -> Column:
    if name in table.columns:
        return table.columns[name]
    if name in table.unusable:
        declared = table.unusable[name]
        of = f"is of type {declared}" if declared else "has no declared type"
        raise RowError(f"the {what} {name} {of}: it should be {types}", f"{what.replace(' column', '')}-type")
    columns = (*table.columns, *table.unusable)
    known = ", ".join(columns)
    raise RowError(
        f"table {table.source} has no {what} {name!r}: its columns are {known}{_meant_column(name, columns)}",
        f"no-{what.replace(' ', '-')}",
    )


def _meant_column(name: str, columns: tuple[str, ...]) -> str:
    """Return a hint where the name differs from a column's in what is compared too; else ""."""
    meant = next((each for each in columns if each.casefold() == name.strip(" `,;|").casefold()), None)
    return "" if meant is None else f": write {meant!r}, without blanks, quotes or other letter case"


def key_index(table: Table, key: Column, index: str, profile: Profile) -> tuple[str, tuple[str, ...]]:
    """Return the name of the index on the key as its table has it, and the columns of the index.

    `index` is the value of `unique_idx_name_on_key`. Raises RowError: there is no such unique index, or it is on other
    columns; a PRIMARY KEY may have further ones in some profiles.
    """
    named = next((name for name in table.unique if name.lower() == index.lower()), None)
    if named is None:
        known = ", ".join(table.unique) or "none"
        raise RowError(
            f"{index!r} is not a unique index of table {table.source} (unique indexes: {known}):"
            f" the index on key column must be a unique index",
            "no-unique-index",
        )
    columns = table.unique[named]
    starts = columns[0] == key.name and columns == table.unique.get("PRIMARY")
    if columns != (key.name,) and not (starts and profile["containers.composite_primary"] == "blind"):
        raise RowError(
            f"index {index} is on {', '.join(columns)}: it must be on the key column {key.name} only",
            "index-of-others",
        )
    return named, columns


def option_column(table: Table, name: str | None, what: str, to_64_bits: Callable[[str], str]) -> Column | None:
    """Return the column for flags, cas numbers or expiry times, None where the option is not in use.

    `name` is the value of the option column `what`, None for NULL; `to_64_bits` returns the SQL that makes a column a
    BIGINT. Raises RowError: the column holds no integers.
    """
    column = table.columns.get(name or "")
    if name is None or (column is None and name not in table.unusable):
        return None  # '0', '' or any name the table does not have: not in use (flag-005, flag-006, flag-008)
    if column is None or column.kind is not Kind.INTEGER:
        mend = "" if name in table.generated else f": {to_64_bits(name)}"
        raise RowError(f"the {what} {name} in table {table.source} should be INTEGER{mend}", "option-type")
    return column


# These characters stand for themselves, any other is @ and four lower-case digits (columns:cont-033, 036..041).
_NAME: Final = re.compile(r"(?:[0-9A-Za-z_]|@[0-9a-f]{4})+")
_UNCODED: Final = re.compile(r"[0-9A-Za-z_]")
_CODED: Final = re.compile(r"@([0-9a-f]{4})")
_SEPARATOR: Final = re.compile(r"[/\\]")
_PARTITION: Final = re.compile(r"#[Pp]#")
# Letters whose code is @ and two characters of a table of MySQL's: four digits are never their file's name.
_SHORT_CODES: Final = (
    ("\u00c0", "\u05ff"),
    ("\u1e00", "\u1fff"),
    ("\u2160", "\u217f"),
    ("\u24b0", "\u24e9"),
    ("\uff20", "\uff5f"),
)


def file_names(schema: str, table: str, *, canonical: bool) -> tuple[str, str]:
    """Return the names that InnoDB looks for: of the path `schema/table` the last two parts, wherever they stand.

    Both may hold a path (`ib_normalize_table_name` in api0api.cc, path-001). A partition's suffix, `t#P#p0`, belongs to
    the name only if it is `canonical` (more:path-002).
    """
    schema, table = _SEPARATOR.split(f"{schema}/{table}")[-2:]
    return schema, table if canonical else _PARTITION.split(table)[0]


def sql_name(name: str, *, canonical: bool) -> str | None:
    """Return the name in SQL of a table or schema, `t-x` for `t@002dx`; None where no file is called so.

    If it is `canonical`, only the file's own spelling counts, not another code of the same characters (cont-037).
    """
    if not _NAME.fullmatch(name) or (canonical and any(map(_never_coded, _CODED.findall(name)))):
        return None
    return _CODED.sub(lambda code: chr(int(code[1], 16)), name)


def _never_coded(digits: str) -> bool:
    character = chr(int(digits, 16))
    return bool(_UNCODED.fullmatch(character)) or any(low <= character <= high for low, high in _SHORT_CODES)
