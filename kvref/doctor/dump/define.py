"""What trees of CREATE TABLE and ALTER TABLE make of a table: columns, indexes, constraints and options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from kvref.doctor.dump.statements import Key, NotUnderstood, quoted
from kvref.doctor.dump.tables import PRIMARY, Column, Foreign, Index, Part, Table, Text, text_of, type_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kvref.doctor.dump.script import Server

# Attributes of a column, and options of a table, that no mapping depends on.
_IGNORED: Final = (
    exp.CommentColumnConstraint, exp.InvisibleColumnConstraint, exp.OnUpdateColumnConstraint,
    exp.AlgorithmProperty, exp.AutoIncrementProperty, exp.ForceProperty, exp.LockProperty, exp.Order,
    exp.RowFormatProperty, exp.SchemaCommentProperty,
)  # fmt: skip
# Attributes of a column that are read as its text or type, or as an index or a constraint.
_READ_ELSEWHERE: Final = (
    exp.CharacterSetColumnConstraint, exp.CollateColumnConstraint, exp.BinaryColumnConstraint,
    exp.ZeroFillColumnConstraint, exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint,
    exp.CheckColumnConstraint, exp.Reference,
)  # fmt: skip
_OPTIONS: Final = frozenset(
    "AUTOEXTEND_SIZE AVG_ROW_LENGTH COMPRESSION CONNECTION DELAY_KEY_WRITE ENCRYPTED ENCRYPTION ENCRYPTION_KEY_ID"
    " ENGINE_ATTRIBUTE INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PAGE_CHECKSUM PAGE_COMPRESSED"
    " PAGE_COMPRESSION_LEVEL SECONDARY_ENGINE_ATTRIBUTE STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES"
    " TABLESPACE TRANSACTIONAL".split()
)


@dataclass(frozen=True, slots=True)
class TableContext:
    """Where a table is created: the server, the name, and the tables that it may refer to (None: all)."""

    server: Server
    key: Key
    parents: Collection[Key] | None = None

    @property
    def has_checks(self) -> bool:
        """Return whether the server supports CHECK, which older ones ignore."""
        return self.server.version >= ((10, 2, 1) if self.server.mariadb else (8, 0, 16))

    @property
    def implicit_timestamp(self) -> bool:
        """Return whether a TIMESTAMP is by default NOT NULL and has a default value."""
        return self.server.version < ((10, 10, 0) if self.server.mariadb else (8, 0, 0))

    def check_name(self, table: Table, column: str) -> str:
        """Return the name of a CHECK without one, in the definition of a column or ("") of the table."""
        if self.server.mariadb and column:
            return column
        stem = "CONSTRAINT_" if self.server.mariadb else f"{self.key[1]}_chk_"
        return next(name for n in range(1, len(table.checks) + 2) if (name := f"{stem}{n}") not in table.checks)


def set_options(table: Table, options: Iterable[exp.Expr], server: Server) -> None:
    """Change engine and character set of a table; raises NotUnderstood for an unknown option."""
    charset = collation = ""
    for option in options:
        match option:
            case exp.EngineProperty(this=engine):
                table.engine = engine.name
            case exp.CharacterSetProperty(this=named):
                charset = named.name
            case exp.CollateProperty(this=named):
                collation = named.name
            case exp.Property() if option.name.upper() in _OPTIONS:  # the name is empty where an option has none
                pass
            case other if not isinstance(other, _IGNORED):
                raise NotUnderstood(f"the option {other.sql(dialect='mysql')[:40]} is not known")
    table.text = text_of(server, charset, collation, table.text)


def define(table: Table, elements: Iterable[exp.Expr], context: TableContext) -> None:
    """Add the columns, indexes and constraints of CREATE TABLE or ALTER TABLE … ADD; raises NotUnderstood."""
    for element in sorted(elements, key=lambda each: not isinstance(each, exp.ColumnDef)):
        _define(table, element, context, "")


def _define(table: Table, element: exp.Expr, context: TableContext, symbol: str) -> None:
    name = element.name or symbol
    match element:
        case exp.ColumnDef():
            define_column(table, element, context)
        case exp.Constraint(expressions=[constraint]):
            _define(table, constraint, context, element.name)
        case exp.PrimaryKey():
            table.add_index(PRIMARY, Index(_parts(element.expressions), unique=True))
        case exp.UniqueColumnConstraint(this=exp.Schema() as schema):
            table.add_index(_free(schema.name or symbol), Index(_parts(schema.expressions), unique=True))
        case exp.IndexColumnConstraint():
            table.add_index(_free(name), Index(_parts(element.expressions), kind=str(element.args.get("kind") or "")))
        case exp.CheckColumnConstraint(this=condition):
            _check(table, condition, context, symbol)
        case exp.ForeignKey():
            _refer(table, element.args.get("reference"), context, symbol)
        case other:
            raise NotUnderstood(f"{other.sql(dialect='mysql')[:40]} is not known")


def _parts(written: list[exp.Expr]) -> tuple[Part, ...]:
    if not written:
        raise NotUnderstood("an index without columns")
    return tuple(_part(each) for each in written)


def _part(written: exp.Expr) -> Part:
    descending = isinstance(written, exp.Ordered) and bool(written.args.get("desc"))
    column = written.this if isinstance(written, exp.Ordered) else written
    match column:
        case exp.ColumnPrefix(this=name, expression=length) if length.name.isdigit():
            return Part(name.name, int(length.name[:10]), descending)
        case exp.Identifier() | exp.Column():
            return Part(column.name, None, descending)
        case exp.Paren():
            return Part("", None, descending)
    raise NotUnderstood("an index on something other than a column")


def _check(table: Table, condition: exp.Expr, context: TableContext, symbol: str, column: str = "") -> None:
    if context.has_checks:
        names = frozenset(each.name.lower() for each in condition.find_all(exp.Column))
        table.checks[symbol or context.check_name(table, column)] = names


def _free(name: str) -> str:
    if name.upper() == PRIMARY:
        raise NotUnderstood(f"an index cannot be called {name}")
    return name


def _refer(table: Table, reference: exp.Expr | None, context: TableContext, symbol: str) -> None:
    parent = None if reference is None else reference.find(exp.Table)
    if reference is None or parent is None:
        raise NotUnderstood("a foreign key that refers to no table")
    rules = " ".join(str(each).upper() for each in reference.args.get("options") or ())
    numbers = range(1, len(table.foreign) + 2)
    name = symbol or next(free for n in numbers if (free := f"{context.key[1]}_ibfk_{n}") not in table.foreign)
    acts = "CASCADE" in rules or "SET NULL" in rules
    key = (parent.db or context.key[0], parent.name)
    if context.parents is not None and key not in (context.key, *context.parents):
        raise NotUnderstood(f"a foreign key that refers to {'.'.join(key)}, which is not there")
    table.foreign[name] = Foreign(key, acts)


def define_column(table: Table, definition: exp.ColumnDef, context: TableContext, replaced: str | None = None) -> None:
    """Add a column, or put it in place of another one."""
    if definition.kind is None:
        raise NotUnderstood("a column without a type")
    name = definition.name
    attributes = [(each.name, each.kind) for each in definition.args.get("constraints") or ()]
    column = _column(name, definition.kind, [attribute for _, attribute in attributes], table.text, context)
    position = definition.args.get("position")
    after = None if position is None else position.this.name if position.this else ""
    if replaced is None:
        table.insert(column, after)
    else:
        table.replace(replaced, column, after)
    for symbol, attribute in attributes:
        match attribute:
            case exp.PrimaryKeyColumnConstraint():
                table.add_index(PRIMARY, Index((Part(name),), unique=True))
            case exp.UniqueColumnConstraint():
                table.add_index("", Index((Part(name),), unique=True))
            case exp.CheckColumnConstraint(this=condition):
                _check(table, condition, context, symbol, name)
            case exp.Reference() if context.server.mariadb and context.server.version >= (10, 5, 0):
                _refer(table, attribute, context, "")
    if context.server.mariadb and definition.kind.this is exp.DType.JSON:
        table.checks[context.check_name(table, name)] = frozenset({name.lower()})
    if PRIMARY in table.indexes and any(part.column.lower() == name.lower() for part in table.indexes[PRIMARY].parts):
        table.change(name, nullable=False)


def _column(name: str, written: exp.DataType, attributes: list[exp.Expr], text: Text, context: TableContext) -> Column:
    kind = type_of(written)
    if any(isinstance(each, exp.ZeroFillColumnConstraint) for each in attributes):
        kind = replace(kind, unsigned=True)
    if kind.word == "json" and context.server.mariadb:
        kind, found = replace(kind, word="longtext"), Text("utf8mb4", "utf8mb4_bin")
    else:
        found = _text(attributes, text, context.server)
    kind = kind.with_text(found)
    column = Column(name, kind, found if kind.is_text else None)
    nullable: bool | None = None
    for attribute in attributes:
        match attribute:
            case exp.NotNullColumnConstraint():
                nullable = bool(attribute.args.get("allow_null"))
            case exp.DefaultColumnConstraint(this=value):
                literal = None if isinstance(value, exp.Null | exp.Paren) else value
                column = replace(column, default=not isinstance(value, exp.Null), value=literal)
            case exp.AutoIncrementColumnConstraint():
                column = replace(column, auto_increment=True)
            case exp.ComputedColumnConstraint():
                column = replace(column, generated="stored" if attribute.args.get("persisted") else "virtual")
            case other if not isinstance(other, (*_IGNORED, *_READ_ELSEWHERE)):
                raise NotUnderstood(f"{other.sql(dialect='mysql')[:60]} is not known")
    if kind.word == "timestamp" and context.implicit_timestamp and nullable is None:
        nullable, column = False, replace(column, default=True)
    return replace(column, nullable=nullable is not False and not column.auto_increment)


def _text(attributes: list[exp.Expr], otherwise: Text, server: Server) -> Text:
    charset = collation = ""
    binary = False
    for attribute in attributes:
        match attribute:
            case exp.CharacterSetColumnConstraint(this=named):
                charset = named.name
            case exp.CollateColumnConstraint(this=named):
                collation = named.name
            case exp.BinaryColumnConstraint():
                binary = True
    text = text_of(server, charset, collation, otherwise)
    return Text(text.charset, f"{text.charset}_bin") if binary else text


def alter(table: Table, action: exp.Expr, context: TableContext) -> None:
    """Change a table as one action of ALTER TABLE does; raises NotUnderstood."""
    match action:
        case exp.ColumnDef():
            if not (action.args.get("exists") and table.has(action.name)):
                define_column(table, action, context)
        case exp.AddConstraint():
            define(table, action.expressions, context)
        case exp.ModifyColumn(this=exp.ColumnDef() as definition):
            old = action.args.get("rename_from")
            define_column(table, definition, context, replaced=definition.name if old is None else old.name)
        case exp.DropPrimaryKey():
            del table.indexes[table.find_index(PRIMARY)]
        case exp.Drop():
            name, exists = action.args["tables"][0].name, bool(action.args.get("exists"))
            _drop(table, str(action.args["kind"]), name, exists=exists)
        case exp.RenameColumn(this=before):
            table.rename(before.name, action.args["to"].name)
        case exp.RenameIndex(this=before):
            old, new = table.find_index(before.name), action.args["to"].name
            if PRIMARY in (old, new.upper()) or new.lower() in {each.lower() for each in table.indexes if each != old}:
                raise NotUnderstood(f"the index {old} cannot be called {new}")
            table.indexes = {new if name == old else name: index for name, index in table.indexes.items()}
        case exp.AlterColumn(this=column) if action.args.get("default") or action.args.get("drop"):
            value = action.args.get("default")
            literal = None if value is None or isinstance(value, exp.Null) else value
            table.change(column.name, default=literal is not None, value=literal)
        case exp.AlterIndex():
            pass
        case other:
            set_options(table, [other], context.server)


def _drop(table: Table, kind: str, name: str, *, exists: bool) -> None:
    if kind == "COLUMN":
        if table.has(name) or not exists:
            table.drop(name)
        return
    by_kind: dict[str, tuple[dict[str, Any], ...]] = {
        "INDEX": (table.indexes,),
        "FOREIGN KEY": (table.foreign,),
        "CHECK": (table.checks,),
        "CONSTRAINT": (table.checks, table.foreign, table.indexes),
    }
    if kind not in by_kind:
        raise NotUnderstood(f"DROP {kind[:40]} is not known")
    for constraints in by_kind[kind]:
        for each in list(constraints):
            if each.lower() == name.lower():
                del constraints[each]
                return
    if not exists:
        raise NotUnderstood(f"there is no {kind.lower()} {quoted(name)}")
