"""What Vitess wants beyond MySQL: a table of a sharded keyspace needs a vindex, which finds the shard of a row."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import pymysql
from pymysql.constants import ER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Query = Callable[[str], Sequence[Sequence[object]]]

KNOWN_SECONDS: Final = 10
_CREATED: Final = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(?P<name>\S+) \(", re.ASCII)
_INSERTED: Final = re.compile(r"(INSERT INTO (?P<name>[\w.`]+)) (?=VALUES\b)", re.ASCII)


def makes_view(statement: str) -> bool:
    """Return whether a statement makes a view: vtgate finds views only with options, and cannot change rows by one."""
    return statement.startswith("CREATE VIEW ")


def created(statement: str) -> str:
    """Return the name of the table that a statement makes, "" if it makes none."""
    found = _CREATED.match(statement)
    return "" if found is None else found["name"]


def add_vindex(query: Query, table: str, key: str) -> None:
    """Let a column of a new table find the shard of a row: one that compares texts as its collation does.

    Args:
        query: runs a statement through vtgate and returns its rows.
        table: just made, in the schema `test`.
        key: the column; if the table has no such column, the first one.

    Raises:
        pymysql.MySQLError: it is not possible, or vtgate does not know the table in time.
    """
    shown = query(
        "SELECT column_name, data_type, collation_name FROM information_schema.columns"  # noqa: S608 - own name
        f" WHERE table_schema = 'test' AND table_name = '{_bare(table)}' ORDER BY ordinal_position"
    )
    column, declared, collation = next((row for row in shown if row[0] == key), shown[0])
    folds = "char" in str(declared) and not str(collation).endswith("_bin")
    kind = "unicode_loose_xxhash" if folds else "xxhash"
    _forget(query, table)
    query(f"ALTER VSCHEMA ON {table} ADD VINDEX {kind}(`{column}`) USING {kind}")
    _wait_until_known(query, table, [name for name, *_ in shown])


def _forget(query: Query, table: str) -> None:
    """Remove the vindexes of an earlier table of the name: DROP TABLE leaves them."""
    try:
        shown = query(f"SHOW VSCHEMA VINDEXES ON {table}")
    except pymysql.err.MySQLError as error:
        if error.args[0] != ER.NO_SUCH_TABLE:
            raise
        return  # vtgate knows none of this name
    for _, name, *_ in shown:
        query(f"ALTER VSCHEMA ON {table} DROP VINDEX `{name}`")


def key_of(query: Query, table: str) -> str:
    """Return the column of a foreign key, so that a row is where its parent is, or of a unique key, or ""."""
    rows = query(
        "SELECT column_name, referenced_table_name FROM information_schema.key_column_usage"  # noqa: S608 - own name
        f" WHERE table_schema = 'test' AND table_name = '{_bare(table)}'"
    )
    foreign = [str(name) for name, parent in rows if parent is not None]
    return next(iter([*foreign, *(str(name) for name, _ in rows)]), "")


def with_columns(query: Query, statement: str) -> str:
    """Return an INSERT with the names of all columns: vtgate wants them until it has seen a new table."""
    found = _INSERTED.match(statement)
    if found is None:
        return statement
    names = ", ".join(f"`{column}`" for column, *_ in query(f"SHOW COLUMNS FROM {found['name']}"))
    return f"{found[1]} ({names}) {statement[found.end() :]}"


def _wait_until_known(query: Query, table: str, columns: Sequence[object]) -> None:
    """Wait until vtgate knows the columns of a new table: before that, each INSERT has to name them."""
    insert = f"VEXPLAIN PLAN INSERT INTO {table} VALUES ({', '.join(['NULL'] * len(columns))})"  # noqa: S608 - own name
    names = f"({', '.join(map(str, columns))}) values"
    _until(lambda: names in str(query(insert)).replace("`", ""))


def _until(known: Callable[[], bool]) -> None:
    """Wait until vtgate has noticed DDL; raises MySQLError, what it says last."""
    deadline = time.monotonic() + KNOWN_SECONDS
    while True:
        try:
            if known():
                return
        except pymysql.MySQLError:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise pymysql.MySQLError(f"vtgate has not noticed DDL in {KNOWN_SECONDS} s")
        time.sleep(0.02)


def _bare(table: str) -> str:
    """Return the name of a table without its schema and quotes."""
    return table.rpartition(".")[2].strip("`")
