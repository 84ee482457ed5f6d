"""Items in the rows of mapped tables: look-ups, writes, counting and removal."""

import re
import time
from dataclasses import dataclass

from columns import Cell, Column, quote
from counters import Counters
from database import Database
from mappings import Mapping, Table
from refusal import Refusal
from words import Range, low32

MONTH = 60 * 60 * 24 * 30
COUNTED = re.compile(rb" *([0-9]+) *")
NON_NUMERIC = "CLIENT_ERROR cannot increment or decrement non-numeric value"


@dataclass(frozen=True)
class Item:
    """One row of a mapped table."""

    key: Cell
    flags: int
    cas: int
    expiry: int
    parts: tuple[Cell, ...]


@dataclass(frozen=True)
class Write:
    """The arguments of a storage command."""

    verb: str
    key: bytes
    value: bytes
    flags: int
    exptime: int
    cas: int | None = None


def expiry_of(exptime: int) -> int:
    """Give the second from which an item is missing; 0 is never."""
    seconds = low32(exptime)
    if seconds < 0:
        return 1
    return int(time.time()) + seconds if 0 < seconds <= MONTH else seconds


class Store:
    """The operations on items."""

    def __init__(self, database: Database, counters: Counters) -> None:
        """Use a database, and count what is found there."""
        self.database = database
        self.counters = counters

    def item(self, table: Table, row: tuple[Cell, ...]) -> Item:
        """Read a row."""
        flags = table.flags.number(row[1]) & 0xFFFFFFFF if table.flags else 0
        cas = table.cas.number(row[2]) & 0xFFFFFFFFFFFFFFFF if table.cas else 0
        return Item(row[0], flags, cas, table.expiry.number(row[3]) if table.expiry else 0, row[4:])

    def row(self, table: Table, key: bytes) -> Item | None:
        """Find the row of a key, expired or not."""
        match = table.key.match(key)
        if match is None:
            return None
        rows = self.database.rows(f"SELECT {table.selection} FROM {table.quoted} WHERE {match[0]}", match[1])
        return self.item(table, rows[0]) if rows else None

    def is_expired(self, item: Item) -> bool:
        """Tell whether an item is past its expiry."""
        return 0 < item.expiry <= int(time.time())

    def live(self, table: Table, key: bytes, counts: bool = True) -> Item | None:
        """Find the item of a key."""
        item = self.row(table, key)
        if item is not None and self.is_expired(item):
            if counts:
                self.counters.add("get_expired")
            return None
        return item

    def value(self, table: Table, item: Item, separator: bytes) -> bytes:
        """Join the value columns of an item."""
        return separator.join(column.decode(cell) for column, cell in zip(table.values, item.parts))

    def cells(self, mapping: Mapping, value: bytes, separator: bytes) -> list[Cell]:
        """Split a value into its columns, or refuse it."""
        columns = mapping.table.values
        if len(columns) == 1:
            return [columns[0].encode(value)]
        parts = value.split(separator)
        if len(parts) > len(columns):
            raise Refusal(f"CLIENT_ERROR {len(parts)} parts for the {len(columns)} value columns of "
                          f"{mapping.container.name}")
        cells: list[Cell] = [None if column.kind == "int" and not part else column.encode(part)
                             for column, part in zip(columns, parts)]
        return cells + [None] * (len(columns) - len(parts))

    def next_cas(self, former: int) -> int:
        """Take the next cas number, inside a transaction."""
        last = int(str(self.database.rows("SELECT last FROM cas_counter")[0][0])) + 1
        if last == former:
            last += 1
        self.database.execute("UPDATE cas_counter SET last = ?", [last])
        return last

    def _flags_cell(self, column: Column, flags: int) -> Cell:
        """Keep flags; a signed INT keeps the same 32 bits."""
        if column.bits == 32 and not column.is_unsigned:
            return low32(flags)
        return column.encode_number(flags)

    def _save(self, table: Table, key: bytes, item: Item | None, cells: dict[Column, Cell]) -> None:
        """Update the row of an item, or insert one."""
        if table.cas is not None:
            cells[table.cas] = table.cas.encode_number(self.next_cas(item.cas if item else 0))
        if item is None:
            cells = {table.key: table.key.encode_key(key), **cells}
            names = ", ".join(column.quoted for column in cells)
            marks = ", ".join("?" * len(cells))
            self.database.execute(f"INSERT INTO {table.quoted} ({names}) VALUES ({marks})", list(cells.values()))
            return
        names = ", ".join(f"{column.quoted} = ?" for column in cells)
        self.database.execute(f"UPDATE {table.quoted} SET {names} WHERE {table.key.quoted} = ?",
                              [*cells.values(), item.key])

    def _remove(self, table: Table, item: Item) -> None:
        """Delete the row of an item."""
        self.database.execute(f"DELETE FROM {table.quoted} WHERE {table.key.quoted} = ?", [item.key])

    def discard(self, mapping: Mapping, key: bytes) -> None:
        """Remove the row of a `set` whose value was refused."""
        with self.database.writing():
            item = self.row(mapping.table, key)
            if item is not None:
                self._remove(mapping.table, item)

    def store(self, mapping: Mapping, write: Write, separator: bytes) -> str:
        """Process a storage command, and give its reply."""
        table = mapping.table
        verb = write.verb
        extends = verb in ("append", "prepend")
        table.key.encode_key(write.key)
        if table.flags is not None and not extends:
            self._flags_cell(table.flags, write.flags)  # refused before the value and the condition (KV-FLAG-024)
        parts: list[Cell] = []
        if verb == "set":
            if table.expiry is not None:
                table.expiry.encode_number(expiry_of(write.exptime))  # refused before the value (KV-EXP-008)
            try:
                parts = self.cells(mapping, write.value, separator)
            except Refusal:
                self.discard(mapping, write.key)
                raise
        with self.database.writing():
            row = self.row(table, write.key)
            live = self.live(table, write.key, verb != "set")
            if verb == "cas" and live is None:
                return "NOT_FOUND"
            if live is not None and write.cas not in (None, live.cas):
                return "EXISTS"
            if verb == "add" and live is not None or (verb == "replace" or extends) and live is None:
                return "NOT_STORED"
            if extends and live is not None:
                old = self.value(table, live, separator)
                value = old + write.value if verb == "append" else write.value + old
                if all(part is None for part in live.parts) and len(live.parts) == 1:
                    value = write.value
                if len(value) > 1 << 20:
                    raise Refusal("SERVER_ERROR object too large for cache", too_large=True)
                cells: dict[Column, Cell] = dict(zip(table.values, self.cells(mapping, value, separator)))
                self._save(table, write.key, live, cells)
                return "STORED"
            if table.expiry is None and low32(write.exptime) < 0:
                self.cells(mapping, write.value, separator)
                if row is not None:
                    self._remove(table, row)
                return "STORED"
            cells = dict(zip(table.values, parts or self.cells(mapping, write.value, separator)))
            if table.flags is not None:
                cells[table.flags] = self._flags_cell(table.flags, write.flags)
            if table.expiry is not None:
                cells[table.expiry] = table.expiry.encode_number(expiry_of(write.exptime))
            self._save(table, write.key, row, cells)
            return "STORED"

    def delete(self, table: Table, key: bytes, cas: int | None) -> str:
        """Delete the item of a key, if it has this cas number."""
        with self.database.writing():
            item = self.live(table, key)
            if item is None:
                return "NOT_FOUND"
            if cas not in (None, item.cas):
                return "EXISTS"
            self._remove(table, item)
            return "DELETED"

    def flush(self, table: Table) -> None:
        """Delete every row."""
        with self.database.writing():
            for child, here, there in table.references:
                named = f"{quote(there)} IN (SELECT {quote(here)} FROM {quote(child)})"
                if self.database.rows(f"SELECT 1 FROM {table.quoted} WHERE {named} LIMIT 1"):
                    raise Refusal(f"SERVER_ERROR a foreign key of {child} references rows of {table.name}")
            self.database.execute(f"DELETE FROM {table.quoted}")

    def count(self, table: Table, key: bytes, delta: int, is_decr: bool) -> int | None:
        """Add to the number of an item; None is a missing one."""
        with self.database.writing():
            item = self.live(table, key)
            if item is None:
                return None
            column = table.values[0]
            match = COUNTED.fullmatch(column.decode(item.parts[0])) if len(table.values) == 1 else None
            if match is None or len(match[1]) > 1024 or int(match[1]) >= 1 << 64:
                raise Refusal(NON_NUMERIC)
            former = int(match[1])
            number = max(former - delta, 0) if is_decr else (former + delta) % (1 << 64)
            if column.kind == "int":
                cell: Cell = column.encode_number(number)
            else:
                try:
                    cell = column.encode(str(number).encode())
                except Refusal as refusal:
                    raise Refusal(f"SERVER_ERROR {number} is too wide for column {column.name} "
                                  f"({column.width})") from refusal
            self._save(table, key, item, {column: cell})
            return number

    def check_expiry(self, mapping: Mapping, exptime: int) -> None:
        """Refuse an expiry that the table cannot keep."""
        table = mapping.table
        if table.expiry is None and low32(exptime) > 0:
            raise Refusal(f"CLIENT_ERROR mapping {mapping.container.name} has no expiry column: the only time that "
                          "it keeps is 0")

    def touch(self, mapping: Mapping, key: bytes, exptime: int) -> Item | None:
        """Replace the expiry of an item, and give the item."""
        table = mapping.table
        self.check_expiry(mapping, exptime)
        with self.database.writing():
            item = self.live(table, key)
            if item is not None and table.expiry is not None:
                cell = table.expiry.encode_number(expiry_of(exptime))
                self.database.execute(f"UPDATE {table.quoted} SET {table.expiry.quoted} = ? "
                                      f"WHERE {table.key.quoted} = ?", [cell, item.key])
            elif item is not None and low32(exptime) < 0:
                self._remove(table, item)
            return item

    def size(self, table: Table) -> int:
        """Count the rows of a table."""
        return int(str(self.database.rows(f"SELECT COUNT(*) FROM {table.quoted}")[0][0]))

    def all(self, table: Table) -> list[Item]:
        """Give all items of a table."""
        rows = self.database.rows(f"SELECT {table.selection} FROM {table.quoted} WHERE {table.key.quoted} IS NOT NULL")
        return [item for item in (self.item(table, row) for row in rows) if not self.is_expired(item)]

    def range(self, table: Table, wanted: Range) -> list[Item]:
        """Give the items between two bounds, in the order of their keys."""
        column = table.key
        order = f"CAST({column.quoted} AS BLOB)" if column.kind == "bytes" else column.quoted
        in_python = column.kind == "int" and column.bits == 64 and column.is_unsigned
        conditions = [f"{column.quoted} IS NOT NULL"]
        cells: list[Cell] = []
        numbers: list[tuple[str, int]] = []
        for bound, mark in ((wanted.low, ">"), (wanted.high, "<")):
            if bound is None:
                continue
            text, is_included = bound
            sign = mark + ("=" if is_included else "")
            if column.kind == "int":
                if not re.fullmatch(rb"[+-]?[0-9]{1,250}", text):
                    return []
                numbers.append((sign, int(text)))
                continue
            try:
                cells.append(text if column.kind == "bytes" else column.text(text))
            except UnicodeDecodeError:
                return []
            conditions.append(f"{order} {sign} ?")
        if not in_python:
            for sign, number in numbers:
                conditions.append(f"{column.quoted} {sign} ?")
                cells.append(max(-(1 << 63), min((1 << 63) - 1, number)))
        rows = self.database.rows(f"SELECT {table.selection} FROM {table.quoted} WHERE {' AND '.join(conditions)} "
                                  f"ORDER BY {order}", cells)
        items = [self.item(table, row) for row in rows]
        if in_python:
            tests = {">": int.__gt__, ">=": int.__ge__, "<": int.__lt__, "<=": int.__le__}
            items = [item for item in items
                     if all(tests[sign](column.number(item.key), number) for sign, number in numbers)]
            items.sort(key=lambda item: column.number(item.key))
        found = [item for item in items if not self.is_expired(item)]
        self.counters.add("get_expired", len(items) - len(found))
        return found
