"""CREATE, ALTER, DROP and RENAME as SQLite statements, for tables, indexes and views; a change rebuilds the table."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.mysql import MySQL

from kvref.translation.ddl import Defaults, TableBuilder
from kvref.translation.expressions import to_sqlite
from kvref.translation.schema import INNODB, key_of, source_of, string
from kvref.translation.tables import Table, quote
from kvref.translation.triggers import checks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kvref.translation.schema import Schema


class TableOptions:
    """What follows the list of columns in CREATE TABLE, as far as it matters.

    Args:
        text: ENGINE=InnoDB DEFAULT CHARSET=latin1, and so on.
    """

    def __init__(self, text: str) -> None:
        self.charset = _after(r"(?:CHARACTER\s+SET|CHARSET)", text)
        self.collation = _after("COLLATE", text)
        self.engine = _after("ENGINE", text) or INNODB
        if re.search(r"\bPARTITION\s+BY\b", text, re.IGNORECASE):
            self.engine = "partitioned"  # InnoDB knows its partitions only, each a table of its own


def _after(words: str, text: str) -> str | None:
    found = re.search(rf"\b{words}\s*=?\s*(\w+)", text, re.IGNORECASE)
    return found[1].lower() if found else None


def split(statement: str) -> tuple[str, str, frozenset[str]]:
    """Take apart what sqlglot cannot read of a CREATE TABLE.

    Returns:
        The statement up to the end of the list of columns, what follows, and the columns with DESC in a key.
    """
    depth, pieces, begin, before = 0, [], 0, ""
    descending: set[str] = set()
    for token in MySQL().tokenize(statement):
        match token.token_type.name:
            case "L_PAREN":
                depth += 1
            case "R_PAREN":
                depth -= 1
                if depth == 0:
                    pieces.append(statement[begin : token.end + 1])
                    return "".join(pieces), statement[token.end + 1 :], frozenset(descending)
            case "ASC" | "DESC" as order:
                pieces.append(statement[begin : token.start])
                begin = token.end + 1
                descending |= {before} if order == "DESC" else set()
        before = token.text
    return statement, "", frozenset()


def create_table(schema: Schema, tree: exp.Create, options: TableOptions, descending: frozenset[str]) -> Iterator[str]:
    """Yield the statements that make a table.

    Args:
        schema: gains the table.
        tree: the statement up to the end of its list of columns.
        options: what follows.
        descending: columns with DESC in a key.
    """
    name = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    key = key_of(name)
    if tree.args.get("exists") and key in schema.tables:
        return
    temporary = tree.find(exp.TemporaryProperty) is not None
    source = source_of(key, options.engine)
    if like := tree.find(exp.LikeProperty):
        table = replace(schema.needed(like.this), source=source)
    elif isinstance(tree.this, exp.Schema):
        defaults = Defaults.of(schema.version, options.charset, options.collation)
        # 5.6 reads DESC and forgets it (columns:idx-023).
        kept = frozenset() if schema.version.startswith("5.") else descending
        empty = Table(source, (), descending=kept, temporary=temporary)
        builder = TableBuilder(empty, defaults, schema.source)
        for part in tree.this.expressions:
            builder.define(part)
        table = builder.table
    else:
        raise NotImplementedError("CREATE TABLE without a list of columns")
    (schema.temporary if temporary else schema.tables)[key] = table
    yield from table.create()
    yield from checks(schema, key, table)


def create(schema: Schema, tree: exp.Create) -> Iterator[str]:
    """Yield the statements of CREATE VIEW and CREATE INDEX.

    Raises:
        NotImplementedError: something else is to be made.
    """
    match tree.args["kind"]:
        case "VIEW":
            yield from _create_view(schema, tree)
        case "INDEX":
            yield from _create_index(schema, tree)
        case kind:
            raise NotImplementedError(f"CREATE {kind} is not known here")


def _create_view(schema: Schema, tree: exp.Create) -> Iterator[str]:
    # Changes through a view reach the table below.
    query = tree.expression.copy()
    below = query.find(exp.Table)
    if below is None:
        raise NotImplementedError("a view without a table")
    key = key_of(tree.this)
    schema.views[key] = key_of(below)
    scope = schema.resolve(query)
    yield f"CREATE VIEW {quote(source_of(key))} AS {to_sqlite(query, scope)}"


def _create_index(schema: Schema, tree: exp.Create) -> Iterator[str]:
    index = tree.this
    builder = _builder(schema, index.args["table"])
    columns = tuple(part.this.name for part in index.args["params"].args["columns"])
    builder.add_index(index.name, columns, unique=bool(tree.args.get("unique")))
    yield from _anew(schema, key_of(index.args["table"]), builder.table, {})


def alter(schema: Schema, tree: exp.Alter) -> Iterator[str]:
    """Yield the statements of ALTER TABLE.

    Raises:
        NotImplementedError: an action that is not known here.
    """
    key, builder = key_of(tree.this), _builder(schema, tree.this)
    renamed: dict[str, str] = {}
    for action in tree.args.get("actions") or ():
        if isinstance(action, exp.AlterRename):
            yield from rename(schema, tree.this, action.this)
            return
        renamed |= _change(builder, action, schema.version)
    for option in tree.args.get("options") or ():
        if isinstance(option, exp.EngineProperty):
            builder.table = replace(builder.table, source=source_of(key, option.name))
    yield from _anew(schema, key, builder.table, renamed)


def _change(builder: TableBuilder, action: exp.Expr, version: str) -> dict[str, str]:
    """Run one action of ALTER TABLE; return old names of columns by new ones."""
    match action:
        case exp.ColumnDef():
            builder.add_column(action)
        case exp.ModifyColumn():
            old = (action.args.get("rename_from") or action.this).name
            builder.add_column(action.this, instead_of=old)
            return {action.this.name: old}
        case exp.RenameColumn(this=before) if not version.startswith("5."):
            new = action.args["to"].name
            builder.rename_column(before.name, new)
            return {new: before.name}
        case exp.Drop(kind="COLUMN"):
            builder.drop_column(action.args["tables"][0].name)
        case exp.Drop(kind="INDEX"):
            builder.drop_index(action.args["tables"][0].name)
        case exp.DropPrimaryKey():
            builder.drop_primary_key()
        case exp.RenameIndex() if not version.startswith("5."):
            builder.rename_index(action.this.name, action.args["to"].name)
        case exp.AlterColumn() if action.args.get("default") or action.args.get("drop"):
            builder.set_default(action.this.name, action.args.get("default"))
        case exp.AddConstraint():
            for part in action.expressions:
                builder.define(part)
        case _:
            raise NotImplementedError(action.sql(dialect="mysql"))
    return {}


def rename(schema: Schema, old: exp.Table, new: exp.Table) -> Iterator[str]:
    """Yield the statements of RENAME TABLE; index names follow."""
    yield from _anew(schema, key_of(old), replace(schema.needed(old), source=source_of(key_of(new))), {})
    schema.tables[key_of(new)] = schema.tables.pop(key_of(old))


def drop(schema: Schema, tree: exp.Drop) -> Iterator[str]:
    """Yield the statements of DROP TABLE, VIEW, INDEX and DATABASE."""
    names = tree.args.get("tables") or [tree.this]
    exists = "IF EXISTS " if tree.args.get("exists") else ""
    match tree.args["kind"]:
        case "DATABASE" | "SCHEMA":
            for key in [key for key in schema.tables if key.startswith(f"{names[0].name}.")]:
                yield f"DROP TABLE {quote(schema.tables.pop(key).source)}"
        case "INDEX":
            name = tree.args["cluster"].this
            builder = _builder(schema, name)
            builder.drop_index(names[0].name)
            yield from _anew(schema, key_of(name), builder.table, {})
        case "VIEW":
            for name in names:
                schema.views.pop(key_of(name), None)
                yield f"DROP VIEW {exists}{quote(source_of(key_of(name)))}"
        case _:
            for name in names:
                source, key = schema.source(name), key_of(name)
                if schema.temporary.pop(key, None) is None:
                    schema.tables.pop(key, None)
                    schema.triggers.pop(key, None)
                yield f"DROP TABLE {exists}{quote(source)}"


def truncate(schema: Schema, tree: exp.TruncateTable) -> Iterator[str]:
    """Yield the statements of TRUNCATE, which also sets AUTO_INCREMENT back."""
    for table in tree.expressions:
        yield f"SELECT restart_numbers({string(schema.source(table))})"
        yield f"DELETE FROM {quote(schema.source(table))}"  # noqa: S608 - quoted


def _builder(schema: Schema, name: exp.Table) -> TableBuilder:
    table = schema.needed(name)
    text = next((column for column in table.columns if column.collation is not None), None)
    defaults = Defaults.of(schema.version, None, text.collation if text is not None else None)
    return TableBuilder(table, defaults, schema.source)


def _anew(schema: Schema, key: str, table: Table, renamed: Mapping[str, str]) -> Iterator[str]:
    """Yield the steps by which SQLite's page on ALTER TABLE makes changes its own ALTER lacks.

    Args:
        schema: learns the new table.
        key: its name.
        table: what it is to become.
        renamed: columns whose content comes from one of another name.
    """
    before = schema.tables[key]
    schema.tables[key] = table
    there = {column.name.lower() for column in before.columns if column.generated is None}
    pairs = [
        (column.name, old)
        for column in table.columns
        if column.generated is None and (old := renamed.get(column.name, column.name)).lower() in there
    ]
    into, from_ = (", ".join(map(quote, names)) for names in zip(*pairs, strict=True))
    building = replace(table, source=f"{table.source} (new)", indexes={})
    yield "PRAGMA foreign_keys = OFF"
    yield "PRAGMA legacy_alter_table = ON"  # a view on the table does not mind its absence
    yield "SAVEPOINT anew"  # no connection sees the table missing
    yield from building.create()
    yield f"INSERT INTO {quote(building.source)} ({into}) SELECT {from_} FROM {quote(before.source)}"  # noqa: S608
    yield f"DROP TABLE {quote(before.source)}"
    yield f"ALTER TABLE {quote(building.source)} RENAME TO {quote(table.source)}"
    yield from list(table.create())[1:]
    yield "RELEASE anew"
    yield "PRAGMA legacy_alter_table = OFF"
    yield "PRAGMA foreign_keys = ON"
    yield from schema.triggers.get(key, {}).values()
