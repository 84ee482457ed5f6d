"""Read the events of a binary log: which rows of which tables a transaction changes. No I/O.

An event that is not known counts as a change of everything. Of a row all cells of the types of keys are read: a key is
one of them, in whichever column the table has it now, so that no definition of the table is needed. The log does not
show whether an integer has a sign: it counts as both of the numbers that it may be.
Format: dev.mysql.com/doc/dev/mysql-server, "Binlog Event", and mariadb.com/kb, "Replication Protocol".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from kvref.storage.config.codecs import decimal_width
from kvref.storage.mysql.binlog.positions import FilePoint, Gtid, LogEnd, Point, file_number
from kvref.storage.mysql.mapped_table import StoredKey
from kvref.storage.mysql.result_set import length_encoded

Table = tuple[str, str]  # schema and name, in lower case: a server may compare them so
MAX_KEYS: Final = 1000  # of one table in one transaction; more count as the whole table

_HEADER: Final = Struct("<IBIIIH")  # time, type, server, size, end position, flags
_SERVER_END: Final = 9  # of the server in it
_QUERY, _ROTATE, _FORMAT, _XID, _TABLE_MAP, _XA_PREPARE, _GTID, _PAYLOAD = 2, 4, 15, 16, 19, 38, 33, 40
_MARIADB_GTID: Final = 162
_WRITES, _UPDATES, _DELETES = (23, 30), (24, 31), (25, 32)  # version 1, which MariaDB writes, and version 2
_ROWS: Final = frozenset(_WRITES + _UPDATES + _DELETES)
_HAS_EXTRA: Final = 30  # from this type on rows have extra data
# STOP, HEARTBEAT (two), IGNORABLE, ROWS_QUERY, PREVIOUS_GTIDS, TRANSACTION_CONTEXT, VIEW_CHANGE; of MariaDB
# ANNOTATE_ROWS, BINLOG_CHECKPOINT, GTID_LIST, START_ENCRYPTION: they change no row.
_HARMLESS: Final = frozenset((3, 27, 41, 28, 29, 35, 36, 37, 160, 161, 163, 164))
# Statements that change no row by themselves.
_BEGIN: Final = (b"BEGIN", b"START TRANSACTION")
_END: Final = (b"COMMIT", b"ROLLBACK")
_SAVEPOINTS: Final = (b"SAVEPOINT ", b"ROLLBACK TO ", b"RELEASE SAVEPOINT ")
_CHECKSUM: Final = 4
_STANDALONE: Final = 1  # FL_STANDALONE of MariaDB's GTID event: no COMMIT follows

# Widths in bytes by column type (enum_field_types), where they do not depend on metadata.
_FIXED: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 6: 0, 7: 4, 8: 8, 9: 3, 10: 3, 11: 3, 12: 8, 13: 1, 14: 3}
_FRACTIONAL: Final = {17: 4, 18: 5, 19: 3}  # TIMESTAMP2, DATETIME2, TIME2: fractional seconds follow
_METADATA: Final = {4: 1, 5: 1, 15: 2, 16: 2, 17: 1, 18: 1, 19: 1, 242: 1, 245: 1, 246: 2, 247: 2, 248: 2, 249: 1,
                    250: 1, 251: 1, 252: 1, 253: 2, 254: 2, 255: 1}  # fmt: skip
_KNOWN: Final = _FIXED.keys() | _METADATA.keys()
_VARCHAR, _BIT, _DECIMAL, _ENUM, _SET, _STRING = (15, 253), 16, 246, 247, 248, 254
# VECTOR, JSON, BLOB, GEOMETRY: metadata has the bytes of the length.
_LONG_BYTES: Final = (242, 245, 249, 250, 251, 252, 255)

_WIDTH, _SKIPPED, _TEXT, _CHAR, _INTEGER = range(5)  # kinds of a column in a row
_INTEGERS: Final = (1, 2, 3, 8, 9)


class KeyTypes(Flag):
    """Which types of keys a table has, in addition to VARCHAR and VARBINARY."""

    NONE = 0
    CHAR = auto()
    INTEGER = auto()


class UnknownFormatError(Exception):
    """An event cannot be read: what it changes is not known."""


class Change(NamedTuple):
    """What a transaction has changed.

    Args:
        keys: cells of the changed rows by table, before and after, that may be keys; None: any row of the table.
        everything: any row of any table, and definitions of tables.
        point: of the transaction; None where the log does not say.
        transaction: one has ended; False: MariaDB's log has gone on by something else.
    """

    keys: dict[Table, set[StoredKey] | None]
    everything: bool
    point: Point | None
    transaction: bool = True


class _Columns(NamedTuple):
    table: Table
    layout: list[tuple[int, int]]  # kind and bytes: of the value or, where that varies, of its length


class LogReader:
    """Reads the events of one connection in their order; the `first` one names the file.

    `wanted`: the tables whose rows are read, and what keys they have.
    """

    def __init__(self, *, mariadb: bool, first: bytes) -> None:
        self._mariadb = mariadb
        has_checksum = crc32(first[:-_CHECKSUM]) == int.from_bytes(first[-_CHECKSUM:], "little")
        self._file = _file_of(first[_HEADER.size : -_CHECKSUM if has_checksum else None])
        self._head = b""
        self._offset = 0
        self._tables: dict[int, _Columns] = {}
        self._inside = False  # a transaction has begun
        self._gtid: Gtid | None = None
        self._keys: dict[Table, set[StoredKey] | None] = {}
        self._everything = False
        self._checksum = 0  # bytes behind each event
        self.wanted: Mapping[Table, KeyTypes] = {}

    @property
    def between(self) -> bool:
        """Return whether no transaction is being read."""
        return self._gtid is None and not (self._inside or self._keys or self._everything)

    @property
    def end(self) -> LogEnd | None:
        """Return the end of the last event; None where the log has not said it since the file began."""
        return LogEnd(self._file, self._head, self._offset) if self._head and self._offset else None

    def read(self, packet: bytes) -> Change | None:
        """Read one event; return what a transaction has changed when it ends.

        The packet is as the server sends it, without the byte in front of the header.
        """
        _, kind, _, _, end, _ = _HEADER.unpack_from(packet)
        body = packet[_HEADER.size :]
        if end:
            self._offset = end
        if kind == _FORMAT:
            self._head = packet[:_SERVER_END]
            self._checksum = _CHECKSUM if body[-_CHECKSUM - 1] else 0  # the algorithm, in front of its own checksum
        elif self._checksum:
            body = body[: -self._checksum]
        if kind == _GTID and self._gtid is not None:
            self._everything = True  # the end of the transaction before was not recognised
            change = self._change(end)
            self._take(kind, body)
            return change
        try:
            ends = self._take(kind, body)
        except (UnknownFormatError, IndexError, ValueError):
            self._everything, ends = True, False
        if kind == _PAYLOAD:
            ends = True  # a whole transaction, compressed
        # The end of a ROTATE is one of the file before.
        passes = self._mariadb and not self._inside and end and kind != _ROTATE
        return self._change(end, ends=ends) if ends or passes else None

    def _change(self, end: int, *, ends: bool = True) -> Change:
        point: Point | None = FilePoint(file_number(self._file), end) if self._mariadb else self._gtid
        change = Change(self._keys, self._everything, point, ends)
        self._keys, self._everything, self._gtid = {}, False, None
        return change

    def _take(self, kind: int, body: bytes) -> bool:
        """Note what an event changes; return whether a transaction ends with it."""
        if kind in _ROWS:
            self._rows(kind, body)
        elif kind == _TABLE_MAP:
            number, columns = _columns(body)
            self._tables[number] = columns
        elif kind == _QUERY:
            return self._query(body)
        elif kind in (_XID, _XA_PREPARE):
            self._inside = False
            return True
        elif kind == _GTID:
            self._gtid = Gtid(body[1:17].hex(), int.from_bytes(body[17:25], "little"))
        elif kind == _MARIADB_GTID:
            self._inside = not body[12] & _STANDALONE
        elif kind == _ROTATE:
            self._file, self._head, self._offset = _file_of(body), b"", 0
            self._tables.clear()
        elif kind == _FORMAT:
            self._tables.clear()
        elif kind not in _HARMLESS:
            self._everything = True
        return False

    def _query(self, body: bytes) -> bool:
        start = 13 + int.from_bytes(body[11:13], "little") + body[8] + 1
        text = body[start:].strip().upper()
        if text.startswith(_SAVEPOINTS):
            return False
        if text.startswith(_BEGIN):
            self._inside = True
            return False
        if text.startswith(_END):
            self._inside = False
            return True
        self._everything = True
        return not self._inside

    def _rows(self, kind: int, body: bytes) -> None:
        columns = self._tables.get(int.from_bytes(body[:6], "little"))
        if columns is None:
            raise UnknownFormatError
        types = self.wanted.get(columns.table)
        if types is None:
            return
        at = 8
        if kind >= _HAS_EXTRA:
            at += int.from_bytes(body[8:10], "little")
        count, at = length_encoded(body, at)
        width = (count + 7) // 8
        images = 2 if kind in _UPDATES else 1
        every = (1 << count) - 1
        full = count == len(columns.layout)
        for _ in range(images):
            full = full and int.from_bytes(body[at : at + width], "little") & every == every
            at += width
        if not full:
            self._keys[columns.table] = None  # binlog_row_image of that session is not FULL
            return
        keys = self._keys.setdefault(columns.table, set())
        if keys is None:
            return
        end = len(body)
        while at < end:
            at = _row(body, at, columns.layout, width, keys, types)
        if len(keys) > MAX_KEYS:
            self._keys[columns.table] = None


def _row(body: bytes, at: int, layout: list[tuple[int, int]], width: int, keys: set[StoredKey], types: KeyTypes) -> int:
    """Add the cells of a row image that may be keys to `keys`; return where the next one begins."""
    nulls = int.from_bytes(body[at : at + width], "little")
    at += width
    chars, integers = KeyTypes.CHAR in types, KeyTypes.INTEGER in types
    for kind, size in layout:
        if nulls & 1:
            pass
        elif kind == _WIDTH:
            at += size
        elif kind == _INTEGER:
            if integers:
                cell = body[at : at + size]
                keys.add(int.from_bytes(cell, "little"))
                keys.add(int.from_bytes(cell, "little", signed=True))
            at += size
        else:
            length = int.from_bytes(body[at : at + size], "little")
            at += size
            if kind == _TEXT or (kind == _CHAR and chars):
                keys.add(body[at : at + length])
            at += length
        nulls >>= 1
    if at > len(body):
        raise UnknownFormatError
    return at


def _columns(body: bytes) -> tuple[int, _Columns]:
    """Return the number of a table and its columns from a TABLE_MAP event."""
    at = 9 + body[8]
    schema = body[9:at]
    size = body[at + 1]
    name = body[at + 2 : at + 2 + size]
    count, at = length_encoded(body, at + 3 + size)
    types = body[at : at + count]
    _, at = length_encoded(body, at + count)
    layout = []
    for kind in types:
        if kind not in _KNOWN:
            raise UnknownFormatError
        length = _METADATA.get(kind, 0)
        layout.append(_layout(kind, body[at : at + length]))
        at += length
    table = schema.decode(errors="replace").lower(), name.decode(errors="replace").lower()
    return int.from_bytes(body[:6], "little"), _Columns(table, layout)


def _layout(kind: int, metadata: bytes) -> tuple[int, int]:
    if kind in _VARCHAR:
        return _TEXT, 1 if int.from_bytes(metadata, "little") < 256 else 2
    if kind in _INTEGERS:
        return _INTEGER, _FIXED[kind]
    if kind in _LONG_BYTES:
        return _SKIPPED, metadata[0]
    if kind in _FRACTIONAL:
        return _WIDTH, _FRACTIONAL[kind] + (metadata[0] + 1) // 2
    if kind == _BIT:
        return _WIDTH, metadata[1] + (metadata[0] > 0)
    if kind == _DECIMAL:
        return _WIDTH, decimal_width(metadata[0], metadata[1])
    if kind in (_STRING, _ENUM, _SET):
        # CHAR of more than 255 bytes has two bits of its length in the type's byte, inverted.
        real = metadata[0] | 0x30
        length = metadata[1] | ((metadata[0] & 0x30) ^ 0x30) << 4
        if metadata[0] in (_ENUM, _SET):
            return _WIDTH, metadata[1]
        if real != _STRING:
            raise UnknownFormatError
        return _CHAR, 1 if length < 256 else 2
    return _WIDTH, _FIXED[kind] if kind in _FIXED else metadata[0]


def _file_of(body: bytes) -> str:
    return body[8:].decode()
