"""CREATE, ALTER, DROP and RENAME as SQLite statements, for tables, indexes, views and triggers.

What a character set and a collation do is `kvref.collations`, which is shared with the server: both write into the same
indexes, so both must sort alike. Triggers are TEMP triggers of the SQL connections, so that a server on the same file
never meets them; each further connection creates them again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.mysql import MySQL

from kvref.collations import charset_of
from kvref.collations.names import default_charset, default_collation
from kvref_conformance.translation.expressions import to_sqlite
from kvref_conformance.translation.schema import (
    INNODB,
    TEXT_TYPES,
    Column,
    Index,
    Table,
    key_of,
    named,
    quote,
    source_of,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kvref_conformance.translation.schema import Schema

CREATE_TRIGGER = re.compile(
    r"\s*CREATE\s+TRIGGER\s+(?P<name>\S+)\s+(?P<when>BEFORE|AFTER)\s+(?P<event>INSERT|UPDATE|DELETE)\s+ON"
    r"\s+(?P<table>\S+)\s+FOR\s+EACH\s+ROW\s+(?P<body>.+)",
    re.IGNORECASE | re.DOTALL,
)


def create_trigger(schema: Schema, found: re.Match[str], body: Sequence[str]) -> Iterator[str]:
    """Yield the statement that makes a trigger.

    Args:
        schema: gains it.
        found: a match of CREATE_TRIGGER.
        body: its body, translated.

    Raises:
        NotImplementedError: a body of several statements, or one that changes NEW.
    """
    if re.match(r"\s*(BEGIN|SET)\b", found["body"], re.IGNORECASE):
        raise NotImplementedError("a trigger of several statements, or one that changes NEW")
    on = named(found["table"])
    name = key_of(named(found["name"]))
    sql = (
        f"CREATE TEMP TRIGGER {quote(name)} {found['when']} {found['event']} ON main.{quote(schema.source(on))}"
        f" FOR EACH ROW BEGIN {'; '.join(body)}; END"
    )
    schema.triggers.setdefault(key_of(on), {})[name] = sql
    yield sql


def checks(schema: Schema, key: str, table: Table) -> Iterator[str]:
    """Yield the statements that keep SQL from breaking a table's CHECK conditions.

    Args:
        schema: gains them.
        key: the table's name.
        table: whose conditions.
    """
    for number, condition in enumerate(table.checks, 1):
        tree = sqlglot.parse_one(condition, read="sqlite")
        for column in tree.find_all(exp.Column):
            column.set("table", exp.to_identifier("NEW"))
        for event in ("INSERT", "UPDATE"):
            name = f"{key} check {number} {event.lower()}"
            sql = (
                f"CREATE TEMP TRIGGER {quote(name)} BEFORE {event} ON main.{quote(table.source)}"
                f" WHEN NOT ({tree.sql(dialect='sqlite')}) BEGIN SELECT RAISE(ABORT, 'CHECK constraint failed'); END"
            )
            schema.triggers.setdefault(key, {})[name] = sql
            yield sql


# Types that SQLite's grammar takes only quoted, since their arguments are not numbers.
_LISTS: Final = frozenset({"ENUM", "SET"})


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a text column of a table takes that does not say.

    Args:
        version: of the server.
        charset: character set of the table.
        collation: collation of the table.
    """

    version: str
    charset: str
    collation: str

    @classmethod
    def of(cls, version: str, charset: str | None, collation: str | None) -> Defaults:
        """Fill in what the table's options leave open; the server's default is the version's."""
        if collation is not None:
            return cls(version, charset_of(collation) or collation.partition("_")[0], collation)
        chosen = charset or default_charset(version)
        return cls(version, chosen, default_collation(chosen, version))


class TableBuilder:
    """Collect columns, keys and constraints into a table.

    Args:
        table: what to begin with.
        defaults: of its text columns.
        source_of: the name in SQLite of a table that a foreign key refers to.
    """

    def __init__(self, table: Table, defaults: Defaults, source_of: Callable[[exp.Table], str]) -> None:
        self.table = table
        self._defaults = defaults
        self._source_of = source_of

    def define(self, part: exp.Expr) -> None:
        """Add one element of a CREATE TABLE's list.

        Raises:
            NotImplementedError: an element that is not known here.
        """
        match part:
            case exp.ColumnDef():
                self.add_column(part)
            case exp.Constraint():
                for inner in part.expressions:
                    self._constrain(inner, part.name)
            case _:
                self._constrain(part, "")

    def add_column(self, definition: exp.ColumnDef, instead_of: str | None = None) -> None:
        """Add a column, at the position of its definition.

        Args:
            definition: of the column.
            instead_of: the column it replaces, which gives it its place.
        """
        column = self._column(definition)
        columns = list(self.table.columns)
        place = len(columns)
        if instead_of is not None:
            place = next(n for n, each in enumerate(columns) if each.name.lower() == instead_of.lower())
            del columns[place]
            self._rename(instead_of, column.name)
        position = definition.args.get("position")
        if position is not None:
            after = position.this.name.lower() if position.this is not None else ""
            place = next((n + 1 for n, each in enumerate(columns) if each.name.lower() == after), 0)
        columns.insert(place, column)
        self.table = replace(self.table, columns=tuple(columns))
        if definition.args["kind"].sql(dialect="mysql").upper() == "SERIAL":
            self.add_index("", (column.name,), unique=True)
        for each in definition.args.get("constraints") or ():
            self._constrain_column(column.name, each.kind)

    def drop_column(self, name: str) -> None:
        """Remove a column, and with it the indexes that are left without columns."""
        columns = tuple(column for column in self.table.columns if column.name.lower() != name.lower())
        indexes = {
            index: replace(each, columns=remaining)
            for index, each in self.table.indexes.items()
            if (remaining := tuple(column for column in each.columns if column.lower() != name.lower()))
        }
        primary = tuple(column for column in self.table.primary if column.lower() != name.lower())
        self.table = replace(self.table, columns=columns, indexes=indexes, primary=primary)

    def rename_column(self, old: str, new: str) -> None:
        """Give a column another name, also where indexes name it."""
        columns = (
            replace(column, name=new) if column.name.lower() == old.lower() else column for column in self.table.columns
        )
        self.table = replace(self.table, columns=tuple(columns))
        self._rename(old, new)

    def drop_primary_key(self) -> None:
        """Remove the primary key; its columns stay NOT NULL."""
        key = {name.lower() for name in self.table.primary}
        columns = (
            replace(column, nullable=False) if column.name.lower() in key else column for column in self.table.columns
        )
        self.table = replace(self.table, columns=tuple(columns), primary=(), descending=frozenset())

    def add_index(self, name: str, columns: tuple[str, ...], *, unique: bool) -> None:
        """Add a secondary index; one without a name takes that of its first column, as MySQL names it."""
        if not columns:
            raise NotImplementedError("a key without columns")
        name = name or columns[0]
        taken = {each.lower() for each in self.table.indexes}
        number = 2
        free = name
        while free.lower() in taken:
            free, number = f"{name}_{number}", number + 1
        self.table = replace(self.table, indexes={**self.table.indexes, free: Index(columns, unique)})

    def drop_index(self, name: str) -> None:
        """Remove a secondary index."""
        remaining = {index: each for index, each in self.table.indexes.items() if index.lower() != name.lower()}
        self.table = replace(self.table, indexes=remaining)

    def rename_index(self, old: str, new: str) -> None:
        """Give a secondary index another name."""
        indexes = {new if name.lower() == old.lower() else name: each for name, each in self.table.indexes.items()}
        self.table = replace(self.table, indexes=indexes)

    def set_default(self, name: str, value: exp.Expr | None) -> None:
        """Give a column another DEFAULT, or none."""
        default = None if value is None else to_sqlite(value.copy())
        columns = (
            replace(column, default=default) if column.name.lower() == name.lower() else column
            for column in self.table.columns
        )
        self.table = replace(self.table, columns=tuple(columns))

    def _rename(self, old: str, new: str) -> None:
        def renamed(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(new if name.lower() == old.lower() else name for name in names)

        indexes = {name: replace(index, columns=renamed(index.columns)) for name, index in self.table.indexes.items()}
        self.table = replace(self.table, primary=renamed(self.table.primary), indexes=indexes)

    def _column(self, definition: exp.ColumnDef) -> Column:
        kind = definition.args["kind"]
        if kind is None:
            raise NotImplementedError(f"column {definition.name} without a type")
        declared = kind.sql(dialect="mysql")
        word = declared.partition("(")[0].split(" ")[0].upper()
        column = self._implied(Column(definition.name, word, _declared(kind, declared, word)))
        charset = collation = None
        for each in definition.args.get("constraints") or ():
            match each.kind:
                case exp.CharacterSetColumnConstraint(this=named):
                    charset = named.name.lower()
                case exp.CollateColumnConstraint(this=named):
                    collation = named.name.lower()
                case exp.NotNullColumnConstraint() as constraint:
                    column = replace(column, nullable=bool(constraint.args.get("allow_null")))
                case exp.DefaultColumnConstraint(this=value):
                    column = replace(column, default=to_sqlite(value.copy()))
                case exp.ComputedColumnConstraint(this=value) as constraint:
                    storage = "STORED" if constraint.args.get("persisted") else "VIRTUAL"
                    column = replace(column, generated=f"({to_sqlite(value.copy())}) {storage}")
                case exp.AutoIncrementColumnConstraint():
                    column = replace(column, auto_increment=True, nullable=False)
        if word not in TEXT_TYPES:
            return column
        is_explicit = charset is not None or collation is not None
        chosen = Defaults.of(self._defaults.version, charset, collation) if is_explicit else self._defaults
        return replace(column, charset=chosen.charset, collation=chosen.collation)

    def _implied(self, column: Column) -> Column:
        """Apply the attributes that a column's type implies, before the explicit ones."""
        if column.type == "SERIAL":
            return replace(column, type="BIGINT", declared="BIGINT UNSIGNED", nullable=False, auto_increment=True)
        if column.type == "TIMESTAMP" and self._defaults.version.startswith("5."):
            # Without explicit_defaults_for_timestamp: NOT NULL, and the first of a table is set by itself.
            first = all(each.type != "TIMESTAMP" for each in self.table.columns)
            default = "CURRENT_TIMESTAMP" if first else "'0000-00-00 00:00:00'"
            return replace(column, nullable=False, default=default, null_is_now=True)
        return column

    def _constrain_column(self, name: str, constraint: exp.Expr) -> None:
        match constraint:
            case exp.PrimaryKeyColumnConstraint():
                self.table = replace(self.table, primary=(name,))
            case exp.UniqueColumnConstraint():
                self.add_index("", (name,), unique=True)
            case exp.CheckColumnConstraint():
                self._check(constraint)

    def _constrain(self, part: exp.Expr, name: str) -> None:
        match part:
            case exp.PrimaryKey():
                self.table = replace(self.table, primary=_names(part.expressions))
            case exp.UniqueColumnConstraint(this=exp.Schema() as schema):
                given = schema.this.name if schema.this is not None else name
                self.add_index(given, _names(schema.expressions), unique=True)
            case exp.IndexColumnConstraint():
                if not part.args.get("kind"):  # FULLTEXT and SPATIAL: nothing that SQL on the table would show
                    given = part.this.name if part.this is not None else ""
                    self.add_index(given, _names(part.expressions), unique=False)
            case exp.ForeignKey():
                self.table = replace(self.table, foreign=(*self.table.foreign, self._foreign(part)))
            case exp.CheckColumnConstraint():
                self._check(part)
            case _:
                raise NotImplementedError(part.sql(dialect="mysql"))

    def _check(self, constraint: exp.Expr) -> None:
        # 5.6 reads CHECK and forgets it.
        if not self._defaults.version.startswith("5."):
            self.table = replace(self.table, checks=(*self.table.checks, to_sqlite(constraint.this.copy())))

    def _foreign(self, part: exp.ForeignKey) -> str:
        reference = part.args.get("reference")
        if reference is None:
            raise NotImplementedError("a foreign key that refers to no table")
        parent = self._source_of(reference.this.this)
        columns = ", ".join(map(quote, _names(part.expressions)))
        theirs = ", ".join(map(quote, _names(reference.this.expressions)))
        options = " ".join(str(option) for option in reference.args.get("options") or ())
        return f"FOREIGN KEY ({columns}) REFERENCES {quote(parent)} ({theirs}) {options}".rstrip()


def _declared(kind: exp.DataType, declared: str, word: str) -> str:
    if word in _LISTS:
        return quote(f"{word.lower()}({','.join(label.sql(dialect='mysql') for label in kind.expressions)})")
    if " UNSIGNED" in declared:
        return f"{word} UNSIGNED"  # SQLite's grammar ends a type at its parenthesis; the width is for display only
    return declared if kind.expressions else word


def _names(parts: Iterable[exp.Expr]) -> tuple[str, ...]:
    # A prefix, k(20), is the whole column: SQLite has no index on the beginning of one.
    return tuple(part.this.name if isinstance(part, exp.ColumnPrefix | exp.Ordered) else part.name for part in parts)


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
            self.engine = "partitioned"  # InnoDB knows its partitions only, each its own table


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
        marked = frozenset() if schema.version.startswith("5.") else descending
        empty = Table(source, (), descending=marked, temporary=temporary)
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
