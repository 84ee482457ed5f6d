"""Columns of generated tables, and the cells in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kvref.collations.names import default_charset

Cell: TypeAlias = "int | str | bytes | None"
Kind: TypeAlias = Literal["text", "bytes", "integer"]

# MySQL's character sets that columns are drawn of, and Python's codecs for them; its latin1 is Windows' code page 1252.
CODECS: Final = {"latin1": "cp1252", "ascii": "ascii", "utf8": "utf-8", "utf8mb4": "utf-8"}
_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_BYTES: Final = frozenset({"VARBINARY", "BLOB", "LONGBLOB"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Args:
        name: of the column.
        type: MySQL's word, with UNSIGNED behind it where it is.
        width: in characters or bytes; None where the type has none.
        collation: MySQL's name; None: the server's default for the table.
        nullable: whether NULL is allowed.
        default: DEFAULT as SQL.
    """

    name: str
    type: str
    width: int | None = None
    collation: str | None = None
    nullable: bool = True
    default: str | None = None

    @property
    def kind(self) -> Kind:
        """Return what the column holds."""
        if self.type.split()[0] in _BITS:
            return "integer"
        return "bytes" if self.type in _BYTES else "text"

    @property
    def limits(self) -> tuple[int, int]:
        """Return the smallest and largest number of an integer column."""
        word, *unsigned = self.type.split()
        bits = _BITS[word]
        return (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)

    def charset(self, version: str) -> str:
        """Return the character set of a text column on a server of this version."""
        return default_charset(version) if self.collation is None else self.collation.partition("_")[0]

    def sql(self) -> str:
        """Return the definition."""
        words = [self.name, self.type if self.width is None else f"{self.type}({self.width})"]
        if self.collation is not None:
            words += ["CHARACTER SET", self.collation.partition("_")[0], "COLLATE", self.collation]
        words.append("NULL" if self.nullable else "NOT NULL")
        if self.default is not None:
            words += ["DEFAULT", self.default]
        return " ".join(words)
