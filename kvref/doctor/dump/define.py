"""Columns, indexes and constraints of CREATE TABLE and ALTER TABLE, added to a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from kvref.doctor.dump.declared import Text, read_type, text_of
from kvref.doctor.dump.tables import PRIMARY, Column, Foreign, Index, Part, Table
from kvref.doctor.dump.words import Key, NotUnderstood, Words

if TYPE_CHECKING:
    from kvref.doctor.dump.script import Server

_INDEXES: Final = ("PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL")
_CONSTRAINTS: Final = (*_INDEXES, "CONSTRAINT", "FOREIGN", "CHECK", "PERIOD")
# Attributes of a column that sqlglot does not know and no mapping depends on, with the number of words that follow.
_PASSED_OVER: Final = {
    "COLUMN_FORMAT": 1, "STORAGE": 1, "ENGINE_ATTRIBUTE": 1, "SECONDARY_ENGINE_ATTRIBUTE": 1, "SRID": 1,
    "REF_SYSTEM_ID": 1, "COMMENT": 1, "COMPRESSED": 0, "INVISIBLE": 0, "VISIBLE": 0, "VIRTUAL": 0, "ENFORCED": 0,
}  # fmt: skip

# Levels of a parsed statement. The time to read one grows with the square of its depth.
MAX_DEPTH: Final = 64
_TOO_DEEP: Final = f"nested more than {MAX_DEPTH} levels deep"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is made.

    Args:
        server: whose rules count.
        key: the table's name.
        implicit_timestamp: a TIMESTAMP that does not say otherwise is NOT NULL and has a default.
    """

    server: Server
    key: Key
    implicit_timestamp: bool = False

    @property
    def has_checks(self) -> bool:
        """Return whether the server does not just pass over CHECK."""
        return self.server.version >= ((10, 2, 1) if self.server.mariadb else (8, 0, 16))

    def check_name(self, table: Table, column: str) -> str:
        """Return the name of a CHECK without one.

        Args:
            table: that it belongs to.
            column: whose definition it is in; "" for none.
        """
        if self.server.mariadb and column:
            return column
        stem = "CONSTRAINT_" if self.server.mariadb else f"{self.key[1]}_chk_"
        return next(name for n in range(1, len(table.checks) + 2) if (name := f"{stem}{n}") not in table.checks)


@lru_cache(maxsize=4096)
def tree_of(statement: str) -> exp.Expr:
    """Return a statement as a tree, which callers share and do not change.

    Raises:
        NotUnderstood: sqlglot does not parse it, or it is nested more than MAX_DEPTH levels deep.
    """
    try:
        tree = sqlglot.parse_one(statement, read="mysql")
    except RecursionError:
        raise NotUnderstood(_TOO_DEEP) from None
    # ValueError: sqlglot, for an empty quoted name in place of a width.
    except (SqlglotError, ValueError) as error:
        raise NotUnderstood(str(error).partition("\n")[0][:200]) from error
    if isinstance(tree, exp.Command):
        raise NotUnderstood("its form is not known")
    level: list[exp.Expr] = [tree]
    for _ in range(MAX_DEPTH):
        level = [part for each in level for part in each.iter_expressions()]
        if not level:
            return tree
    raise NotUnderstood(_TOO_DEEP)


def define(table: Table, words: Words, place: Place) -> None:
    """Add an element of the list of CREATE TABLE, or what ADD of ALTER TABLE adds.

    Args:
        table: gains it.
        words: of the element.
        place: of the table.

    Raises:
        NotUnderstood: its effect is not known.
    """
    if words.next() in _CONSTRAINTS:
        _constrain(table, words, place)
    else:
        define_column(table, words, place)


def _constrain(table: Table, words: Words, place: Place) -> None:
    symbol = ""
    if words.accept("CONSTRAINT") and words.next() not in _CONSTRAINTS:
        symbol = words.name()
    if words.has("CHECK"):
        _check(table, _names_in_check(words), place, symbol)
    elif words.has("FOREIGN", "KEY"):
        _refer(table, words.rest(), place, symbol)
    elif words.next() in _INDEXES:
        add_index(table, words, words.next(), symbol)
    else:
        raise NotUnderstood(f"{words.rest()[:40]} is not known")


def add_index(table: Table, words: Words, kind: str, symbol: str = "") -> None:
    """Add an index.

    Args:
        table: gains it.
        words: `UNIQUE KEY name USING BTREE (columns) options`.
        kind: the first of them.
        symbol: its name where the words have none.
    """
    words.take()
    words.any_of("KEY", "INDEX")
    kept = words.accept("IF", "NOT", "EXISTS")
    name = symbol if words.next() in ("(", "USING", "TYPE") else words.name()
    if words.any_of("USING", "TYPE"):
        words.take()
    if kept and name.lower() in (each.lower() for each in table.indexes):
        return
    parts = tuple(_part(each) for each in words.group().parts() if each)
    options = [token.text.upper() for token in words]
    ignored = "IGNORED" in options and options[max(options.index("IGNORED") - 1, 0)] != "NOT"
    unique = kind in (PRIMARY, "UNIQUE")
    index = Index(parts, unique, kind if kind in ("FULLTEXT", "SPATIAL") else "", ignored)
    table.add_index(PRIMARY if kind == PRIMARY else name, index)


def _part(words: Words) -> Part:
    if words.next() == "(":
        words.group()
        return Part("", descending=words.has("DESC"))
    column = words.name()
    length = int(words.group().rest()[:10]) if words.next() == "(" else None
    return Part(column, length, descending=words.has("DESC"))


def _names_in_check(words: Words) -> frozenset[str]:
    words.accept("CHECK")
    return frozenset(token.text.lower() for token in words.group())


def _check(table: Table, names: frozenset[str], place: Place, symbol: str, column: str = "") -> None:
    if place.has_checks:
        table.checks[symbol or place.check_name(table, column)] = names


def _refer(table: Table, written: str, place: Place, symbol: str) -> None:
    element = tree_of(f"CREATE TABLE t ({written})").this.expressions[0]
    reference = element.args.get("reference") if isinstance(element, exp.ForeignKey) else element.find(exp.Reference)
    if reference is None:
        raise NotUnderstood("a foreign key that refers to no table")
    parent = reference.find(exp.Table)
    options = " ".join(str(each).upper() for each in reference.args.get("options") or ())
    rules = frozenset(rule for rule in ("CASCADE", "SET NULL") if rule in options)
    stem = f"{place.key[1]}_ibfk_"
    numbers = range(1, len(table.foreign) + 2)
    name = symbol or next(free for n in numbers if (free := f"{stem}{n}") not in table.foreign)
    table.foreign[name] = Foreign((parent.db or place.key[0], parent.name), rules)


def define_column(table: Table, words: Words, place: Place, instead_of: str | None = None) -> None:
    """Add a column, or put it in place of another one.

    Args:
        table: gains it.
        words: its definition, with FIRST or AFTER.
        place: of the table.
        instead_of: the other one's name.
    """
    name = words.name()
    definition = _Definition(name, words, place, table)
    column = definition.column
    if instead_of is None:
        table.insert(column, definition.after)
    else:
        table.replace(instead_of, column, definition.after)
    for index, unique in definition.indexes:
        table.add_index(index, Index((Part(name),), unique=unique))
    for symbol, names in definition.checks:
        _check(table, names, place, symbol, name)
    if definition.refers and place.server.mariadb and place.server.version >= (10, 5, 0):
        _refer(table, f"c INT {definition.refers}", place, "")
    if PRIMARY in table.indexes and any(part.column.lower() == name.lower() for part in table.indexes[PRIMARY].parts):
        table.change(name, nullable=False)


class _Definition:
    """A column's definition: what sqlglot does not read is taken out of it, the rest is sqlglot's.

    Args:
        name: the column's.
        words: that follow.
        place: of the table.
        table: that the column is for.
    """

    def __init__(self, name: str, words: Words, place: Place, table: Table) -> None:
        self.after: str | None = None
        self.indexes: list[tuple[str, bool]] = []
        self.checks: list[tuple[str, frozenset[str]]] = []
        self.refers = ""
        self._generated = ""
        self._default = False
        self._binary = False
        kind = read_type(words, place.server)
        self._charset, self._collation = kind.charset, "utf8mb4_bin" if kind.is_json else ""
        self._nullable: bool | None = None
        self.column = Column(name, kind, None)
        for each in self._attributes(self._without_the_unknown(words)):
            self._take(each)
        if kind.is_json:
            self.checks.append(("", frozenset({name.lower()})))
        if kind.serial:
            self.column = replace(self.column, auto_increment=True)
            self.indexes.append(("", True))
        if kind.word == "timestamp" and place.implicit_timestamp and self._nullable is None:
            self._nullable, self._default = False, True
        if self.column.auto_increment:
            self._nullable = False
        text = text_of(place.server, self._charset, self._collation, table.text) if kind.is_text else None
        if text is not None and self._binary:
            text = Text(text.charset, f"{text.charset}_bin")
        shown = kind if text is None else kind.with_text(text)
        self.column = replace(
            self.column, type=shown, text=text if shown.is_text else None, nullable=self._nullable is not False,
            default=self._default, generated=self._generated,
        )  # fmt: skip

    @staticmethod
    def _attributes(written: str) -> list[exp.Expr]:
        tree = tree_of(f"CREATE TABLE t (c INT {written})")
        element = tree.this.expressions[0] if isinstance(tree.this, exp.Schema) else None
        if not isinstance(element, exp.ColumnDef) or len(tree.this.expressions) != 1:
            raise NotUnderstood(f"{written[:60]} is not known")
        return [each.kind for each in element.args.get("constraints") or ()]

    def _take(self, attribute: exp.Expr) -> None:
        match attribute:
            case exp.CharacterSetColumnConstraint(this=named):
                self._charset = named.name
            case exp.CollateColumnConstraint(this=named):
                self._collation = named.name
            case exp.BinaryColumnConstraint():
                self._binary = True
            case exp.NotNullColumnConstraint():
                self._nullable = bool(attribute.args.get("allow_null"))
            case exp.DefaultColumnConstraint(this=value):
                self._default = not isinstance(value, exp.Null)
                self.column = replace(self.column, value=value if self._default else None)
            case exp.AutoIncrementColumnConstraint():
                self.column = replace(self.column, auto_increment=True)
            case exp.PrimaryKeyColumnConstraint():
                self.indexes.append((PRIMARY, True))
            case exp.UniqueColumnConstraint():
                self.indexes.append(("", True))
            case exp.OnUpdateColumnConstraint():
                pass
            case other:
                raise NotUnderstood(f"{other.sql(dialect='mysql')[:60]} is not known")

    def _without_the_unknown(self, words: Words) -> str:
        """Return the attributes that sqlglot reads; the others are noted, or passed over."""
        kept: list[str] = []
        symbol = ""
        while words:
            if words.accept("CONSTRAINT"):
                symbol = "" if words.has("CHECK") else words.name()
            elif words.has("CHECK"):
                self.checks.append((symbol, _names_in_check(words)))
            elif not self._note(words):
                kept.append(words.written([words.take()]))
        return " ".join(kept)

    def _note(self, words: Words) -> bool:
        """Read one attribute that sqlglot does not know; return whether there was one."""
        if words.accept("GENERATED", "ALWAYS") or words.has("AS"):
            self._generate(words)
        elif words.has("DEFAULT", "("):
            words.take()
            words.group()
            self._default = True
        elif words.has("REFERENCES"):
            self.refers = words.rest()
        elif words.accept("FIRST"):
            self.after = ""
        elif words.accept("AFTER"):
            self.after = words.name()
        elif words.next() in _PASSED_OVER:
            for _ in range(_PASSED_OVER[words.take().text.upper()]):
                words.accept("=")
                words.take()
        else:
            return words.accept("NOT", "ENFORCED") or words.accept("WITHOUT", "SYSTEM", "VERSIONING")
        return True

    def _generate(self, words: Words) -> None:
        words.accept("AS")
        if words.next() != "(":
            raise NotUnderstood("a period of system time")
        words.group()
        self._generated = "stored" if words.any_of("STORED", "PERSISTENT") else "virtual"
