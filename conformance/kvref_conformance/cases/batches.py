"""Settings and steps that the chapters on batches, isolation and locks share.

The rows of a case are {k}1, {k}2 and so on, of one letter each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.case import send, sql
from kvref_conformance.steps import By

if TYPE_CHECKING:
    from kvref_conformance.steps import Send, Sql

R: Final = "daemon_memcached_r_batch_size"
W: Final = "daemon_memcached_w_batch_size"
LEVEL: Final = "innodb_api_trx_level"
LOCK_WAIT: Final = "innodb_lock_wait_timeout"

# Few combinations serve all chapters: each costs the run a start of the endpoint. What is not named has its default.
WRITES: Final = {W: 4, R: 1000}
WRITES_AND_SINGLE_READS: Final = {W: 4}
DIRTY: Final = {W: 4, R: 1000, LEVEL: 0}
COMMITTED: Final = {W: 4, R: 4, LEVEL: 1}
SNAPSHOT: Final = {W: 4, R: 4, LEVEL: 2}
SERIAL: Final = {W: 4, R: 4, LEVEL: 3}
SHORT_WAIT: Final = {W: 1000, R: 1000, LOCK_WAIT: 1}
SINGLE_READS: Final = {W: 1, R: 1}
SINGLE_COMMITTED: Final = {W: 1, R: 1, LEVEL: 1}
SINGLE_REPEATABLE: Final = {W: 1, R: 1, LEVEL: 2}
SINGLE_SERIAL: Final = {W: 1, R: 1, LEVEL: 3, LOCK_WAIT: 1}
NO_ROW_LOCKS: Final = {W: 4, R: 1000, LOCK_WAIT: 1, "innodb_api_disable_rowlock": 1}
TABLE_LOCKS: Final = {W: 4, R: 1000, "innodb_api_enable_mdl": 1}
LOGGED: Final = {W: 8, R: 1000, "innodb_api_enable_binlog": 1}
IDLE: Final = {W: 4, R: 4, LEVEL: 2, "innodb_api_bk_commit_interval": 2}

COUNT: Final = "SELECT COUNT(*) FROM {t1} WHERE c1 LIKE '{k}%'"
UNCOMMITTED: Final = sql("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", on="dirty")
BEGIN: Final = sql("BEGIN", on="s")
# In 5.6 the second of the two limits DDL during an open batch.
SOON: Final = sql("SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1", on="s")
COMMIT: Final = sql("COMMIT", on="s")
ROLLBACK: Final = sql("ROLLBACK", on="s")


def put(name: int | str, on: str = "a", value: str = "x") -> Send:
    """Set {k}NAME and want it stored."""
    return send(f"set {{k}}{name} 0 0 {len(value)}\r\n{value}\r\n", "STORED\r\n", on=on)


def puts(first: int, last: int, on: str = "a") -> tuple[Send, ...]:
    """Set {k}FIRST to {k}LAST, one request each."""
    return tuple(put(n, on) for n in range(first, last + 1))


def committed(rows: int) -> Sql:
    """Want so many rows of the case to be seen by SQL that reads what is committed."""
    return sql(COUNT, (rows,))


def dirty(rows: int) -> Sql:
    """Want so many rows of the case to be seen at READ UNCOMMITTED, which `UNCOMMITTED` sets."""
    return sql(COUNT, (rows,), on="dirty")


def insert(name: int | str, value: str = "x") -> Sql:
    """Insert {k}NAME by SQL."""
    return sql(f"INSERT INTO {{t1}} VALUES ('{{k}}{name}', '{value}', 0, 0, 0)")  # noqa: S608 - a template


def update(name: int | str, value: str, on: str = "") -> Sql:
    """Update {k}NAME by SQL."""
    return sql(f"UPDATE {{t1}} SET c2 = '{value}' WHERE c1 = '{{k}}{name}'", on=on)  # noqa: S608 - a template


def delete(name: int | str, on: str = "") -> Sql:
    """Delete {k}NAME by SQL."""
    return sql(f"DELETE FROM {{t1}} WHERE c1 = '{{k}}{name}'", on=on)  # noqa: S608 - a template


def select(name: int | str, value: str, on: str = "") -> Sql:
    """Want SQL to see that value in {k}NAME."""
    return sql(f"SELECT c2 FROM {{t1}} WHERE c1 = '{{k}}{name}'", (value,), on=on)  # noqa: S608 - a template


def get(name: int | str, value: str | By, on: str = "a", verb: str = "get") -> Send:
    """Get {k}NAME and want that value."""
    return send(f"{verb} {{k}}{name}\r\n", value if not isinstance(value, str) else item_reply(name, value), on=on)


def item_reply(name: int | str, value: str) -> str:
    """Return the answer to `get {k}NAME`."""
    return f"VALUE {{k}}{name} 0 {len(value)}\r\n{value}\r\nEND\r\n"


def pending(name: int | str) -> By:
    """Return the answer to `get {k}NAME` at the default level if another connection has set it and not committed."""
    return By("isolation.default_level", {0: (item_reply(name, "x"),), 1: ("END\r\n",)})


def miss(name: int | str, on: str = "a") -> Send:
    """Get {k}NAME and want a miss."""
    return send(f"get {{k}}{name}\r\n", "END\r\n", on=on)
