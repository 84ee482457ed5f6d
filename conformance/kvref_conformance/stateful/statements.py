"""The steps of a history over SQL as statements of a case, on connections that a case names as a history does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.model import steps as s
from kvref_conformance.steps import Sql, StartSql

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kvref_conformance.model.expected import Seen
    from kvref_conformance.model.model import Model
    from kvref_conformance.model.rows import Row, RowId

# Names of connections: without a transaction, in the open one, with the statement that waits, at READ UNCOMMITTED.
COMMITTED: Final = "committed"
TRANSACTION: Final = "transaction"
WAITER: Final = "waiter"
DIRTY: Final = "dirty"
LEVELS: Final = {**dict.fromkeys((COMMITTED, TRANSACTION, WAITER), "READ COMMITTED"), DIRTY: "READ UNCOMMITTED"}
# Seconds for which a statement waits for a lock, and in which the tables can be filled.
PATIENCE: Final = 8.0
# Seconds without a reply to a command, or the end of a statement, that waits: long for an endpoint without the lock.
SILENT: Final = 0.02


def statements(step: s.Change | s.End, model: Model, *, begins: bool) -> Iterator[Sql | StartSql]:
    """Yield the statements of a step.

    Args:
        step: the step.
        model: has taken the step.
        begins: no transaction was open before it.
    """
    if isinstance(step, s.End):
        yield Sql("COMMIT" if step.commit else "ROLLBACK", on=TRANSACTION)
        return
    if step.within and begins:
        yield Sql("BEGIN", on=TRANSACTION)
    change = _change(step, model, TRANSACTION if step.within else COMMITTED)
    yield StartSql(change.statement, WAITER, SILENT) if _waits(step, model) else change


def insertion(table: str, rows: Mapping[RowId, Row | None]) -> Sql:
    """Return what inserts rows."""
    items = ((key, row.item, row.number.seen) for (_, key), row in rows.items() if row)
    cells = (f"('{key}', '{item.value}', {item.flags}, {number}, 0)" for key, item, number in items)
    return Sql(f"INSERT INTO {table} VALUES {', '.join(cells)}", on=COMMITTED)


def selection(model: Model, expected: Seen) -> Sql:
    """Return what a case that repeats a history finds these rows with: without cas numbers, which are others then.

    Args:
        model: knows the tables.
        expected: the rows.
    """
    tables = model.all_tables()
    each = " UNION ALL ".join(f"SELECT {n}, c1, c2, c3 FROM {table}" for n, table in enumerate(tables))
    rows = ((tables.index(table), key, row.item.value, row.item.flags) for (table, key), row in expected.rows)
    return Sql(f"{each} ORDER BY 1, 2", tuple(sorted(rows)), on=DIRTY if expected.dirty else COMMITTED)


def opening(name: str) -> Sql:
    """Return what a connection begins with."""
    return Sql(f"SET SESSION TRANSACTION ISOLATION LEVEL {LEVELS[name]}", on=name)


def _change(step: s.Change, model: Model, on: str) -> Sql:
    where = f"WHERE c1 = '{step.key}'"
    if step.verb == "delete":
        return Sql(f"DELETE FROM {step.table} {where}", on=on)
    waits = _waits(step, model)
    row = waits[1] if waits else model.rows.own(s.SQL if step.within else s.AUTOCOMMIT, (step.table, step.key))
    assert row is not None, "it was just written"
    if step.verb == "insert":
        return replace(insertion(step.table, {(step.table, step.key): row}), on=on)
    cells = f"c2 = '{row.item.value}', c3 = {row.item.flags}, c4 = {row.number.seen}"
    return Sql(f"UPDATE {step.table} SET {cells} {where}", on=on)


def _waits(step: s.Change, model: Model) -> tuple[RowId, Row | None] | None:
    """Return what a statement waits for and what it will write, where it waits."""
    waits = model.sql_waits
    return waits if waits and not step.within and waits[0] == (step.table, step.key) else None
