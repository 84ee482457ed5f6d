"""Details of tables of a MySQL or MariaDB server, from information_schema: what the account may see of it."""

from __future__ import annotations

from typing import Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from kvref.storage.config.details import ACTING, ColumnDetails, TableDetails

_COLUMNS: Final = """
SELECT column_name, CAST(column_type AS CHAR), COALESCE(character_set_name, ''), COALESCE(collation_name, ''),
    is_nullable, column_default IS NOT NULL, LOWER(extra)
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
    """Read the details of a table.

    Args:
        connection: of `Login.connect`.
        schema: the table's.
        name: of the table.
    """

    def rows(sql: str) -> list[list[str]]:
        with connection.cursor() as cursor:
            cursor.execute(sql, (schema, name))
            return [[_text(cell) for cell in row] for row in cursor.fetchall()]

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


def _text(cell: object) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
