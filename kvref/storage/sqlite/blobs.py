"""Text that a program has written into a SQLite file as a BLOB, which no text equals.

The cells of text in a character set are its bytes, so that text and such a BLOB have the same cell. Here they differ:
what is read as a BLOB is looked up, and written back, as one.
"""

from __future__ import annotations

from dataclasses import replace

from kvref.engine.mapping import Column, ColumnCodec, Kind
from kvref.engine.operations import Cell


class Blob(bytes):
    """The cell of such a BLOB; `stored`: its bytes in the file, which `ColumnCodec.pads` may fill up in the cell."""

    stored: bytes

    @classmethod
    def of(cls, cell: bytes, stored: bytes) -> Blob:
        blob = cls(cell)
        blob.stored = stored
        return blob


def keeping_blobs(column: Column) -> Column:
    """Return a column of a SQLite file whose codec keeps BLOBs apart from text."""
    codec = column.codec
    if codec is None or column.kind is not Kind.TEXT:
        return column
    to_shown, to_cell = codec.to_sql, codec.from_sql

    def to_sql(cell: str | bytes) -> str | bytes:
        shown: str | bytes = cell.stored if isinstance(cell, Blob) else to_shown(cell)
        return shown

    def from_sql(shown: Cell) -> Cell:
        cell: Cell = to_cell(shown)
        return Blob.of(cell, shown) if isinstance(shown, bytes) and isinstance(cell, bytes) else cell

    return replace(column, codec=ColumnCodec(to_sql, from_sql, codec.pads))
