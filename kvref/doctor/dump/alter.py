"""The options of CREATE TABLE, and the actions of ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from kvref.doctor.dump.declared import Text, text_of
from kvref.doctor.dump.define import Place, define, define_column, tree_of
from kvref.doctor.dump.tables import PRIMARY, Table
from kvref.doctor.dump.words import Key, NotUnderstood, Words, quoted

if TYPE_CHECKING:
    from kvref.doctor.dump.script import Server

# Options of a table that no mapping depends on.
_PASSED_OVER: Final = frozenset(
    "AUTO_INCREMENT AUTOEXTEND_SIZE AVG_ROW_LENGTH CHECKSUM TABLE_CHECKSUM COMMENT COMPRESSION CONNECTION DATA"
    " DELAY_KEY_WRITE DIRECTORY ENCRYPTED ENCRYPTION ENCRYPTION_KEY_ID ENGINE_ATTRIBUTE IETF_QUOTES INDEX INSERT_METHOD"
    " KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL PASSWORD"
    " ROW_FORMAT SECONDARY_ENGINE_ATTRIBUTE STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES TABLESPACE"
    " TRANSACTIONAL UNION ALGORITHM LOCK FORCE READ".split()
)
_QUERIES: Final = frozenset({"AS", "SELECT", "WITH", "VALUES", "IGNORE", "REPLACE", "(", "TABLE"})
# Actions that leave definitions as they are: the first words of each.
_WITHOUT_EFFECT: Final = (
    ("DISABLE", "KEYS"), ("ENABLE", "KEYS"), ("ORDER", "BY"), ("WITH", "VALIDATION"), ("WITHOUT", "VALIDATION"),
    ("ADD", "PARTITION"), ("DROP", "PARTITION"), ("COALESCE", "PARTITION"), ("REORGANIZE", "PARTITION"),
    ("EXCHANGE", "PARTITION"), ("ANALYZE", "PARTITION"), ("CHECK", "PARTITION"), ("OPTIMIZE", "PARTITION"),
    ("REBUILD", "PARTITION"), ("REPAIR", "PARTITION"), ("TRUNCATE", "PARTITION"), ("ALTER", "INDEX"), ("ALTER", "KEY"),
    ("ALTER", "CHECK"), ("ALTER", "CONSTRAINT"), ("NOWAIT",), ("WAIT",),
)  # fmt: skip


@dataclass(slots=True)
class Options:
    """The options of a table.

    Args:
        engine: "" where none is given.
        text: character set and collation, None where none is given.
        partitioned: it gets partitions.
    """

    engine: str = ""
    text: Text | None = None
    partitioned: bool = False


def read_options(statement: Words, server: Server, otherwise: Text | None) -> Options:
    """Read options up to a query or the end.

    Args:
        statement: that continues with them.
        server: whose defaults count.
        otherwise: what a table has that does not say.

    Raises:
        NotUnderstood: an option that is not known.
    """
    found, charset, collation = Options(), "", ""
    while statement and statement.next() not in _QUERIES:
        if statement.accept(",") or statement.accept("DEFAULT"):
            continue
        if statement.accept("ENGINE") or statement.accept("TYPE"):
            found.engine = _value(statement)
        elif statement.accept("CHARACTER", "SET") or statement.accept("CHARSET"):
            charset = _value(statement)
        elif statement.accept("COLLATE"):
            collation = _value(statement)
        elif statement.accept("PARTITION", "BY"):
            found.partitioned = True
            _pass_over_partitions(statement)
        else:
            _pass_over(statement)
    if charset or collation:
        found.text = text_of(server, charset, collation, otherwise)
    return found


def _value(statement: Words) -> str:
    statement.accept("=")
    return statement.take().text


def _pass_over(statement: Words) -> None:
    """Pass over an option that no mapping depends on; raises NotUnderstood for any other one."""
    option = statement.take().text.upper()
    if option not in _PASSED_OVER:
        raise NotUnderstood(f"the option {option[:40]} is not known")
    statement.any_of("DIRECTORY", "ONLY")
    statement.accept("=")
    if statement.next() == "(":
        statement.group()
    elif option != "FORCE":
        statement.take()


def _pass_over_partitions(statement: Words) -> None:
    while statement and statement.next() not in _QUERIES - {"("}:
        if statement.next() == "(":
            statement.group()
        else:
            statement.take()


@dataclass(slots=True)
class Done:
    """What ALTER TABLE has done besides changing the table.

    Args:
        name: the table's new name, None where it keeps its own.
        renamed: old names of columns, in lower case, by new ones.
    """

    name: Key | None = None
    renamed: dict[str, str] = field(default_factory=dict)


def alter_table(table: Table, statement: Words, place: Place, database: str) -> Done:
    """Change a table.

    Args:
        table: to change.
        statement: the actions.
        place: of the table.
        database: in use.

    Raises:
        NotUnderstood: the effect of an action is not known.
    """
    done = Done()
    for action in statement.parts():
        if action:
            _change(table, action, place, done, database)
    return done


def is_without_effect(action: Words) -> bool:
    """Return whether an action of ALTER TABLE leaves the table's definition as it is."""
    return any(action.has(*words) for words in _WITHOUT_EFFECT)


def _change(table: Table, action: Words, place: Place, done: Done, database: str) -> None:
    if is_without_effect(action):
        return
    if action.accept("ADD"):
        _add(table, action, place)
    elif action.accept("MODIFY") or action.has("CHANGE"):
        _modify(table, action, place, done)
    elif action.accept("CONVERT", "TO"):
        _convert(table, action, place)
    elif action.accept("REMOVE", "PARTITIONING"):
        table.partitioned = False
    elif action.has("RENAME") and not any(action.has("RENAME", kind) for kind in ("COLUMN", "INDEX", "KEY")):
        action.take()
        action.any_of("TO", "AS", "=")
        done.name = action.table(database)
    elif action.next() in ("DROP", "RENAME", "ALTER"):
        _by_tree(table, action, done)
    else:
        options = read_options(action, place.server, table.text)
        if action:
            raise NotUnderstood(f"{action.rest()[:40]} is not known")
        table.engine = options.engine or table.engine
        table.text = options.text or table.text
        table.partitioned |= options.partitioned


def _add(table: Table, action: Words, place: Place) -> None:
    column = action.accept("COLUMN")
    exists = action.accept("IF", "NOT", "EXISTS")
    if action.next() == "(":
        for each in action.group().parts():
            define(table, each, place)
        return
    if exists and table.has(_first(action)):
        return
    if column:
        define_column(table, action, place)
    else:
        define(table, action, place)


def _first(action: Words) -> str:
    return next(iter(action)).text if action else ""


def _modify(table: Table, action: Words, place: Place, done: Done) -> None:
    changes = action.accept("CHANGE")
    action.accept("COLUMN")
    exists = action.accept("IF", "EXISTS")
    old = action.name() if changes else _first(action)
    if exists and not table.has(old):
        return
    new = _first(action)
    define_column(table, action, place, instead_of=old)
    _note_name(done, old, new)


def _note_name(done: Done, old: str, new: str) -> None:
    done.renamed[new.lower()] = done.renamed.get(old.lower(), old.lower())


def _convert(table: Table, action: Words, place: Place) -> None:
    if not (action.accept("CHARACTER", "SET") or action.accept("CHARSET")):
        raise NotUnderstood("CONVERT TO without a character set")
    charset = _value(action)
    collation = _value(action) if action.accept("COLLATE") else ""
    text = text_of(place.server, charset, collation)
    table.text = text
    for column in list(table.columns):
        if column.text is not None:
            kind = column.type.converted(column.text, text) if column.type.word != "enum" else column.type
            table.change(column.name, type=kind, text=text if kind.is_text else None)


def _by_tree(table: Table, action: Words, done: Done) -> None:
    """Change a table as sqlglot reads an action of DROP, RENAME and ALTER."""
    tree = tree_of(f"ALTER TABLE t {action.rest()}")
    actions: list[exp.Expr] = tree.args.get("actions") or []
    if not isinstance(tree, exp.Alter) or len(actions) != 1:
        raise NotUnderstood("an action that is not known")
    match actions[0]:
        case exp.DropPrimaryKey():
            del table.indexes[table.find_index(PRIMARY)]
        case exp.Drop() as drop:
            _drop(table, str(drop.args["kind"]), drop.args["tables"][0].name, exists=bool(drop.args.get("exists")))
        case exp.RenameColumn(this=before) as rename:
            table.rename(before.name, rename.args["to"].name)
            _note_name(done, before.name, rename.args["to"].name)
        case exp.RenameIndex(this=before) as rename:
            name, new = table.find_index(before.name), rename.args["to"].name
            table.indexes = {new if each == name else each: index for each, index in table.indexes.items()}
        case exp.AlterColumn(this=column) as change if change.args.get("default") or change.args.get("drop"):
            value = change.args.get("default")
            literal = None if value is None or isinstance(value, exp.Null) else value
            table.change(column.name, default=literal is not None, value=literal)
        case other:
            raise NotUnderstood(f"{other.sql(dialect='mysql')[:60]} is not known")


def _drop(table: Table, kind: str, name: str, *, exists: bool) -> None:
    """Remove a column, an index or a constraint."""
    folded = name.lower()
    if kind == "COLUMN":
        if table.has(name) or not exists:
            table.drop(name)
        return
    places: dict[str, tuple[dict[str, Any], ...]] = {
        "INDEX": (table.indexes,),
        "FOREIGN KEY": (table.foreign,),
        "CHECK": (table.checks,),
        "CONSTRAINT": (table.checks, table.foreign, table.indexes),
    }
    if kind not in places:
        raise NotUnderstood(f"DROP {kind[:40]} is not known")
    for there in places[kind]:
        for each in list(there):
            if each.lower() == folded:
                del there[each]
                return
    if not exists:
        raise NotUnderstood(f"there is no {kind.lower()} {quoted(name)}")
