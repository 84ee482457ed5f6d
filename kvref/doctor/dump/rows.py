"""The rows of the configuration tables, as INSERT, REPLACE, UPDATE and DELETE with literals leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from sqlglot import exp

from kvref.doctor.dump.statements import NotUnderstood
from kvref.storage.config.catalog import naming_of
from kvref.storage.config.column_types import members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref.doctor.dump.tables import Column, Table

Cell: TypeAlias = "str | None"
Row: TypeAlias = "dict[str, Cell]"  # by the names of columns in lower case

_NOT_LITERAL: Final = "its rows are not literals as mysqldump writes them"


def _fold(column: Column, text: str) -> str:
    return text if column.text is None else naming_of(None, column.text.collation).fold(text)


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
    raise NotUnderstood(_NOT_LITERAL)


def stored(column: Column, literal: exp.Expr) -> Cell:
    """Return what a column stores of a literal in strict SQL mode; raises NotUnderstood for anything else."""
    if isinstance(literal, exp.Var | exp.Column) and literal.name.upper() == "DEFAULT":
        return default_of(column)
    text = _text(literal)
    if text is None:
        if not column.nullable:
            raise NotUnderstood(f"NULL in the column {column.name}, which is NOT NULL")
        return None
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise NotUnderstood("it has bytes that are not UTF-8")
    if column.type.word == "enum":
        return _member(column, text)
    if column.type.word == "char":
        text = text.rstrip(" ")
    width = column.type.arguments
    if column.type.word in ("char", "varchar") and width.isdigit() and len(text) > int(width[:10]):
        raise NotUnderstood(f"a text longer than the column {column.name}")
    return text


def _member(column: Column, text: str) -> str:
    for each in members(column.type.arguments):
        if each.lower() == text.rstrip(" ").lower():
            return each
    raise NotUnderstood(f"{text[:40]!r} is not a member of the column {column.name}")


def default_of(column: Column) -> Cell:
    """Return the value of a column that an INSERT does not name; raises NotUnderstood if it is not known."""
    if column.value is not None:
        return stored(column, column.value)
    if column.default or not column.nullable or column.generated:
        raise NotUnderstood(f"the column {column.name} has no literal as its default")
    return None


class Rows:
    """The rows of one table."""

    def __init__(self, table: Table, rows: list[Row]) -> None:
        self._table = table
        self.rows = rows

    def insert(self, tree: exp.Insert, *, replacing: bool) -> None:
        """Run an INSERT, or a REPLACE that was parsed as one; raises NotUnderstood if its effect is not known."""
        if not isinstance(tree.expression, exp.Values) or tree.args.get("conflict"):
            raise NotUnderstood("rows of a query" if tree.expression else "an INSERT of another form")
        columns = self._listed(tree)
        for values in tree.expression.expressions:
            row = self._row(list(values.expressions), columns)
            same = self._same(row)
            if same and replacing:
                self.rows = [each for each in self.rows if each not in same]
            elif same and tree.args.get("ignore"):
                continue
            elif same:
                raise NotUnderstood("a row with its key is there already")
            self.rows.append(row)

    def _listed(self, tree: exp.Insert) -> list[Column]:
        if not isinstance(tree.this, exp.Schema) or not tree.this.expressions:
            return [column for column in self._table.columns if not column.generated]
        return [self._table.column(each.name) for each in tree.this.expressions]

    def _row(self, cells: list[exp.Expr], columns: list[Column]) -> Row:
        if len(cells) != len(columns):
            raise NotUnderstood(f"{len(cells)} values for {len(columns)} columns")
        row = {column.name.lower(): stored(column, cell) for column, cell in zip(columns, cells, strict=True)}
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
            cells = [(self._table.column(part.column), row[part.column.lower()]) for part in index.parts]
            if all(cell is not None for _, cell in cells):
                yield name, tuple(_fold(column, cell or "") for column, cell in cells)

    def _same(self, row: Row) -> list[Row]:
        keys = set(self._keys(row))
        return [each for each in self.rows if keys.intersection(self._keys(each))]

    def update(self, tree: exp.Update) -> None:
        """Run an UPDATE of this table; raises NotUnderstood if its effect is not known."""
        for row in self._matching(tree):
            for assignment in tree.expressions:
                if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
                    raise NotUnderstood("an assignment that is not to a column")
                column = self._table.column(assignment.this.name)
                row[column.name.lower()] = stored(column, assignment.expression)
        if any(len(self._same(row)) > 1 for row in self.rows):
            raise NotUnderstood("two rows have the same key")

    def delete(self, tree: exp.Delete) -> None:
        """Run a DELETE from this table; raises NotUnderstood if its effect is not known."""
        deleted = self._matching(tree)
        self.rows = [row for row in self.rows if not any(row is each for each in deleted)]

    def _matching(self, tree: exp.Expr) -> list[Row]:
        """Return the rows of a statement's WHERE."""
        if tree.args.get("limit"):
            raise NotUnderstood("LIMIT leaves open which rows it is about")
        where = tree.args.get("where")
        return [row for row in self.rows if where is None or self._matches(where.this, row)]

    def _matches(self, condition: exp.Expr, row: Row) -> bool:
        match condition:
            case exp.Paren(this=inner):
                return self._matches(inner, row)
            case exp.And(this=left, expression=right):
                return self._matches(left, row) and self._matches(right, row)
            case exp.Or(this=left, expression=right):
                return self._matches(left, row) or self._matches(right, row)
            case exp.EQ(this=exp.Column() as column, expression=exp.Literal(is_string=True) as text):
                return self._is_one_of(column.name, [text], row)
            case exp.In(this=exp.Column() as column, expressions=texts) if texts and all(t.is_string for t in texts):
                return self._is_one_of(column.name, texts, row)
        raise NotUnderstood("a condition of another form")

    def _is_one_of(self, name: str, texts: list[exp.Expr], row: Row) -> bool:
        column = self._table.column(name)
        cell = row[column.name.lower()]
        return cell is not None and _fold(column, cell) in {_fold(column, text.name) for text in texts}
