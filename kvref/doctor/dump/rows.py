"""The rows of the configuration tables, as INSERT, REPLACE, UPDATE and DELETE with literals leave them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from sqlglot import exp

from kvref.doctor.dump.words import NotUnderstood
from kvref.storage.mysql.schema import naming_of

if TYPE_CHECKING:
    from kvref.doctor.dump.tables import Column, Table

Cell: TypeAlias = "str | None"
Row: TypeAlias = "dict[str, Cell]"  # by the names of columns in lower case

_MEMBER: Final = re.compile(r"'((?:[^']|'')*)'")
NOT_LITERAL: Final = "its rows are not literals as mysqldump writes them"


def members(column: Column) -> list[str]:
    """Return the members of an ENUM."""
    return [each.replace("''", "'") for each in _MEMBER.findall(column.type.arguments)]


def fold_of(column: Column) -> Callable[[str], str]:
    """Return what equal texts of a column have in common."""
    if column.text is None:
        return str
    return naming_of(None, column.text.collation).fold


def _text(literal: exp.Expr) -> Cell:
    """Return the text of a literal; raises NotUnderstood for anything else."""
    match literal:
        case exp.Null():
            return None
        case exp.Literal() | exp.National():
            return str(literal.this)
        case exp.Neg(this=exp.Literal(is_string=False) as number):
            return f"-{number.this}"
        case exp.Boolean():
            return str(int(literal.this))
        case exp.Introducer(expression=exp.Literal() | exp.HexString() as text):
            return _text(text)
        case exp.HexString():
            return bytes.fromhex(str(literal.this)).decode("utf-8", "surrogateescape")
        case exp.Paren(this=inner):
            return _text(inner)
    raise NotUnderstood(NOT_LITERAL)


def stored(column: Column, literal: exp.Expr) -> Cell:
    """Return what a column stores of a literal in strict SQL mode.

    Raises:
        NotUnderstood: it is not a literal, or the server refuses it.
    """
    if isinstance(literal, exp.Var | exp.Column) and literal.name.upper() == "DEFAULT":
        return default_of(column)
    text = _text(literal)
    if text is None:
        if not column.nullable:
            raise NotUnderstood(f"NULL in the column {column.name}, which is NOT NULL")
        return None
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise NotUnderstood("it has bytes that are no UTF-8")
    if column.type.word == "enum":
        return _member(column, text, by_number=isinstance(literal, exp.Literal) and not literal.is_string)
    if column.type.word == "char":
        text = text.rstrip(" ")
    width = column.type.arguments
    if column.type.word in ("char", "varchar") and width.isdigit() and len(text) > int(width[:10]):
        raise NotUnderstood(f"a text longer than the column {column.name}")
    return text


def _member(column: Column, text: str, *, by_number: bool) -> str:
    known = members(column)
    if by_number and text.isdigit() and 1 <= int(text[:6]) <= len(known):
        return known[int(text[:6]) - 1]
    for each in known:
        if each.lower() == text.rstrip(" ").lower():
            return each
    raise NotUnderstood(f"{text[:40]!r} is not a member of the column {column.name}")


def default_of(column: Column) -> Cell:
    """Return what a column gets where an INSERT does not name it; raises NotUnderstood where that is not known."""
    if column.value is not None:
        return stored(column, column.value)
    if column.default or not column.nullable or column.generated:
        raise NotUnderstood(f"the column {column.name} has no literal as its default")
    return None


class Rows:
    """The rows of one table.

    Args:
        table: whose columns and unique indexes count.
        rows: in any order.
    """

    def __init__(self, table: Table, rows: list[Row]) -> None:
        self._table = table
        self.rows = rows

    def insert(self, tree: exp.Insert, rows_of: Callable[[exp.Expr], list[list[Cell]]], *, replacing: bool) -> None:
        """Run an INSERT, or a REPLACE that was parsed as one.

        Args:
            tree: the statement.
            rows_of: returns the rows of a query.
            replacing: it is REPLACE.

        Raises:
            NotUnderstood: its effect is not known.
        """
        columns = self._listed(tree)
        conflict = tree.args.get("conflict")
        if isinstance(tree.expression, exp.Values):
            given = [self._literals(each, columns) for each in tree.expression.expressions]
        else:
            given = [self._as_stored(each, columns) for each in rows_of(tree.expression)]
        for row in given:
            same = self._same(row)
            if same and replacing:
                self.rows = [each for each in self.rows if each not in same]
            elif same and conflict is not None and len(same) == 1:
                for assignment in conflict.expressions:
                    self._assign(same[0], assignment, row)
                continue
            elif same and tree.args.get("ignore"):
                continue
            elif same:
                raise NotUnderstood("a row with its key is there already")
            self.rows.append(row)

    def _listed(self, tree: exp.Insert) -> list[Column]:
        if not isinstance(tree.this, exp.Schema) or not tree.this.expressions:
            return [column for column in self._table.columns if not column.generated]
        return [self._column(each.name) for each in tree.this.expressions]

    def _column(self, name: str) -> Column:
        return self._table.columns[self._table.place(name)]

    def _literals(self, values: exp.Expr, columns: list[Column]) -> Row:
        cells = list(values.expressions) if isinstance(values, exp.Tuple) else [values]
        row = {column.name.lower(): stored(column, cell) for column, cell in self._pairs(columns, cells)}
        return self._filled(row)

    def _as_stored(self, cells: list[Cell], columns: list[Column]) -> Row:
        pairs = self._pairs(columns, [exp.Null() if cell is None else exp.Literal.string(cell) for cell in cells])
        return self._filled({column.name.lower(): stored(column, cell) for column, cell in pairs})

    @staticmethod
    def _pairs(columns: list[Column], cells: list[exp.Expr]) -> Iterator[tuple[Column, exp.Expr]]:
        if not cells:
            return iter(())
        for cell in cells:
            if not isinstance(cell, exp.Var | exp.Column):
                _text(cell)
        if len(cells) != len(columns):
            raise NotUnderstood(f"{len(cells)} values for {len(columns)} columns")
        return zip(columns, cells, strict=True)

    def _filled(self, row: Row) -> Row:
        for column in self._table.columns:
            if column.name.lower() not in row:
                row[column.name.lower()] = default_of(column)
        return row

    def _keys(self, row: Row) -> Iterator[tuple[str, tuple[str, ...]]]:
        for name, index in self._table.indexes.items():
            if not index.unique:
                continue
            if any(part.length or not part.column for part in index.parts):
                raise NotUnderstood(f"the index {name} is on a part of a column")
            cells = [(fold_of(self._column(part.column)), row[part.column.lower()]) for part in index.parts]
            if all(cell is not None for _, cell in cells):
                yield name, tuple(fold(cell or "") for fold, cell in cells)

    def _same(self, row: Row) -> list[Row]:
        keys = set(self._keys(row))
        return [each for each in self.rows if keys.intersection(self._keys(each))]

    def _assign(self, row: Row, assignment: exp.Expr, new: Row | None = None) -> None:
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
            raise NotUnderstood("an assignment that is not to a column")
        column, value = self._column(assignment.this.name), assignment.expression
        if new is not None and isinstance(value, exp.Anonymous) and str(value.this).upper() in ("VALUES", "VALUE"):
            row[column.name.lower()] = new[self._column(value.expressions[0].name).name.lower()]
        elif new is not None and isinstance(value, exp.Column) and value.table:
            row[column.name.lower()] = new[self._column(value.name).name.lower()]
        else:
            row[column.name.lower()] = stored(column, value)

    def update(self, tree: exp.Update) -> None:
        """Run an UPDATE of this table; raises NotUnderstood."""
        for row in self.chosen(tree):
            for assignment in tree.expressions:
                self._assign(row, assignment)
        if any(len(self._same(row)) > 1 for row in self.rows):
            raise NotUnderstood("two rows have the same key")

    def delete(self, tree: exp.Delete) -> None:
        """Run a DELETE from this table; raises NotUnderstood."""
        gone = self.chosen(tree)
        self.rows = [row for row in self.rows if not any(row is each for each in gone)]

    def chosen(self, tree: exp.Expr) -> list[Row]:
        """Return the rows of a statement's WHERE; raises NotUnderstood."""
        where, limit = tree.args.get("where"), tree.args.get("limit")
        found = [row for row in self.rows if where is None or self._holds(where.this, row)]
        if limit is not None and not (limit.expression.name.isdigit() and len(found) <= int(limit.expression.name[:9])):
            raise NotUnderstood("LIMIT leaves open which rows it is about")
        return found

    def query(self, tree: exp.Select) -> list[list[Cell]]:
        """Return what a query of this table's columns selects; raises NotUnderstood."""
        if any(value for name, value in tree.args.items() if name not in ("expressions", "from_", "where", "limit")):
            raise NotUnderstood("a query of another form")
        names: list[str] = []
        for each in tree.expressions:
            if isinstance(each, exp.Star):
                names += [column.name for column in self._table.columns]
            elif isinstance(each, exp.Column):
                names.append(self._column(each.name).name)
            else:
                raise NotUnderstood("a query of another form")
        return [[row[name.lower()] for name in names] for row in self.chosen(tree)]

    def _holds(self, condition: exp.Expr, row: Row) -> bool | None:
        """Return whether a condition holds; None for unknown, as with NULL."""
        match condition:
            case exp.Paren(this=inner):
                return self._holds(inner, row)
            case exp.Not(this=inner):
                held = self._holds(inner, row)
                return None if held is None else not held
            case exp.And(this=left, expression=right):
                both = (self._holds(left, row), self._holds(right, row))
                return False if False in both else None if None in both else True
            case exp.Or(this=left, expression=right):
                either = (self._holds(left, row), self._holds(right, row))
                return True if True in either else None if None in either else False
            case exp.Literal(is_string=False) | exp.Boolean():
                return str(condition.this) not in ("0", "False")
            case exp.Is(this=exp.Column() as column, expression=exp.Null()):
                return row[self._column(column.name).name.lower()] is None
            case exp.EQ() | exp.NEQ():
                same = self._equal(condition.this, [condition.expression], row)
                return None if same is None else same is isinstance(condition, exp.EQ)
            case exp.In(this=left) if not condition.args.get("query") and condition.expressions:
                return self._equal(left, condition.expressions, row)
        raise NotUnderstood("a condition of another form")

    def _equal(self, left: exp.Expr, right: list[exp.Expr], row: Row) -> bool | None:
        """Return whether a column's cell is equal to one of some texts."""
        if not isinstance(left, exp.Column) or not all(
            isinstance(each, exp.Literal) and each.is_string for each in right
        ):
            raise NotUnderstood("a condition of another form")
        column = self._column(left.name)
        cell, fold = row[column.name.lower()], fold_of(column)
        return None if cell is None else fold(cell) in {fold(str(each.this)) for each in right}
