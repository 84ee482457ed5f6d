"""MySQL's tables as the catalog and the doctor see them, from information_schema, and the configuration schema.

Tables that were read before are read again only where the server shows another CREATE TABLE: what information_schema
says takes half a dozen queries a table, and mapped tables are looked at every second. That text is the same whatever an
account may look at: each reading of the configuration knows no table, and one with hidden columns is always read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final, TypeAlias

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.cursors import Cursor

from kvref.collations.charsets import CHARSETS, OTHER_CHARSETS
from kvref.engine.mapping import Column, Naming
from kvref.errors import ConfigError, RowError, StoreError
from kvref.profiles import Profile
from kvref.storage.config import codecs
from kvref.storage.config.catalog import CONFIG_COLUMNS, cache_script, foreign, naming_of
from kvref.storage.config.column_types import as_bigint, column_of
from kvref.storage.config.containers import (
    ACTING,
    CONTAINER_COLUMNS,
    ColumnDetails,
    Container,
    PolicyCell,
    Table,
    TableDetails,
    refuse_without_vindex,
)
from kvref.storage.mysql import vitess
from kvref.storage.mysql.accounts import account
from kvref.storage.mysql.errors import DENIED
from kvref.storage.mysql.login import cause, fetch_all
from kvref.storage.rows import text_of

# Changes with rows, not with DDL.
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")
# In the CREATE TABLE of a table whose rows go with those that they refer to.
_CASCADE: Final = " ON DELETE CASCADE"
OF_THE_CLIENT: Final = range(2000, 3000)  # numbers of errors that the server did not send: the connection is lost


# The tables of one server as one profile reads them, each with the text that the server shows of it, by their quoted
# names. For connections that logged in after one reading began.
KnownTables = dict[str, tuple[str, Table]]

SCHEMA: Final = "innodb_memcache"


def quote(identifier: str) -> str:
    """Return an identifier quoted for SQL; a hostile name stays a name."""
    if "\0" in identifier:
        raise ConfigError(f"{identifier!r} is not a name MySQL can hold: it contains NUL")
    return "`" + identifier.replace("`", "``") + "`"


class MySQLCatalog:
    """Read the configuration tables and the mapped tables' shape from one connection.

    `known`: tables that were read before with this profile.
    """

    def __init__(self, connection: Connection[Cursor], profile: Profile, known: KnownTables | None = None) -> None:
        self._connection = connection
        self._profile = profile
        self._known = {} if known is None else known
        self._tables: dict[tuple[str, str], Table | None] = {}

    def containers(self) -> list[Container]:
        """Return all rows; ConfigError: table or columns are missing; StoreError: the account may not read it."""
        columns = ", ".join(map(quote, CONTAINER_COLUMNS))
        wait = ""
        if self._profile["containers.locked_row"] == "waited-for":
            wait = " LOCK IN SHARE MODE"
        else:
            # Whatever the connection reads else: no mapping is made of a row that its writer may take back.
            self._rows("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        rows = self._configuration(f"SELECT {columns} FROM {SCHEMA}.containers{wait}", "containers")  # noqa: S608 - constant
        return [Container(_text(row[0]) or "", *map(_text, row[1:])) for row in rows if row[0] is not None]

    def options(self) -> dict[str, bytes | None]:
        """See `Catalog`; values are bytes of their column's character set."""
        rows = self._configuration(
            f"SELECT name, CAST(value AS BINARY) FROM {SCHEMA}.config_options",  # noqa: S608 - constant
            "config_options",
        )
        return {_text(name) or "": value for name, value in rows}

    def naming(self) -> Naming:
        ((engine,),) = self._rows(
            "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = 'containers'", SCHEMA
        )
        if (_text(engine) or "").lower() != "innodb":
            raise ConfigError(f"configuration table {SCHEMA}.containers is of engine {engine}: make it an InnoDB table")
        wanted = "column_name, column_type, character_set_name, collation_name"
        rows = self._described(wanted, SCHEMA, "containers", "column_name = 'name'")
        if not rows:
            return naming_of(None, "")
        name, declared, charset, collation = map(_text, rows[0])
        return naming_of(column_as_shown(name or "", declared or "", charset, self._profile), collation or "")

    def policies(self) -> list[PolicyCell] | None:
        described = self._described("column_name, data_type, column_key", SCHEMA, "cache_policies")
        columns = [(_text(name) or "", _text(kind) == "enum", _text(key) == "PRI") for name, kind, key in described]
        cells = ", ".join(f"{quote(name)}, {f'{quote(name)} + 0' if enum else 'NULL'}" for name, enum, _ in columns)
        order = ", ".join(quote(name) for name, _, primary in columns if primary)
        statement = f"SELECT {cells or 1} FROM {SCHEMA}.cache_policies ORDER BY {order or 'NULL'} LIMIT 1"  # noqa: S608
        try:
            rows = self._configuration(statement, "cache_policies")
        except ConfigError:
            return None
        found = rows[0] if rows else ()
        return [
            PolicyCell(name, _text(word), None if member is None else int(member))
            for (name, _, _), word, member in zip(columns, found[::2], found[1::2], strict=False)
        ] or None

    def referenced(self, schema: str, name: str) -> bool:
        """Return whether a foreign key of any table refers to this one, as far as the account sees them."""
        # MariaDB shows those in referential_constraints to accounts with a right on the whole schema only.
        sql = (
            "SELECT 1 FROM information_schema.key_column_usage"
            " WHERE referenced_table_schema = %s AND referenced_table_name = %s LIMIT 1"
        )
        return bool(self._rows(sql, schema, name))

    def counts(self, schema: str, name: str) -> bool:
        """Return whether a table has an AUTO_INCREMENT column, whose counter TRUNCATE would reset (more:empty-004)."""
        return bool(self._described("1", schema, name, "extra LIKE '%%auto_increment%%'"))

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table's columns and unique indexes, None when there is no such table; read once.

        Raises ConfigError: a view, another engine, or a partitioned table: the plugin opens InnoDB tables only.
        """
        if (schema, name) not in self._tables:
            source = f"{quote(schema)}.{quote(name)}"
            # In this order: what is read is never older than the text it is kept under.
            text = self._definition(source)
            known = self._known.get(source)
            if known is not None and known[0] == text:
                found: Table | None = known[1]
            else:
                found = self._table(schema, name, source)
                if found is not None:
                    found = replace(found, cascades=text is None or _CASCADE in text)
                if text is not None and found is not None and not found.denial:
                    self._known[source] = text, found
            self._tables[schema, name] = found
        return self._tables[schema, name]

    def _definition(self, source: str) -> str | None:
        """Return the CREATE TABLE, in Vitess with the vindexes, which change without DDL; None if neither is shown."""
        rows = self._shown(f"SHOW CREATE TABLE {source}")
        if not rows:
            return None
        text = _COUNTER.sub("", text_of(rows[0][1]))
        if vitess.is_gate(self._connection):
            text += repr(self._shown(f"SHOW VSCHEMA VINDEXES ON {source}"))
        return text

    def _shown(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a SHOW, none where the server refuses it: no such table, no privilege."""
        try:
            return self._rows(statement)
        except pymysql.err.MySQLError as error:
            if error.args[0] in OF_THE_CLIENT or not self._connection.open:
                raise
            return []

    def _table(self, schema: str, name: str, source: str) -> Table | None:
        if not self._exists(schema, name, source):
            return None
        vindex = vitess.vindex_of(self._rows, schema, source) if vitess.is_gate(self._connection) else None
        if vindex is not None:
            refuse_without_vindex(source, vindex)  # vtgate refuses most statements about such a table
        wanted = "column_name, column_type, character_set_name, is_nullable, extra, collation_name"
        described = self._described(wanted, schema, name)
        shown = named_rows(self._connection, f"SHOW INDEX FROM {source}")
        table = table_of(source, [tuple(map(_text, row)) for row in described], shown, self._profile)
        # information_schema shows an account with privileges on some columns only these.
        denial = self._denial(f"SELECT * FROM {source} LIMIT 0", source)  # noqa: S608 - quoted
        return replace(table, denial=denial, vindex=vindex)

    def to_64_bits(self, schema: str, name: str, column: str) -> str:
        """See `Catalog`; the statement keeps the column's comment too."""
        wanted = "column_type, is_nullable, column_default, column_comment"
        ((declared, nullable, default, comment),) = self._described(wanted, schema, name, "column_name = %s", column)
        definition = as_bigint(_text(declared) or "", _text(default), nullable=_text(nullable) == "YES")
        if comment:
            with self._connection.cursor() as cursor:
                definition += cursor.mogrify(" COMMENT %s", (_text(comment),))
        return f"ALTER TABLE {quote(schema)}.{quote(name)} MODIFY {quote(column)} {definition}"

    def _exists(self, schema: str, name: str, source: str) -> bool:
        """Return whether there is such a table; raises RowError if no mapping can have it or it cannot be seen."""
        found = self._rows(
            "SELECT table_schema, table_name, table_type, engine FROM information_schema.tables"
            " WHERE table_schema = %s AND table_name = %s",
            schema,
            name,
        )
        # To information_schema other blanks and capitals are the same name.
        schemas = {schema}
        if vitess.is_gate(self._connection):
            schemas.update(_text(row[0]) or "" for row in found)  # the name of its database in a shard
        exact = [row[2:] for row in found if _text(row[0]) in schemas and _text(row[1]) == name]
        if not exact:
            self._refuse_hidden(schema, name)
            return False
        kind, engine = map(_text, exact[0])
        partitions = (
            "SELECT 1 FROM information_schema.partitions"
            " WHERE table_schema = %s AND table_name = %s AND partition_name IS NOT NULL LIMIT 1"
        )
        refuse_unmappable(source, kind or "", engine or "", lambda: bool(self._rows(partitions, schema, name)))
        return True

    def _refuse_hidden(self, schema: str, name: str) -> None:
        """Raise RowError where information_schema shows no table because the account may not see it."""
        if "\0" in schema + name:
            return  # no table is called so
        source = f"{quote(schema)}.{quote(name)}"
        if denial := self._denial(f"SELECT 1 FROM {source} LIMIT 0", source):  # noqa: S608 - quoted
            raise RowError(f"the account lacks SELECT on {schema}.{name}, or it does not exist {denial}", "unseen")

    def _denial(self, statement: str, source: str) -> str:
        """Return why the account may not read a table by a statement, in parentheses, and the GRANT; "" if it may."""
        try:
            self._rows(statement)
        except pymysql.err.MySQLError as error:
            if error.args[0] in DENIED:
                return f"({cause(error)}): GRANT SELECT ON {source} TO {account(self._rows)}"
            if error.args[0] in OF_THE_CLIENT:
                raise
        return ""

    def _described(
        self, cells: str, schema: str, table: str, condition: str = "TRUE", *parameters: str
    ) -> list[tuple[Any, ...]]:
        """Return what information_schema has of the columns of a table, in their order."""
        sql = f"SELECT {cells} FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"  # noqa: S608
        return self._rows(f"{sql} AND {condition} ORDER BY ordinal_position", schema, table, *parameters)

    def _rows(self, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
        return fetch_all(self._connection, sql, *parameters)

    def _configuration(self, sql: str, table: str) -> list[tuple[Any, ...]]:
        try:
            return self._rows(sql)
        except pymysql.err.MySQLError as error:
            if error.args[0] in _MISSING:
                there = _columns(self._connection, SCHEMA).get(table)
                refusal = there and foreign(f"{SCHEMA}.{table}", there, CONFIG_COLUMNS[table])
                fix = f"{refusal}: {_RENAME}" if refusal else "create the tables with `kvref init`"
                raise ConfigError(f"configuration table {SCHEMA}.{table}: {cause(error)}: {fix}") from error
            if error.args[0] in DENIED:
                # Not treated as a missing table: the rows may define a delimiter that differs from the default.
                grant = f"GRANT SELECT ON {SCHEMA}.* TO {account(self._rows)}"
                raise StoreError(f"configuration table {SCHEMA}.{table}: {cause(error)}: {grant}") from error
            raise


_MISSING: Final = (ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR, ER.BAD_FIELD_ERROR)


Described: TypeAlias = "tuple[str | None, ...]"


def column_as_shown(name: str, declared: str, charset: str | None, profile: Profile) -> Column | None:
    """Return the column of a type as information_schema shows it, None if no mapping can use it."""
    name_of_set = charset or "utf8mb4"
    known = CHARSETS.get(name_of_set) or OTHER_CHARSETS.get(name_of_set)
    if known is None:
        return None
    column = column_of(name, declared, "", profile, known)
    if column is None:
        return None
    # MySQL holds the numbers that SQLite does not. It refuses the bytes of surrogates in each statement.
    return replace(column, surrogates=False, codec=None if column.codec is codecs.UNSIGNED else column.codec)


def refuse_unmappable(source: str, kind: str, engine: str, is_partitioned: Callable[[], bool]) -> None:
    """Raise RowError for a table that no mapping can have, by `table_type` of information_schema and its engine."""
    if kind != "BASE TABLE":
        raise RowError(f"{source} is a view: only InnoDB tables can be mapped", "view")
    if engine.lower() != "innodb":
        mend = "ALTER TABLE … ENGINE = InnoDB makes it one"
        if engine == "SPIDER":
            mend = "serve the tables that it leads to, each from a [[store]] of its own"
        raise RowError(
            f"{source} is a table of engine {engine}: only InnoDB tables can be mapped: {mend}", "other-engine"
        )
    if is_partitioned():
        raise RowError(
            f"{source} is partitioned: the plugin cannot open such a table: REMOVE PARTITIONING", "partitioned"
        )


def table_of(source: str, described: Iterable[Described], shown: Iterable[dict[str, Any]], profile: Profile) -> Table:
    """Return a table as the server describes it.

    Args:
        source: its name.
        described: of each column its name, type, character set, whether it can be NULL (YES or NO), what
            information_schema calls `extra`, and collation.
        shown: the rows of SHOW INDEX.
        profile: decides how types are read.
    """
    columns: dict[str, Column] = {}
    unusable: dict[str, str] = {}
    generated: dict[str, str] = {}
    described = list(described)
    for column, declared, charset, nullable, extra, collation in described:
        assert column is not None
        assert declared is not None
        usable = column_as_shown(column, declared, charset, profile)
        if extra and extra.upper().endswith((" GENERATED", "PERSISTENT")):
            unusable[column] = f"{declared} (generated)"
            generated[column] = extra.upper()
        elif usable is None:
            unusable[column] = declared if charset is None else f"{declared} of character set {charset}"
        else:
            columns[column] = replace(usable, nullable=nullable == "YES", collation=collation or "")
    # An index that MariaDB ignores is omitted: no statement can use it.
    rows = [row for row in shown if row.get("Ignored", "NO") == "NO"]
    columns_of: dict[str, list[str | None]] = {}
    beginnings: dict[str, int] = {}
    for row in rows:
        if not row["Non_unique"]:
            columns_of.setdefault(row["Key_name"], []).append(row["Column_name"])
            if row["Sub_part"] is not None:
                beginnings[row["Key_name"]] = int(row["Sub_part"])  # mappings can use it (more:index-012)
    # An expression has no name: nothing finds a row by the column with it.
    unique = {name: tuple(each for each in own if each) for name, own in columns_of.items() if None not in own}
    not_null = frozenset(row[0] or "" for row in described if row[3] == "NO")
    clustered = next(
        (n for i, n in unique.items() if i == "PRIMARY" or (i not in beginnings and not_null.issuperset(n))), ()
    )
    virtual = {each for each, extra in generated.items() if extra.startswith("VIRTUAL")}
    # MySQL keeps a hidden virtual column for an expression.
    virtual |= {f"the expression of index {row['Key_name']}" for row in rows if row["Column_name"] is None}
    return Table(
        source, columns, unusable, unique, frozenset(generated), frozenset(virtual),
        order=tuple(row[0] or "" for row in described), clustered=clustered,
        descending=frozenset(row["Key_name"] for row in rows if row["Seq_in_index"] == 1 and row["Collation"] == "D"),
        not_null=not_null, hidden=any(row["Index_type"] == "FULLTEXT" for row in rows), beginnings=beginnings,
    )  # fmt: skip


def named_rows(connection: Connection[Cursor], sql: str) -> list[dict[str, Any]]:
    """Return the rows of a statement, cells by the names of their columns; raises whatever PyMySQL does."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [each[0] for each in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _text(cell: object) -> str | None:
    return None if cell is None else text_of(cell)


_STATEMENT: Final = re.compile(r";\s*\n")


# What kvref creates besides the configuration tables, by the columns that the statements name.
_DEMO: Final = ("test", "demo_test", ("c1", "c2", "c3", "c4", "c5"))
_CACHE: Final = ("cache_key", "value", "flags", "cas", "expires")
_RENAME: Final = "rename the table and run `kvref init`, or name another server"


def _columns(connection: Connection[Cursor], schema: str) -> dict[str, list[str]]:
    """Return the columns of each table and view of a schema that the account can see."""
    found: dict[str, list[str]] = {}
    sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s"
    for table, column in fetch_all(connection, sql, schema):
        found.setdefault(text_of(table), []).append(text_of(column))
    return found


def create(connection: Connection[Cursor], *, demo: bool) -> bool:
    """Create the configuration tables that are missing; return whether `containers` was created.

    It is created last, so that a second call continues after a failure. With `demo`, the plugin's demo table and its
    row of `containers`, too.

    Raises:
        ConfigError: another table has the name of one of them; nothing is created.
        pymysql.err.MySQLError: the server refuses a statement.
    """
    there = _columns(connection, SCHEMA)
    new = "containers" not in there
    found = [
        foreign(f"{SCHEMA}.{name}", there[name], wanted) for name, wanted in CONFIG_COLUMNS.items() if name in there
    ]
    if demo and new:
        schema, name, wanted = _DEMO
        found += [
            foreign(f"{schema}.{name}", each, wanted) for each in [_columns(connection, schema).get(name)] if each
        ]
    if refusal := "; ".join(filter(None, found)):
        raise ConfigError(f"{refusal}: {_RENAME}")
    missing = [name for name in CONFIG_COLUMNS if name not in there]
    if missing:
        scripts = ["schema", *["demo"] * (demo and new), *["containers"] * new, *["demo_row"] * (demo and new)]
        for script in scripts:
            _run(connection, files(__package__).joinpath(f"{script}.sql").read_text(encoding="utf-8"))
    return new


def create_cache(connection: Connection[Cursor], name: str) -> bool:
    """Create a cache table and its row of `containers`, and return True, unless there is a row with this name.

    Raises:
        ConfigError: no mapping can have this name, or another table has it.
        pymysql.err.MySQLError: the server refuses a statement.
    """
    script = cache_script(__package__, name)
    with connection.cursor() as cursor:
        if cursor.execute(f"SELECT 1 FROM {SCHEMA}.containers WHERE name = %s", (name,)):  # noqa: S608 - constant
            return False
    there = _columns(connection, "kvref").get(name)
    if there and (refusal := foreign(f"kvref.{name}", there, _CACHE)):
        raise ConfigError(f"{refusal}: give the cache another name, --cache NAME")
    _run(connection, script)
    return True


def _run(connection: Connection[Cursor], script: str) -> None:
    with connection.cursor() as cursor:
        for statement in _STATEMENT.split(script.strip().removesuffix(";")):
            cursor.execute(statement)
    connection.commit()


# MariaDB shows DEFAULT NULL as the word, and a text in quotes.
_COLUMNS: Final = """
SELECT column_name, CAST(column_type AS CHAR), COALESCE(character_set_name, ''), COALESCE(collation_name, ''),
    is_nullable, column_default IS NOT NULL AND NOT (VERSION() LIKE '%%MariaDB%%' AND column_default = 'NULL'),
    LOWER(extra)
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"""
_TRIGGERS: Final = """
SELECT trigger_name FROM information_schema.triggers
WHERE event_object_schema = %s AND event_object_table = %s ORDER BY trigger_name"""
_CHECKS: Final = """
SELECT constraint_name FROM information_schema.table_constraints
WHERE constraint_type = 'CHECK' AND table_schema = %s AND table_name = %s ORDER BY constraint_name"""
_FULLTEXT: Final = """
SELECT DISTINCT index_name FROM information_schema.statistics
WHERE index_type = 'FULLTEXT' AND table_schema = %s AND table_name = %s ORDER BY index_name"""
_PARENTS: Final = """
SELECT DISTINCT CONCAT(unique_constraint_schema, '.', referenced_table_name)
FROM information_schema.referential_constraints WHERE constraint_schema = %s AND table_name = %s"""
_CHILDREN: Final = """
SELECT DISTINCT CONCAT(constraint_schema, '.', table_name), delete_rule, update_rule
FROM information_schema.referential_constraints
WHERE unique_constraint_schema = %s AND referenced_table_name = %s"""


def table_details(connection: Connection[Cursor], schema: str, name: str) -> TableDetails:

    def rows(sql: str) -> list[list[str]]:
        return [[text_of(cell) for cell in row] for row in fetch_all(connection, sql, schema, name)]

    columns = {
        column: ColumnDetails(
            column,
            declared,
            charset=charset,
            collation=collation,
            nullable=nullable == "YES",
            default=default == "1",
            auto_increment="auto_increment" in extra,
            generated=_generated(extra),
        )
        for column, declared, charset, collation, nullable, default, extra in rows(_COLUMNS)
    }
    children = rows(_CHILDREN)
    triggers, checks, fulltext, parents = (
        tuple(row[0] for row in rows(sql)) for sql in (_TRIGGERS, _CHECKS, _FULLTEXT, _PARENTS)
    )
    return TableDetails(
        columns,
        triggers,
        checks,
        fulltext,
        parents,
        referred_by=tuple(child for child, *_ in children),
        cascading=tuple(child for child, *rules in children if not set(ACTING).isdisjoint(rules)),
    )


def _generated(extra: str) -> str:
    if not extra.endswith((" generated", "persistent")):
        return ""
    return "virtual" if extra.startswith("virtual") else "stored"
