"""Bytes of the protocol to cells of columns and back: widths, character sets, integers, several value columns."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.rules import Rules
from kvref.protocol.replies import ClientError, Fault, Reply, ServerError, Status

TOO_LARGE: Final = ServerError("object too large for cache", Fault.TOO_LARGE)
_LEADING: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)([0-9]+)")
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_DECIMAL: Final = re.compile(rb"[+-]?[0-9]{1,25}")


class RefusedError(Exception):
    """A request is refused with this reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply)
        self.reply = reply


def to_bytes(cell: Cell) -> bytes:
    """Return a cell as the protocol shows it; NULL is empty."""
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogateescape")
    if isinstance(cell, bytes):
        return cell
    if cell is None:
        return b""
    # An integer column of SQLite may hold a real number that SQL wrote into it.
    return b"%d" % cell if isinstance(cell, int) else repr(cell).encode()


def shown_flags(flags: int | None) -> int:
    """Return the content of a flags column as the protocol shows it; NULL is 0."""
    return (flags or 0) % (1 << 32)


def to_number(cell: Cell) -> int:
    """Return a flags, cas or expiry cell as a number; NULL is 0."""
    if isinstance(cell, int):
        return cell
    if isinstance(cell, float):
        return int(cell)
    return leading_number(to_bytes(cell))


def leading_number(text: bytes) -> int:
    """Return the number in front of a text as C's strtoll finds it, 0 without one, but unbounded."""
    match = _LEADING.match(text)
    if match is None:
        return 0
    digits = match[2].lstrip(b"0")
    value = int(digits or b"0") if len(digits) <= 25 else 10**25
    return -value if match[1] == b"-" else value


def key_cell(column: Column, key: bytes, rules: Rules) -> Cell:
    """Turn a client's key into the key column's content.

    Args:
        key: up to MAX_KEY bytes.

    Raises:
        RefusedError: the key cannot be in this column; a verb that only looks up takes that for a miss.
    """
    if column.kind is Kind.INTEGER:
        return _integer(column, key, rules, "key")
    cell = decoded(column, key, rules)
    if column.width is not None and len(key) > column.width and too_wide(column, cell):
        if not rules.cuts_keys:
            raise RefusedError(ClientError(f"key too long for column {column.name} ({column.width})"))
        return _cut(column, cell)
    return cell


def value_cell(column: Column, data: bytes, rules: Rules) -> Cell:
    """Return the value column's content for a value or a part of it; raises RefusedError if it does not fit."""
    if column.kind is Kind.INTEGER:
        return _integer(column, data, rules, "value")
    cell = decoded(column, data, rules)
    if column.exact and len(cell) != column.width:
        raise RefusedError(Status.NOT_STORED)
    if column.width is not None and len(data) > column.width and too_wide(column, cell):
        if not rules.cuts_values:
            raise RefusedError(too_large_for(column))
        return _cut(column, cell)
    return cell


def key_reader(column: Column, rules: Rules) -> Callable[[bytes], Cell]:
    """Return `key_cell` of one column, in which content that fits for certain passes one check."""
    return _reader(column, partial(key_cell, column, rules=rules))


def value_reader(column: Column, rules: Rules) -> Callable[[bytes], Cell]:
    """Return `value_cell` of one column, in which content that fits for certain passes one check."""
    return _reader(column, partial(value_cell, column, rules=rules))


def ascii_width(column: Column) -> int:
    """Return up to which length ASCII always fits a column, and reads as it is; -1: it may not."""
    if column.exact or column.kind is Kind.INTEGER or (column.kind is Kind.TEXT and column.charset.unit > 1):
        return -1
    return sys.maxsize if column.width is None else column.width


def has_text(column: Column) -> bool:
    """Return whether the cells of a column are text: those of other character sets are bytes."""
    return column.kind is Kind.TEXT and not column.charset.unit


def _reader(column: Column, general: Callable[[bytes], Cell]) -> Callable[[bytes], Cell]:
    width = ascii_width(column)
    if width < 0:
        return general
    if has_text(column):
        return lambda data: data.decode("ascii") if data.isascii() and len(data) <= width else general(data)
    # ASCII is text in each of these character sets; its cells are the bytes.
    return lambda data: data if data.isascii() and len(data) <= width else general(data)


def is_number(column: Column, data: bytes) -> bool:
    """Return whether an integer column could take this text by its leading number; any other column takes any."""
    return column.kind is not Kind.INTEGER or _LEADING.match(data) is not None


def split_value(mapping: Mapping, data: bytes, separator: bytes, rules: Rules) -> tuple[Cell, ...]:
    """Split a value into the value columns of a mapping.

    Args:
        rules: how the profile splits and what it drops.

    Raises:
        RefusedError: a part does not fit its column, or there are more parts than columns.
    """
    if len(mapping.values) == 1:
        return (value_cell(mapping.values[0], data, rules),)
    parts = data.split(separator) if rules.separator_is_string else _strtok_parts(data, separator)
    if len(parts) > len(mapping.values) and not rules.drops_surplus:
        raise RefusedError(
            ClientError(f"{len(parts)} parts for the {len(mapping.values)} value columns of {mapping.name}")
        )
    cells: list[Cell] = []
    for column, part in zip(mapping.values, parts, strict=False):
        try:
            # What get shows of a NULL number is an empty part.
            absent = part is None or (not part and column.kind is Kind.INTEGER and rules.separator_is_string)
            cells.append(None if absent else value_cell(column, part or b"", rules))
        except RefusedError:
            if not rules.wraps_integers:
                raise
            break  # the plugin stops at a part that is not a number: it and the rest become NULL (columns:col-050)
    return (*cells, *[None] * (len(mapping.values) - len(cells)))


def only_column(mapping: Mapping, index: int, cell: Cell) -> tuple[Cell, ...]:
    """Return the value columns with one of them filled and the others NULL, as the plugin writes them (col-008)."""
    return tuple([cell if position == index else None for position in range(len(mapping.values))])


def join_value(cells: tuple[Cell, ...], separator: bytes) -> bytes:
    """Join the value columns of a row as get shows them."""
    if len(cells) == 1:
        return to_bytes(cells[0])
    return separator.join(map(to_bytes, cells))


def _strtok_parts(data: bytes, separator: bytes) -> list[bytes | None]:
    # innodb_api_set_multi_cols: strtok_r over a text, so it ends at NUL and runs of separator bytes count once; an
    # empty first part is noticed only by the first byte of the separator (columns:sep-005, 009, 031).
    data = data.split(b"\0")[0]
    parts: list[bytes | None] = [None] if data[:1] == separator[:1] and data else []
    parts += [part for part in re.split(b"[" + re.escape(separator) + b"]", data) if part]
    return parts


def decoded(column: Column, data: bytes, rules: Rules) -> str | bytes:
    """Return bytes as cells are: text over UTF-8, else bytes; raises RefusedError for refused malformed text."""
    if column.kind is Kind.BYTES:
        return data
    charset = column.charset
    if charset.unit == 0:
        if data.isascii():
            return data.decode("ascii")
        try:
            return charset.decode(data)
        except UnicodeDecodeError as error:
            start = error.start
        if rules.surrogates_are_text:
            # The replacement character has as many bytes, so places stay.
            end = charset.malformed_at(_SURROGATE.sub(b"\xef\xbf\xbd", data))
            if end is None:
                if not column.surrogates:
                    raise _no_text(column, start)
                return data
            start = end
    else:
        end = charset.malformed_at(data)
        if end is None:
            return data
        start = end
    if rules.malformed_text == "error":
        raise _no_text(column, start)
    # Only CHAR and VARCHAR are looked at (columns:coll-034).
    if rules.malformed_text == "kept" or not (column.cuts and charset.checked):
        return data
    return decoded(column, data[:start], rules)


def _no_text(column: Column, start: int) -> RefusedError:
    charset = column.charset
    return RefusedError(
        ServerError(f"column {column.name} holds {charset.name} text, byte {start} of the data is none")
    )


def too_wide(column: Column, cell: str | bytes) -> bool:
    """Return whether content is longer than its column: none is that was made of no more bytes than its width."""
    if column.width is None:
        return False
    length = len(cell.encode()) if isinstance(cell, str) and column.counts_bytes else len(_counted(column, cell))
    return length > column.width


def too_large_for(column: Column) -> ServerError:
    """Return the reply to a value that is longer than its column.

    It begins with memcached's text for items beyond its limit, by which client libraries recognise the error.
    """
    width, unit = column.width or 0, "bytes"
    if column.kind is Kind.TEXT and not column.counts_bytes:
        width, unit = width if column.charset.varies else width // (column.charset.unit or 1), "characters"
    return ServerError(f"object too large for cache: column {column.name} takes {width} {unit}", Fault.TOO_LARGE)


def _cut(column: Column, cell: str | bytes) -> str | bytes:
    # TEXT and BLOB beyond their limit are stored whole by the plugin (columns:type-158).
    if not column.cuts:
        return cell
    counted = _counted(column, cell)[: column.width]
    if isinstance(counted, list):
        return b"".join(counted)
    return counted.encode("utf-8", "surrogatepass") if isinstance(cell, bytes) and isinstance(counted, str) else counted


def _counted(column: Column, cell: str | bytes) -> str | bytes | list[bytes]:
    """Return a cell in the units that its column's width counts: UTF-8 with surrogates is kept as bytes."""
    if isinstance(cell, bytes) and column.kind is Kind.TEXT and column.cuts:
        if column.charset.varies:
            return column.charset.letters(cell)
        if column.charset.unit == 0:
            return cell.decode("utf-8", "surrogatepass")
    return cell


def _integer(column: Column, data: bytes, rules: Rules, what: str) -> int:
    if not rules.wraps_integers:
        if _DECIMAL.fullmatch(data) and column.low <= int(data) <= column.high:
            return int(data)
        shown = data[:40].decode("utf-8", "replace")
        raise RefusedError(
            ClientError(f"{what} {shown!r} is not a number from {column.low} to {column.high} for column {column.name}")
        )
    if not is_number(column, data):
        raise RefusedError(Status.NOT_STORED)
    number = leading_number(data)
    if what == "key" and rules.signed_keys and not column.nullable:
        number = _signed_64(number)
    return wrapped(column, number)


def wrapped(column: Column, number: int) -> int:
    """Return a number by the low bits that fit a column, read by strtoll, or by strtoull for BIGINT UNSIGNED."""
    if column.low <= number <= column.high:
        return number
    if column.high >= 1 << 63:
        # strtoull: -1 is 2^64-1, and so is whatever is too long for 64 bits, with either sign.
        return number % (1 << 64) if abs(number) < 1 << 64 else (1 << 64) - 1
    return (_signed_64(number) - column.low) % (column.high - column.low + 1) + column.low


def _signed_64(number: int) -> int:
    return max(-(1 << 63), min(number, (1 << 63) - 1))


def stored_integer(column: Column, number: int) -> bytes:
    """Return an integer in InnoDB's storage form: big-endian, the sign bit flipped (core:range-031)."""
    span = column.high - column.low + 1
    return ((number - column.low) % span).to_bytes((span.bit_length() - 1) // 8, "big")


def as_stored(mapping: Mapping, row: Row) -> Row:
    """Return a row as it reads after it was written.

    InnoDB finds fixed-length columns by adding up lengths, so the bytes of later columns of the record move forward
    into the short column and into each other. Only the columns of the container count: the plugin leaves NULL in the
    others, which needs no space. Bytes read beyond the end of the record are uninitialised in the plugin; here they are
    zero.

    Args:
        mapping: one with a single value column; of several none is of fixed length without conversion.
        row: as the plugin fills it in.
    """
    column, data = mapping.values[0], row.values[0]
    if not column.fixed or not isinstance(data, bytes) or len(data) >= (column.width or 0):
        return row
    numbers = {"flags": row.flags, "cas": row.cas, "expiry": row.expiry}
    columns = {name: getattr(mapping, name) for name in numbers}
    following = [
        name for each in mapping.following[0] for name in numbers if columns[name] == each and numbers[name] is not None
    ]
    record = data + b"".join(stored_integer(columns[name], numbers[name] or 0) for name in following)
    record = record.ljust(len(record) + (column.width or 0), b"\0")
    at = column.width or 0
    value = record[:at]
    for name in following:
        numbers[name], at = _read(columns[name], record, at)
    return replace(row, values=(value,), **numbers)


def _read(column: Column, record: bytes, at: int) -> tuple[int, int]:
    end = at + len(stored_integer(column, 0))
    return int.from_bytes(record[at:end], "big") + column.low, end
