"""MySQL statements as SQLite statements, as far as general rules apply; INSERT, UPDATE, DELETE and SELECT.

sqlglot parses and writes; `schema.py` remembers the tables that statements made, `ddl.py` has the statements about
tables, `expressions.py` what an expression means, and `session.py` what SQLite lacks. What has no form in SQLite raises
Untranslatable, it is never left out silently.

    translator = Translator("8.0.33")
    for statement in translator.translate("CREATE TABLE test.t (k INT PRIMARY KEY) ENGINE=InnoDB"):
        connection.execute(statement)
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from kvref.errors import SuiteError
from kvref_conformance.translation import ddl
from kvref_conformance.translation.ddl import CREATE_TRIGGER, create_trigger
from kvref_conformance.translation.expressions import selected, stored, to_sqlite
from kvref_conformance.translation.schema import DEFAULT_SCHEMA, Schema, key_of, named, quote, string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_conformance.translation.schema import Column, Table


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


# Statements without an effect that the plugin's clients or SQL's rows would show: table locks and read_only
# do not stop the plugin.
_WITHOUT_EFFECT: Final = re.compile(
    r"\s*(?:LOCK\s+TABLES|UNLOCK\s+TABLES|FLUSH\s|ANALYZE\s|USE\s|SET\s+(?!@\w)|CREATE\s+(?:DATABASE|SCHEMA)\s|$)",
    re.IGNORECASE,
)
# What means the same as long as no table changes.
_OF_ROWS: Final = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|BEGIN|COMMIT)\b", re.IGNORECASE)
_TRANSACTION: Final = re.compile(r"\s*(BEGIN|START\s+TRANSACTION\b.*|COMMIT|ROLLBACK)(?:\s+WORK)?\s*", re.IGNORECASE)
_RENAME: Final = re.compile(r"\s*RENAME\s+TABLE\s+(.+)", re.IGNORECASE | re.DOTALL)
_REPLACE: Final = re.compile(r"\s*REPLACE\b", re.IGNORECASE)
_CREATE_TABLE: Final = re.compile(r"\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\b", re.IGNORECASE)
_OPTIMIZE: Final = re.compile(r"\s*OPTIMIZE\s+TABLE\s+(\S+)\s*", re.IGNORECASE)
# Levels of a parsed statement. The time to translate one grows with the square of its depth.
MAX_DEPTH: Final = 64
# What InnoDB says of every table.
_OPTIMIZED: Final = (
    "(VALUES ('note', 'Table does not support optimize, doing recreate + analyze instead'), ('status', 'OK'))"
)

# sqlglot warns of what it keeps unparsed; here that is refused with its own words.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class Untranslatable(SuiteError):  # noqa: N818 - what the statement is
    """A statement that has no form in SQLite; the text says which and why."""


class Translator:
    """Translate the statements of one world, in order: it remembers the tables they make.

    Args:
        version: of the MySQL server whose defaults count, such as "8.0.33".
    """

    def __init__(self, version: str) -> None:
        self._schema = Schema(version)
        self._before: dict[str, list[str]] = {}
        self.numbers: dict[str, int] = {}
        """AUTO_INCREMENT counters by table, for `functions.register`."""

    def fork(self) -> Translator:
        """Return a translator that knows the same tables and goes its own way from here."""
        other = Translator(self._schema.version)
        other._schema = self._schema.copy()
        other.numbers |= self.numbers
        return other

    def table(self, schema: str, name: str) -> Table | None:
        """Return a table as its statements made it, None where none did."""
        return self._schema.tables.get(f"{schema}.{name}")

    @property
    def session(self) -> list[str]:
        """Give the statements that a further SQL connection runs first: they make its triggers."""
        return [sql for triggers in self._schema.triggers.values() for sql in triggers.values()]

    def translate(self, statement: str) -> list[str]:
        """Return a statement in SQLite's words: none, one or several.

        Raises:
            Untranslatable: there is no rule for it.
        """
        before = self._before.get(statement)
        if before is not None:
            return before
        try:
            translated = list(self._translated(statement.strip().rstrip(";")))
        except (SqlglotError, NotImplementedError, KeyError) as error:
            raise Untranslatable(f"no form in SQLite for {statement!r}: {str(error).splitlines()[0]}") from error
        if _OF_ROWS.match(statement):
            self._before[statement] = translated
        else:
            self._before.clear()  # it may have changed a table
        return translated

    def _translated(self, statement: str) -> Iterator[str]:
        if found := _TRANSACTION.fullmatch(statement):
            word = found[1].split()[0].upper()
            yield "BEGIN" if word == "START" else word
        elif _WITHOUT_EFFECT.match(statement):
            return
        elif found := _OPTIMIZE.fullmatch(statement):
            yield f"SELECT {string(key_of(named(found[1])))}, 'optimize', column1, column2 FROM {_OPTIMIZED}"  # noqa: S608
        elif found := _RENAME.fullmatch(statement):
            for pair in found[1].split(","):
                old, new = re.split(r"\s+TO\s+", pair.strip(), flags=re.IGNORECASE)
                yield from ddl.rename(self._schema, named(old), named(new))
        elif found := CREATE_TRIGGER.fullmatch(statement):
            yield from create_trigger(self._schema, found, self.translate(found["body"]))
        elif _CREATE_TABLE.match(statement):
            head, tail, descending = ddl.split(statement)
            options = ddl.TableOptions(tail)
            yield from ddl.create_table(self._schema, _create(head), options, descending)
        elif _REPLACE.match(statement):
            tree = parsed(_REPLACE.sub("INSERT", statement, count=1))
            assert isinstance(tree, exp.Insert), "INSERT is parsed as an Insert"
            yield insert(self._schema, tree, replacing=True)
        else:
            yield from self._parsed(parsed(statement))

    def _parsed(self, tree: exp.Expr) -> Iterator[str]:
        schema = self._schema
        match tree:
            case exp.Create():
                yield from ddl.create(schema, tree)
            case exp.Alter():
                yield from ddl.alter(schema, tree)
            case exp.Drop():
                yield from ddl.drop(schema, tree)
            case exp.TruncateTable():
                yield from ddl.truncate(schema, tree)
            case exp.Set():
                for item in tree.expressions:
                    variable, value = item.this.this.name, item.this.expression
                    yield f"SELECT set_user_variable({string(variable)}, {to_sqlite(value.copy())})"
            case exp.Show(name="TABLES"):
                yield self._show_tables(tree)
            case exp.Insert():
                yield insert(schema, tree, replacing=False)
            case exp.Update() | exp.Delete():
                yield change(schema, tree)
            case exp.Query():
                yield from query(schema, tree)
            case _:
                raise NotImplementedError(f"{type(tree).__name__} is not known here")

    def _show_tables(self, tree: exp.Show) -> str:
        database = tree.args["db"].name if tree.args.get("db") else DEFAULT_SCHEMA
        keys = sorted((*self._schema.tables, *self._schema.views))
        names = [key.removeprefix(f"{database}.") for key in keys if key.startswith(f"{database}.")]
        return " UNION ALL ".join(f"SELECT {string(name)}" for name in names) or "SELECT NULL WHERE FALSE"


@lru_cache(maxsize=4096)
def parsed(statement: str) -> exp.Expr:
    """Return a statement as a tree; raises SqlglotError, and NotImplementedError beyond MAX_DEPTH."""
    too_deep = f"nested more than {MAX_DEPTH} levels deep"
    try:
        tree = sqlglot.parse_one(statement, read="mysql")
    except RecursionError:
        raise NotImplementedError(too_deep) from None
    except ValueError as error:  # sqlglot, for an empty quoted name in place of a width; its own errors are none
        raise NotImplementedError(str(error)) from error
    level: list[exp.Expr] = [tree]
    for _ in range(MAX_DEPTH):
        level = [part for each in level for part in each.iter_expressions()]
        if not level:
            return tree
    raise NotImplementedError(too_deep)


def _create(statement: str) -> exp.Create:
    tree = parsed(statement)
    if not isinstance(tree, exp.Create):
        raise NotImplementedError("a part of its list of columns is not known here")
    return tree
