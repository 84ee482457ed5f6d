"""From parsed CREATE TABLE and ALTER TABLE to the table they describe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from kvref.collations import charset_of
from kvref.translation.charsets import collation_of, server_charset
from kvref.translation.expressions import to_sqlite
from kvref.translation.tables import TEXT_TYPES, Column, Index, Table, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Types that SQLite's grammar takes only quoted, since their arguments are no numbers.
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
        chosen = charset or server_charset(version)
        return cls(version, chosen, collation_of(chosen, version))


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
            index: replace(each, columns=kept)
            for index, each in self.table.indexes.items()
            if (kept := tuple(column for column in each.columns if column.lower() != name.lower()))
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
        kept = {index: each for index, each in self.table.indexes.items() if index.lower() != name.lower()}
        self.table = replace(self.table, indexes=kept)

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
                    kept = "STORED" if constraint.args.get("persisted") else "VIRTUAL"
                    column = replace(column, generated=f"({to_sqlite(value.copy())}) {kept}")
                case exp.AutoIncrementColumnConstraint():
                    column = replace(column, auto_increment=True, nullable=False)
        if word not in TEXT_TYPES:
            return column
        says = charset is not None or collation is not None
        chosen = Defaults.of(self._defaults.version, charset, collation) if says else self._defaults
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
