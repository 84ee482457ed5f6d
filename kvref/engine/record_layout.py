"""Content shorter than its fixed-length column, as the plugin writes it: without padding (type-107, 132, 134 to 136).

InnoDB finds fixed-length columns by adding up lengths, so the bytes of later columns of the record move forward into
the short column and into each other. Only the columns of the container count: the plugin leaves NULL in the others,
which needs no space. Bytes read beyond the end of the record are uninitialised in the plugin; here they are zero.
"""

from __future__ import annotations

from dataclasses import replace

from kvref.engine.mapping import Column, Mapping
from kvref.engine.operations import Row
from kvref.engine.values import stored_integer


def slipped(mapping: Mapping, row: Row) -> Row:
    """Return a row as it reads after it was written.

    Args:
        mapping: one with a single value column; of several none is of fixed length without conversion.
        row: as the plugin fills it in.
    """
    column, data = mapping.values[0], row.values[0]
    if not column.fixed or not isinstance(data, bytes) or len(data) >= (column.width or 0):
        return row
    numbers = {"flags": row.flags, "cas": row.cas, "expiry": row.expiry}
    columns = {name: getattr(mapping, name) for name in numbers}
    behind = [
        name for place in mapping.behind[0] for name in numbers if columns[name] == place and numbers[name] is not None
    ]
    record = data + b"".join(stored_integer(columns[name], numbers[name] or 0) for name in behind)
    record = record.ljust(len(record) + (column.width or 0), b"\0")
    at = column.width or 0
    value = record[:at]
    for name in behind:
        numbers[name], at = _read(columns[name], record, at)
    return replace(row, values=(value,), **numbers)


def _read(column: Column, record: bytes, at: int) -> tuple[int, int]:
    end = at + len(stored_integer(column, 0))
    return int.from_bytes(record[at:end], "big") + column.low, end
