"""INSERT, UPDATE, DELETE and SELECT as SQLite statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from kvref.translation.expressions import selected, stored, to_sqlite
from kvref.translation.tables import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref.translation.schema import Schema
    from kvref.translation.tables import Column, Table


def insert(schema: Schema, tree: exp.Insert, *, replacing: bool) -> str:
    """Return an INSERT, or a REPLACE that was parsed as one."""
    tree = tree.copy()
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    table = schema.known(target)
    scope = schema.resolve(tree)
    if table is not None and isinstance(tree.expression, exp.Values):
        _fill_in(tree, table)
    conflict = tree.args.get("conflict")
    if conflict is not None and conflict.args.get("duplicate"):
        conflict.set("duplicate", None)
        conflict.set("action", exp.Var(this="DO UPDATE"))
    sql = to_sqlite(tree, scope)
    return re.sub(r"^INSERT\b", "INSERT OR REPLACE", sql) if replacing else sql


def _fill_in(tree: exp.Insert, table: Table) -> None:
    """Write out what MySQL adds to an INSERT of VALUES: conversions, DEFAULT, AUTO_INCREMENT."""
    listed = tree.this.expressions if isinstance(tree.this, exp.Schema) else table.columns
    columns = [table.column(part.name) for part in listed]
    if None in columns:
        return  # SQLite names the column that does not exist
    numbered = next((column for column in table.columns if column.auto_increment), None)
    tuples = []
    for row in tree.expression.expressions:
        if len(row.expressions) != len(columns):
            raise NotImplementedError(f"{len(row.expressions)} values for {len(columns)} columns")
        cells = {
            column.name: _cell(value, column, table)
            for column, value in zip(columns, row.expressions, strict=True)
            if column is not None and column.generated is None  # SQLite takes no DEFAULT for a generated column
        }
        if numbered is not None:
            cells.setdefault(numbered.name, _number("next_number", table))
        tuples.append(exp.Tuple(expressions=list(cells.values())))
    names = [exp.to_identifier(name, quoted=True) for name in cells]
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    tree.set("this", exp.Schema(this=target, expressions=names))
    tree.set("expression", exp.Values(expressions=tuples))


def _cell(value: exp.Expr, column: Column, table: Table) -> exp.Expr:
    if column.auto_increment:
        null = isinstance(value, exp.Null)
        return _number("next_number", table) if null else _number("used_number", table, value)
    if isinstance(value, exp.Var) and value.name.upper() == "DEFAULT":
        return sqlglot.parse_one(column.default or "NULL", read="sqlite")
    return stored(value, column)


def _number(function: str, table: Table, *value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=[exp.Literal.string(table.source), *value])


def change(schema: Schema, tree: exp.Update | exp.Delete) -> str:
    """Return an UPDATE or DELETE of one table."""
    tree = tree.copy()
    scope = schema.resolve(tree)
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    if isinstance(tree, exp.Update) and scope:
        for assignment in tree.expressions:
            assigned = scope[0].column(assignment.this.name)
            if assigned is not None:
                assignment.set("expression", stored(assignment.expression, assigned))
    return to_sqlite(tree, scope)


def query(schema: Schema, tree: exp.Query) -> Iterator[str]:
    """Yield a query, preceded by the statement that takes the lock of FOR UPDATE.

    Raises:
        NotImplementedError: a search in a FULLTEXT index.
    """
    tree = tree.copy()
    if tree.find(exp.MatchAgainst):
        raise NotImplementedError("SQLite's tables have no FULLTEXT index")
    for select in tree.find_all(exp.Select):
        table = select.find(exp.Table)
        if select.args.get("locks") and table is not None:
            # SQLite's only lock is the one a change takes on the whole file.
            yield f"DELETE FROM {quote(schema.source(table))} WHERE FALSE"  # noqa: S608 - quoted
            select.set("locks", None)
    scope = schema.resolve(tree)
    if isinstance(tree, exp.Select):
        selected(tree, scope)
    yield to_sqlite(tree, scope)
