"""Which mappings are cached: those chosen whose table names the key of the row in the binary log with every change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pymysql

from kvref.engine.mapping import Mapping
from kvref.errors import StoreError
from kvref.storage.config.catalog import ROW_CACHE
from kvref.storage.mysql.accounts import account
from kvref.storage.mysql.errors import DENIED
from kvref.storage.mysql.login import cause
from kvref.storage.mysql.schema import SCHEMA, quote
from kvref.storage.rows import text_of

OPTIONS_TABLE: Final = (SCHEMA, "config_options")
STRONG, FAST, OFF = "strong", "fast", "off"
FAST_STALENESS: Final = 0.01  # seconds, where `row_cache_staleness` is 0
_THERE: Final = f"SHOW TABLES FROM {SCHEMA} LIKE 'config_options'"
_OPTIONS: Final = f"SELECT name, value FROM {SCHEMA}.config_options WHERE name LIKE '{ROW_CACHE}%'"  # noqa: S608 - constant

# The log of MariaDB and of MySQL up to 9.5 does not have what foreign keys change in a child's rows. Later versions of
# MySQL log it if this variable is OFF, the default (observed on 9.7).
_NATIVE: Final = "SHOW VARIABLES LIKE 'innodb_native_foreign_keys'"
_CASCADES: Final = re.compile(r"\bON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)\b", re.IGNORECASE)
_KEY: Final = re.compile(r"(var)?char\(|varbinary\(|(tiny|small|medium|big)?int\b", re.IGNORECASE)
_INNODB: Final = re.compile(r"\bENGINE=InnoDB\b", re.IGNORECASE)


class Terms(NamedTuple):
    """Whether the rows of a mapping are cached.

    Args:
        refusal: why they are not, empty if they are.
        chosen: the refusal is the choice of an option.
        staleness: seconds for which a row may be used after the server's position was queried; 0: none.
    """

    refusal: str
    chosen: bool = False
    staleness: float = 0.0


def terms(query: Callable[[str], Sequence[Sequence[Any]]], mapping: Mapping, staleness: float) -> Terms:
    """Return whether the rows of a mapping are cached, by the options and its table; raises what `query` raises.

    `staleness` is that of a mapping without an option, see `Terms`.
    """
    rows = query(_OPTIONS) if query(_THERE) else ()
    options = {text_of(name).lower(): text_of(value) for name, value in rows}
    name = f"{ROW_CACHE}.{mapping.name.lower()}"
    name = name if name in options else ROW_CACHE
    mode = options.get(name, FAST if staleness else STRONG)
    if mode == OFF:
        return Terms(f"option {name} is {OFF}", chosen=True)
    if mode not in (STRONG, FAST):
        return Terms(f"option {name} is {mode!r}: write {STRONG}, {FAST} or {OFF}")
    try:
        ((_, created, *_),) = query(f"SHOW CREATE TABLE {mapping.source}")
    except (StoreError, pymysql.err.MySQLError) as error:
        of_server = error.__cause__ if isinstance(error, StoreError) else error
        if not isinstance(of_server, pymysql.err.MySQLError) or of_server.args[0] not in DENIED:
            raise
        return Terms(f"{cause(of_server)}: GRANT SELECT ON {mapping.source} TO {account(query)}")
    logged = [text_of(value) for _, value in query(_NATIVE)] == ["OFF"]
    reason = refusal(text_of(created), mapping.key.name, cascades_logged=logged)
    return Terms(reason, staleness=(staleness or FAST_STALENESS) * (mode == FAST))


def refusal(created: str, key: str, *, cascades_logged: bool = False) -> str:
    """Return why the rows of a table cannot be cached, by its SHOW CREATE TABLE; empty where they can.

    `cascades_logged`: the log has the rows that foreign keys change.
    """
    if not cascades_logged and (found := _CASCADES.search(created)):
        return (
            f"a foreign key changes its rows without an event in the binary log ({found[0]}): use a trigger instead, or"
            " MySQL 9.6 or later"
        )
    if not _INNODB.search(created):
        return "it is not an InnoDB table: ALTER TABLE … ENGINE = InnoDB"
    column = re.search(rf"^\s*{re.escape(quote(key))} (.*)$", created, re.MULTILINE | re.IGNORECASE)
    if column is None or not _KEY.match(column[1]):
        return (
            f"its key column {key} is of a type whose values the binary log does not have as SQL shows them: use"
            " VARCHAR, VARBINARY, CHAR or an integer"
        )
    if re.search(r"\bGENERATED ALWAYS\b| AS \(", column[1], re.IGNORECASE):
        return f"its key column {key} is generated: use one that is not"
    return ""
