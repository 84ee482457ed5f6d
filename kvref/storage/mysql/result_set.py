"""Read the reply to a SELECT as cells of SQL text, without PyMySQL's conversion of rows.

PyMySQL's reader takes two and a half times as long. Sending, errors and timeouts remain PyMySQL's.
Format: dev.mysql.com/doc/dev/mysql-server, "Text Resultset".
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final, NoReturn

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND, CR
from pymysql.cursors import Cursor
from pymysql.protocol import FieldDescriptorPacket

Cells = list[bytes | None]

_CHUNK: Final = 1 << 16
_MAX_PACKET: Final = (1 << 24) - 1  # more follows in another one
_SHORT, _NULL = 0xFB, 0xFB  # lengths below stand for themselves
_WIDTHS: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}  # bytes of longer ones
_OK, _END, _MAX_END, _ERROR = 0, 0xFE, 8, 0xFF
_MAX_COLUMNS: Final = 250
_END_OF_COLUMNS: Final = 9  # bytes of the packet behind them


def select_raw(connection: Connection[Cursor], sql: str, known: bytes = b"") -> tuple[bytes, list[Cells]]:
    """Return what describes the columns of a SELECT, the same bytes as long as they are the same, and its rows.

    Columns that `known` describes are not read one by one. Raises MySQLError, as PyMySQL does.
    """
    stream = _Stream(connection, sql)
    columns = stream.columns(known)
    if not columns:
        raise _malformed(connection, f"no rows in answer to {sql[:60]}")
    return columns, stream.rows()


def run(connection: Connection[Cursor], sql: str) -> int:
    """Run a statement that returns no rows; return how many rows it has found or written; raises as `select_raw`."""
    reply = _Stream(connection, sql).first()
    if reply[0] != _OK:
        raise _malformed(connection, f"rows in answer to {sql[:60]}")
    return length_encoded(reply, 1)[0]


def description(columns: bytes, encoding: str) -> tuple[object, ...]:
    """Return what PyMySQL's cursors say of columns: `cursor.description`."""
    packets: list[Any] = []
    at = 5  # after the number of columns
    while at < len(columns):
        start, at = at + 4, at + 4 + int.from_bytes(columns[at : at + 3], "little")
        packets.append(FieldDescriptorPacket(columns[start:at], encoding))
    return tuple([each.description() for each in packets])


def _malformed(connection: Any, what: str) -> pymysql.err.InternalError:
    connection._force_close()
    return pymysql.err.InternalError(CR.CR_MALFORMED_PACKET, what)


class _Stream:
    """The reply to a statement, which is sent first, in packets; raw: PyMySQL's connection, with nothing read ahead."""

    __slots__ = ("_at", "_raw", "_read")

    def __init__(self, raw: Any, sql: str) -> None:
        raw._execute_command(COMMAND.COM_QUERY, sql)
        if raw._current_timeout != raw._read_timeout:
            raw._sock.settimeout(raw._read_timeout)
            raw._current_timeout = raw._read_timeout
        self._raw = raw
        self._read = self._more()
        self._at = 0

    def columns(self, known: bytes) -> bytes:
        """Return the packets that describe the columns, with their headers; empty if the reply has no columns."""
        end = len(known) + _END_OF_COLUMNS
        if known and len(self._read) >= end and self._read.startswith(known):
            self._at = end
            return known
        packets = [self.first()]
        if not 0 < packets[0][0] <= _MAX_COLUMNS:
            return b""
        packets += [self.packet() for _ in range(packets[0][0])]
        self.packet()  # the end of the columns
        heads = [len(each).to_bytes(3, "little") + bytes([number]) for number, each in enumerate(packets, 1)]
        return b"".join(chain.from_iterable(zip(heads, packets, strict=True)))

    def first(self) -> bytes:
        """Return the first packet of the reply; raises MySQLError if it is an error."""
        start, end = self._next()
        if self._read[start - 1] != self._raw._next_seq_id:  # a server that ends does not number its last packet
            self._lost("")
        if self._read[start] == _ERROR:
            pymysql.err.raise_mysql_exception(self._read[start:end])
        return self._read[start:end]

    def packet(self) -> bytes:
        """Return the next packet, the parts of a large one together."""
        start, end = self._next()
        return self._read[start:end]

    def rows(self) -> list[Cells]:
        """Return all rows up to the end."""
        rows: list[Cells] = []
        while True:
            self._take_short_rows(rows)
            start, end = self._next()
            read = self._read
            kind = read[start]
            if kind == _END and end - start <= _MAX_END:
                self._raw.server_status = int.from_bytes(read[start + 3 : start + 5], "little")
                return rows
            if kind == _ERROR:
                pymysql.err.raise_mysql_exception(read[start:end])
            rows.append(_cells(read, start, end))

    def _take_short_rows(self, rows: list[Cells]) -> None:
        """Append the rows that were read whole and whose cells are all short, up to the first other packet."""
        read, at = self._read, self._at
        last = len(read) - 4
        while at < last:
            end = at + 4 + (read[at] | read[at + 1] << 8 | read[at + 2] << 16)
            if end > last + 4:
                break
            cells: Cells = []
            here = at + 4
            while here < end:
                size = read[here]
                if size >= _SHORT:
                    break
                here += size + 1
                cells.append(read[here - size : here])
            if here != end or not cells:
                break
            rows.append(cells)
            at = end
        self._at = at

    def _next(self) -> tuple[int, int]:
        """Return where the next packet begins and ends in what was read."""
        while len(self._read) - self._at < 4:
            self._append(self._more())
        start = self._at + 4
        size = int.from_bytes(self._read[self._at : start - 1], "little")
        missing = start + size - len(self._read)
        if missing > 0:
            self._append(self._raw._read_bytes(missing))
            start = 4
        self._at = end = start + size
        if size == _MAX_PACKET:
            whole = self._read[start:end] + self.packet()
            self._read, self._at = whole + self._read[self._at :], len(whole)
            return 0, len(whole)
        return start, end

    def _append(self, data: bytes) -> None:
        self._read = self._read[self._at :] + data
        self._at = 0

    def _more(self) -> bytes:
        try:
            data: bytes = self._raw._rfile.read1(_CHUNK)
        except OSError as error:
            self._lost(f" ({error})")
        if not data:
            self._lost("")
        return data

    def _lost(self, cause: str) -> NoReturn:
        # Number and text are PyMySQL's; the exception that is the cause shows a timeout.
        self._raw._force_close()
        raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query{cause}")


def length_encoded(data: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer and where the next field begins."""
    first = data[at]
    if first < _SHORT:
        return first, at + 1
    end = at + 1 + _WIDTHS[first]
    return int.from_bytes(data[at + 1 : end], "little"), end


def _cells(data: bytes, at: int, end: int) -> Cells:
    """Return the cells of a row between two places."""
    cells: Cells = []
    while at < end:
        size = data[at]
        at += 1
        if size >= _SHORT:
            if size == _NULL:
                cells.append(None)
                continue
            width = _WIDTHS[size]
            size = int.from_bytes(data[at : at + width], "little")
            at += width
        cells.append(data[at : at + size])
        at += size
    return cells
