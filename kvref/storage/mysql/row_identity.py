"""Decide locally which batched keys identify the same row.

The server compares by the column's collation. If `kvref.collations` does not implement that collation exactly, the keys
cannot be distinguished here, and their commands run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Final, TypeVar

from kvref import collations
from kvref.engine.mapping import Kind, Mapping
from kvref.engine.operations import Cell
from kvref.storage.mysql.statements import written

# These follow another one in `kvref.collations.names`: equal texts there need not be equal to the server.
_ONLY_NEAR: Final = ("utf8mb4_ja_0900_", "utf8mb4_zh_0900_")
# Of MariaDB's collations of Unicode 14 only what they have in common with Unicode 9 is known.
_NEWER: Final = "_uca1400_"

StoredKey = bytes | int
R = TypeVar("R")


class RowIdentities:
    """The keys of one mapping."""

    def __init__(self, mapping: Mapping) -> None:
        self._key = mapping.key
        collation = mapping.key.collation.lower()
        self._ascii_only = _NEWER in collation
        self._fold: Callable[[str], str] | None = None
        if mapping.key.kind is Kind.TEXT and not collation.startswith(_ONLY_NEAR):
            known = collations.known(collation)
            self._fold = None if known is None else collations.order(known).folded
        self._simple = mapping.key.codec is None and mapping.key.charset.unit == 0
        # What no collation compares: cells of this type are one row if they are equal.
        self._exact: type[bytes] | type[int] | None = None
        if mapping.key.kind is not Kind.TEXT and mapping.key.codec is None:
            self._exact = int if mapping.key.kind is Kind.INTEGER else bytes
        self.known = (self._fold is not None or self._exact is not None) and not (
            mapping.unsearchable or mapping.beginning
        )

    def stored_key(self, cell: Cell) -> StoredKey | None:
        """Return a key as SQL has it, None for one that only the server can compare."""
        if self._fold is None:
            return cell if self._exact is not None and isinstance(cell, self._exact) else None
        # A text without form is what SQL has: most keys are.
        data = cell.encode() if self._simple and type(cell) is str else written(self._key, cell)
        return None if self._ascii_only and not data.isascii() else data

    def identity(self, stored: StoredKey) -> Hashable:
        """return what all keys of one row have in common; UnicodeDecodeError if the bytes are not a text."""
        if self._fold is None or isinstance(stored, int):
            return stored
        return self._fold(self._key.charset.decode(stored))

    def match(
        self, wanted: Collection[StoredKey], rows: Sequence[tuple[StoredKey | None, R]]
    ) -> tuple[dict[StoredKey, R], bool]:
        """Match rows to the keys that were looked up.

        Args:
            wanted: the keys, each once.
            rows: what the server found for all of them, each with its stored key.

        Returns:
            The row of each that has one, and whether the others have none for certain: the server agreed with what is
            known of its collation.
        """
        by_key = dict(rows)
        found = {stored: by_key[stored] for stored in wanted if stored in by_key}
        if len(found) == len(wanted) or not rows:
            return found, True
        try:
            placed = {self.identity(stored): row for stored, row in rows if stored is not None}
            identities = {stored: self.identity(stored) for stored in wanted}
        except UnicodeDecodeError:
            return found, False
        found.update(
            {
                each: placed[identity]
                for each, identity in identities.items()
                if each not in found and identity in placed
            }
        )
        return found, len(placed) == len(rows) and set(identities.values()).issuperset(placed)
