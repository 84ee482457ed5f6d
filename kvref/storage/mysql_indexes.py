"""The indexes of one table of MySQL or MariaDB, from the rows of SHOW INDEX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Indexes:
    """What a mapping asks of a table's indexes.

    Args:
        unique: the unique ones, each with its columns.
        beginnings: how many characters those hold that are on the beginning of a column: they serve too (index-012).
        descending: those of them whose first column is.
        of_expressions: all with an expression in the place of a column, for which MySQL keeps a hidden virtual one.
        hidden: one is FULLTEXT.
    """

    unique: dict[str, tuple[str, ...]]
    beginnings: dict[str, int]
    descending: frozenset[str]
    of_expressions: frozenset[str]
    hidden: bool


def indexes(shown: Iterable[dict[str, Any]]) -> Indexes:
    """Read the rows of SHOW INDEX.

    An index that MariaDB is told to ignore is left out: no statement can ask for it.
    """
    rows = [row for row in shown if row.get("Ignored", "NO") == "NO"]
    unique = [row for row in rows if not row["Non_unique"]]
    columns: dict[str, list[str | None]] = {}
    for row in unique:
        columns.setdefault(row["Key_name"], []).append(row["Column_name"])
    return Indexes(
        # An expression has no name: nothing finds a row by the column with it.
        {name: tuple(each for each in own if each is not None) for name, own in columns.items() if None not in own},
        {row["Key_name"]: int(row["Sub_part"]) for row in unique if row["Sub_part"] is not None},
        frozenset(row["Key_name"] for row in rows if row["Seq_in_index"] == 1 and row["Collation"] == "D"),
        frozenset(row["Key_name"] for row in rows if row["Column_name"] is None),
        any(row["Index_type"] == "FULLTEXT" for row in rows),
    )
