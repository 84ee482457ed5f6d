"""Range gets: `@>low`, `@>=low`, `@<high`, `@<=high`, alone or one of each, in the place of a key."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kvref.collations.comparison import order
from kvref.collations.names import COLLATIONS
from kvref.engine.mapping import Column, Kind, Mapping, is_sendable
from kvref.engine.operations import Cell, Operation, OperationGen, ReadAlong, Row, Scan
from kvref.engine.session import Session
from kvref.engine.values import RefusedError, decoded, key_cell, stored_integer, to_bytes, to_number
from kvref.protocol.numbers import signed
from kvref.protocol.replies import Closed, Item, Status

PAGE: Final = 500  # rows read at once, so that a long range never holds up the other connections
# A hidden row ID of InnoDB: six bytes, of which the first four are 0 in a server with fewer than 65,536 of them.
ROW_ID: Final = b"\0\0\0\0\2\0"
_BOUND: Final = re.compile(rb"@([<>])(=?)")


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """One end of a range; `text` may be empty, which compares like the empty key."""

    text: bytes
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Range:
    """A parsed range word; at least one end is set."""

    low: RangeEnd | None
    high: RangeEnd | None


def parse(key: bytes) -> Range | None:
    """Return the range of a word without mapping and delimiter, or None for an ordinary key."""
    first = _BOUND.match(key)
    if first is None:
        return None
    other = key.find(b"@<" if first[1] == b">" else b"@>", first.end())
    end = len(key) if other < 0 else other
    bounds = {first[1]: RangeEnd(key[first.end() : end], bool(first[2]))}
    if other >= 0 and (second := _BOUND.match(key, other)) is not None:
        bounds[second[1]] = RangeEnd(key[second.end() :], bool(second[2]))
    return Range(bounds.get(b">"), bounds.get(b"<"))


def scan(
    session: Session, mapping: Mapping, wanted: Range, now: int, *, first_only: bool, with_keys: bool
) -> Generator[Operation, Any, tuple[list[Item], bool]]:
    """Return the items of a range in ascending key order, each under its row's own key.

    Args:
        first_only: the profile answers only the first row of this one.
        with_keys: the reply contains the keys.

    Returns:
        The items, and whether no expired row has ended the range.

    Raises:
        RefusedError: the connection is closed: the plugin cannot send a key that is NULL (more:nullrange-003).
    """
    try:
        low, high, end = _ends(session, mapping, wanted)
    except RefusedError:
        return [], True
    lossy = session.rules.lossy_ranges
    # To the plugin a key is greater when it comes later in the index (more:index-013).
    descending = lossy and mapping.descending
    # core:range-032: only the first row.
    first_only = lossy and (first_only or (mapping.key.kind is Kind.INTEGER and None in (wanted.low, wanted.high)))
    low_inclusive = wanted.low is not None and wanted.low.inclusive
    high_inclusive = wanted.high is not None and wanted.high.inclusive
    items: list[Item] = []
    size = 0
    while True:
        page = 1 if first_only else PAGE
        rows: list[Row] = yield Scan(mapping, low, low_inclusive, high, high_inclusive, page, descending)
        for row in rows:
            if end is not None and (yield from end.excludes(mapping, row)):
                session.check_reply(size)
                return items, True
            if session.is_expired(row.expiry, now):
                if lossy:
                    session.check_reply(size)
                    return items, False  # range-070: later rows are lost
                continue
            if row.key is None and lossy and with_keys:
                raise RefusedError(Closed())
            shown = _shown(session, mapping.key, row)
            if shown is not None:
                items.append(session.item(shown, row))
                size += items[-1].size
        session.check_reply(size)
        if first_only or len(rows) < PAGE:
            break
        low, low_inclusive = rows[-1].key, False
    if descending and mapping.secondary and not first_only:
        yield from _check_null_keys(session, mapping, now)
    return items, True


def _ends(session: Session, mapping: Mapping, wanted: Range) -> tuple[Cell, Cell, _ClusteredEnd | None]:
    """Return the ends of a range for a scan, and the upper one apart from it where the plugin compares it otherwise."""
    low, high = end_cell(session, mapping, wanted.low), end_cell(session, mapping, wanted.high)
    if wanted.high is None or not (session.rules.lossy_ranges and mapping.secondary):
        return low, high, None
    return low, None, _ClusteredEnd(mapping.key, mapping.clustered, _stored(mapping.key, high), wanted.high.inclusive)


@dataclass(frozen=True, slots=True)
class _ClusteredEnd:
    """The upper end of a range over a secondary index as the plugin compares it.

    `ib_cursor_read_row` (api0api.cc) compares the end not with the key but with the first column of the row in the
    clustered index: the bytes of that column, as the type of the key column compares bytes (more:secrange-001 to -010).

    Args:
        column: the first column of the clustered index; None: a hidden row ID.
        stored: the end in InnoDB's storage form.
        inclusive: the end itself is in the range.
    """

    key: Column
    column: Column | None
    stored: bytes
    inclusive: bool

    def excludes(self, mapping: Mapping, row: Row) -> OperationGen:
        """Return whether the range ends in front of a row."""
        stored = ROW_ID
        # No key finds a row again whose key is NULL: it compares as with a hidden row ID.
        if self.column is not None and row.key is not None:
            cells = yield ReadAlong(mapping, row.key, (self.column,))
            if not cells:
                return False  # the row is gone
            stored = _stored(self.column, cells[0])
        compared = self._compare(stored)
        return compared > 0 or (compared == 0 and not self.inclusive)

    def _compare(self, stored: bytes) -> int:
        """Return how bytes compare with the end: below 0, 0 or above 0."""
        collation = COLLATIONS.get(self.key.collation.lower())
        if self.key.kind is Kind.TEXT and collation is not None:
            cut = collation.family.startswith("uca")  # there a text ends at the first malformed byte
            with suppress(UnicodeDecodeError):
                return order(collation).compare(self._text(stored, cut=cut), self._text(self.stored, cut=cut))
        return (stored > self.stored) - (stored < self.stored)

    def _text(self, stored: bytes, *, cut: bool) -> str:
        charset = self.key.charset
        return charset.decode(stored[: charset.malformed_at(stored)] if cut else stored)


def _stored(column: Column, cell: Cell) -> bytes:
    """Return a cell in InnoDB's storage form."""
    if column.kind is Kind.INTEGER:
        return stored_integer(column, to_number(cell))
    return column.charset.encode(cell) if isinstance(cell, str) else to_bytes(cell)


def _check_null_keys(session: Session, mapping: Mapping, now: int) -> OperationGen:
    """Close the connection if there is a NULL key, which comes last in a descending index (more:nullrange-006)."""
    rows: list[Row] = yield Scan(mapping, None, low_inclusive=False, high=None, high_inclusive=False, limit=1)
    if rows and rows[0].key is None and not session.is_expired(rows[0].expiry, now):
        raise RefusedError(Closed())


def end_cell(session: Session, mapping: Mapping, bound: RangeEnd | None) -> Cell:
    """Return what a bound compares the key column with, None without bound; raises RefusedError if it cannot."""
    if bound is None:
        return None
    if session.rules.lossy_ranges:
        return key_cell(mapping.key, bound.text, session.rules)
    # What no key can be compares all the same: a text longer than the column, a number beyond it.
    if mapping.key.kind is not Kind.INTEGER:
        return decoded(mapping.key, bound.text, session.rules)
    number = signed(bound.text)
    if number is None:
        raise RefusedError(Status.NOT_FOUND)
    return number


def _shown(session: Session, column: Column, row: Row) -> bytes | None:
    if column.kind is Kind.INTEGER and session.rules.lossy_ranges:
        return stored_integer(column, to_number(row.key))
    key = to_bytes(row.key)
    # A key that no client can send would break the reply's lines; the plugin shows it.
    return key if is_sendable(key) or session.rules.lossy_ranges else None
