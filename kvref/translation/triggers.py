"""Triggers and CHECK: MySQL's act for SQL and never for the plugin's writes (columns:cont-240).

Here they are TEMP triggers of the SQL connections, so that a server on the same file never meets them; each further
connection creates them again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from kvref.translation.schema import key_of, named
from kvref.translation.tables import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref.translation.schema import Schema
    from kvref.translation.tables import Table

CREATE_TRIGGER = re.compile(
    r"\s*CREATE\s+TRIGGER\s+(?P<name>\S+)\s+(?P<when>BEFORE|AFTER)\s+(?P<event>INSERT|UPDATE|DELETE)\s+ON"
    r"\s+(?P<table>\S+)\s+FOR\s+EACH\s+ROW\s+(?P<body>.+)",
    re.IGNORECASE | re.DOTALL,
)


def create_trigger(schema: Schema, found: re.Match[str], body: Sequence[str]) -> Iterator[str]:
    """Yield the statement that makes a trigger.

    Args:
        schema: gains it.
        found: a match of CREATE_TRIGGER.
        body: its body, translated.

    Raises:
        NotImplementedError: a body of several statements, or one that changes NEW.
    """
    if re.match(r"\s*(BEGIN|SET)\b", found["body"], re.IGNORECASE):
        raise NotImplementedError("a trigger of several statements, or one that changes NEW")
    on = named(found["table"])
    name = key_of(named(found["name"]))
    sql = (
        f"CREATE TEMP TRIGGER {quote(name)} {found['when']} {found['event']} ON main.{quote(schema.source(on))}"
        f" FOR EACH ROW BEGIN {'; '.join(body)}; END"
    )
    schema.triggers.setdefault(key_of(on), {})[name] = sql
    yield sql


def checks(schema: Schema, key: str, table: Table) -> Iterator[str]:
    """Yield the statements that keep SQL from breaking a table's CHECK conditions.

    Args:
        schema: gains them.
        key: the table's name.
        table: whose conditions.
    """
    for number, condition in enumerate(table.checks, 1):
        tree = sqlglot.parse_one(condition, read="sqlite")
        for column in tree.find_all(exp.Column):
            column.set("table", exp.to_identifier("NEW"))
        for event in ("INSERT", "UPDATE"):
            name = f"{key} check {number} {event.lower()}"
            sql = (
                f"CREATE TEMP TRIGGER {quote(name)} BEFORE {event} ON main.{quote(table.source)}"
                f" WHEN NOT ({tree.sql(dialect='sqlite')}) BEGIN SELECT RAISE(ABORT, 'CHECK constraint failed'); END"
            )
            schema.triggers.setdefault(key, {})[name] = sql
            yield sql
