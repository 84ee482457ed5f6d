"""Reads from which rows are left out that others have deleted and not committed yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Lookup, Row, Scan
from kvref.server.executors.mysql.pool import Pool
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection


async def without_deleted(
    pool: Pool, isolation: Isolation, connection: MySQLConnection, operation: Lookup | Scan, answer: Any
) -> Any:
    """Return the answer of a read less the rows that are gone since.

    Args:
        pool: gives a connection that sees what is not committed.
        isolation: in force.
        connection: what answered.
        operation: the read.
        answer: a row, None, or the rows of a scan, which are made up to their limit again.

    Raises:
        KvrefError: as `MySQLConnection.execute`.
    """
    if isolation.reads_lock:
        return answer  # it has waited for whoever deletes
    if isinstance(operation, Lookup):
        if answer is None or operation.for_update:
            return answer
        return answer if await _present(pool, connection, operation.mapping, [answer]) else None
    page: list[Row] = answer
    rows = await _present(pool, connection, operation.mapping, page)
    # A range ends at the first NULL key (more:nullrange-003, more:nullrange-006).
    while len(rows) < operation.limit == len(page) and page[-1].key is not None:
        operation = replace(operation, low=page[-1].key, low_inclusive=False)
        page = await pool.in_thread(connection.execute, operation)
        rows += await _present(pool, connection, operation.mapping, page)
    return rows[: operation.limit]


async def _present(pool: Pool, connection: MySQLConnection, mapping: Mapping, rows: list[Row]) -> list[Row]:
    keys = [row.key for row in rows if row.key is not None]
    if not keys:
        return rows
    if connection.in_transaction:
        found = await pool.call_outside(MySQLConnection.present, mapping, keys)
    else:
        found = await pool.in_thread(connection.present, mapping, keys)
    return [row for row in rows if row.key is None or row.key in found]  # NULL cannot be looked up
