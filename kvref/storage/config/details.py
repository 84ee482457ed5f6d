"""Properties of a table that no mapping uses, but that explain a configuration: types, triggers, foreign keys.

`sqlite/details.py` and `mysql/details.py` read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ACTING: Final = ("CASCADE", "SET NULL")  # what a foreign key does to its own table's rows


@dataclass(frozen=True, slots=True)
class ColumnDetails:
    """One column as its table declares it.

    Args:
        name: as the table spells it.
        declared: its type as in CREATE TABLE.
        charset: character set of its text, empty for other types.
        collation: of its text by MySQL's name, or one of SQLite's own; empty for other types.
        nullable: NULL is allowed.
        default: it has a DEFAULT.
        auto_increment: SQL fills in the next number.
        generated: `virtual`, `stored`, or empty for an ordinary column.
    """

    name: str
    declared: str
    charset: str = ""
    collation: str = ""
    nullable: bool = True
    default: bool = False
    auto_increment: bool = False
    generated: str = ""

    @property
    def word(self) -> str:
        """Return the type's name in upper case, without width and sign."""
        return self.declared.partition("(")[0].upper().partition(" ")[0]

    @property
    def unsigned(self) -> bool:
        """Return whether its numbers have no sign."""
        return "UNSIGNED" in self.declared.upper() or "ZEROFILL" in self.declared.upper()


@dataclass(frozen=True, slots=True)
class TableDetails:
    """One table.

    Args:
        columns: by name, in the order of the table.
        triggers: their names.
        checks: names of CHECK constraints.
        fulltext: names of FULLTEXT indexes.
        refers_to: tables that its foreign keys refer to.
        referred_by: tables whose foreign keys refer to it.
        cascading: those of them that do something then: ON DELETE or ON UPDATE CASCADE or SET NULL.
    """

    columns: dict[str, ColumnDetails] = field(default_factory=dict)
    triggers: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    fulltext: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()
    referred_by: tuple[str, ...] = ()
    cascading: tuple[str, ...] = ()
