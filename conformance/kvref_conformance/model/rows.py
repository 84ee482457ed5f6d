"""The rows as every owner sees them: committed versions, pending ones, and who holds which lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from kvref_conformance.model.effects import Item
    from kvref_conformance.sql.columns import Cell

RowId: TypeAlias = tuple[str, str]
"""A table and a key, as `Schema.row_of` has it where the columns are known."""
GONE: Final = None


@dataclass(slots=True, eq=False)
class Number:
    """A cas number, known once it was seen; each write makes a new one."""

    seen: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A version of a row: the item in it, its cas number, the cells of its columns where these are known."""

    item: Item
    number: Number
    cells: tuple[Cell, ...] = ()


@dataclass
class Rows:
    """Two tables.

    Owners are connections by name, or the open SQL transaction. `now` counts commits; a version holds from the commit
    of its number on.
    """

    now: int = 0
    committed: dict[RowId, list[tuple[int, Row | None]]] = field(default_factory=dict)
    pending: dict[str, dict[RowId, Row | None]] = field(default_factory=dict)
    _locks: dict[RowId, dict[str, bool]] = field(default_factory=dict)

    def put(self, changes: dict[RowId, Row | None]) -> None:
        """Commit changes."""
        self.now += 1
        for place, row in changes.items():
            self.committed.setdefault(place, []).append((self.now, row))

    def write(self, owner: str, place: RowId, row: Row | None) -> None:
        """Leave a version pending, with the lock of its row."""
        self.pending.setdefault(owner, {})[place] = row
        self.lock(owner, place, sure=True)

    def lock(self, owner: str, place: RowId, *, sure: bool) -> None:
        """Lock a row; `sure` is False where it depends on the storage whether the lock is there."""
        holders = self._locks.setdefault(place, {})
        holders[owner] = sure or holders.get(owner, False)

    def commit(self, owner: str) -> None:
        """Commit what is pending and give the locks back."""
        if self.pending.get(owner):
            self.put(self.pending[owner])
        self.roll_back(owner)

    def roll_back(self, owner: str) -> None:
        """Forget what is pending and give the locks back."""
        self.pending.pop(owner, None)
        for holders in self._locks.values():
            holders.pop(owner, None)

    def holder(self, place: RowId, but: str) -> str | None:
        """Return who surely holds the lock of a row, other than `but`."""
        return next((owner for owner, sure in self._holders(place, but).items() if sure), None)

    def doubtful(self, place: RowId, but: str) -> bool:
        """Return whether another owner than `but` may have locked a row, and none is certain to."""
        return bool(self._holders(place, but)) and self.holder(place, but) is None

    def locked_by(self, owner: str) -> set[RowId]:
        """Return the rows that an owner has locked, or may have."""
        return {place for place, holders in self._locks.items() if owner in holders}

    def newest(self, place: RowId) -> Row | None:
        """Return the version that is there, committed or not."""
        for changes in self.pending.values():
            if place in changes:
                return changes[place]
        return self.at(place, self.now)

    def own(self, owner: str, place: RowId) -> Row | None:
        """Return the version that an owner writes on: its own, or what is committed."""
        changes = self.pending.get(owner, {})
        return changes[place] if place in changes else self.at(place, self.now)

    def at(self, place: RowId, moment: int) -> Row | None:
        """Return the version that was committed at a moment."""
        versions = self.committed.get(place, [])
        return next((row for since, row in reversed(versions) if since <= moment), GONE)

    def places(self, table: str) -> list[RowId]:
        """Return where the table has or had rows."""
        known = set(self.committed).union(*self.pending.values())
        return sorted(place for place in known if place[0] == table)

    def _holders(self, place: RowId, but: str) -> dict[str, bool]:
        return {owner: sure for owner, sure in self._locks.get(place, {}).items() if owner != but}
