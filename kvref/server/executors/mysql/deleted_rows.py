"""Rows that others have deleted are missing at once, not only after the commit (rbatch-080, iso-011)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Lookup, Row, Scan
from kvref.server.executors.mysql.pool import Pool
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.connection import MySQLConnection


async def without_deleted(
    pool: Pool, isolation: Isolation, link: MySQLConnection, operation: Lookup | Scan, answer: Any
) -> Any:
    """Return the answer of a read less the rows that are gone since.

    Args:
        pool: gives a link that sees what is not committed.
        isolation: in force.
        link: what answered.
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
        return answer if await _present(pool, link, operation.mapping, [answer]) else None
    page: list[Row] = answer
    rows = await _present(pool, link, operation.mapping, page)
    # A range ends at the first NULL key (more:nullrange-003, more:nullrange-006).
    while len(rows) < operation.limit == len(page) and page[-1].key is not None:
        operation = replace(operation, low=page[-1].key, low_inclusive=False)
        page = await pool.in_thread(link.execute, operation)
        rows += await _present(pool, link, operation.mapping, page)
    return rows[: operation.limit]


async def _present(pool: Pool, link: MySQLConnection, mapping: Mapping, rows: list[Row]) -> list[Row]:
    keys = [row.key for row in rows if row.key is not None]
    if not keys:
        return rows
    if link.in_transaction:
        async with pool.outside() as outside:
            found = await pool.in_thread(outside.present, mapping, keys)
    else:
        found = await pool.in_thread(link.present, mapping, keys)
    return [row for row in rows if row.key is None or row.key in found]  # NULL cannot be looked up
