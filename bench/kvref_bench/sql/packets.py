"""Packets of MySQL's client protocol: statements of a scenario, and the replies to them taken apart.

MySQL's manual of the source code, "Client/Server Protocol"; MariaDB's is the same as far as it is used here. Without
CLIENT_DEPRECATE_EOF, which PyMySQL does not request, an EOF packet ends the columns and another the rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.work import Work

PREPARE: Final = 0x16
EXECUTE: Final = 0x17
OK: Final = 0x00
EOF: Final = 0xFE
ERROR: Final = 0xFF
HEADER: Final = 4
MORE_RESULTS: Final = 0x0008
ROW: Final = b"\0\0"  # its header, and the bitmap of one column that is not NULL
NO_LENGTH: Final = (b"", b"\xfb", b"\xfe", b"\xff")  # no text of less than 16 MiB begins so
TEXT: Final = b"\xfd\0"  # VAR_STRING
INTEGER: Final = b"\x08\0"  # LONGLONG
INTEGER_BYTES: Final = 8


class Packet(NamedTuple):
    """One packet of some bytes.

    payload: without the header. end: behind it.
    """

    payload: bytes
    end: int


class Reply(NamedTuple):
    """What a server said to one statement.

    rows: payloads of all rows, of all result sets.
    affected: rows that were changed, or found; -1 where it does not say.
    end: behind it. first_row, last_row: where the rows of the first result set begin and end.
    error: number and text, None where it went well. more: of a part of a reply: another part follows.
    """

    rows: tuple[bytes, ...]
    affected: int
    end: int
    first_row: int = 0
    last_row: int = 0
    error: tuple[int, str] | None = None
    more: bool = False


def framed(payload: bytes, number: int = 0) -> bytes:
    """Put the header before a payload.

    payload: less than 16 MiB. number: of the packet since the command, which has 0.
    """
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def packet(data: bytes, begin: int) -> Packet | None:
    """Take one packet; None while it is not complete."""
    start = begin + HEADER
    if len(data) < start:
        return None
    end = start + int.from_bytes(data[begin : begin + 3], "little")
    return Packet(data[start:end], end) if len(data) >= end else None


def packets(data: bytes, begin: int = 0) -> Iterator[Packet]:
    """Yield the packets that are complete."""
    while (found := packet(data, begin)) is not None:
        yield found
        begin = found.end


def text(value: bytes) -> bytes:
    """Encode a length and as many bytes."""
    return length(len(value)) + value


def length(number: int) -> bytes:
    """Encode a number as long as it needs."""
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    return b"\xfd" + number.to_bytes(3, "little")


def number(data: bytes, place: int) -> tuple[int, int]:
    """Read such a number; gives the place behind it too."""
    first = data[place]
    if first < 251:
        return first, place + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[place + 1 : place + 1 + size], "little"), place + 1 + size


def reply(data: bytes, begin: int = 0) -> Reply | None:
    """Take what was said to one statement, result sets of a procedure included; None while it is not complete."""
    first = part = _result(data, begin)
    rows = first.rows if first else ()
    while part is not None and part.more:
        part = _result(data, part.end)
        rows += part.rows if part else ()
    if first is None or part is None:
        return None
    return part._replace(rows=rows, first_row=first.first_row, last_row=first.last_row)


def _result(data: bytes, begin: int) -> Reply | None:
    left = packets(data, begin)
    head = next(left, None)
    if head is None:
        return None
    if head.payload[0] == OK:
        affected, place = number(head.payload, 1)
        _, place = number(head.payload, place)  # of the last inserted row
        return Reply((), affected, head.end, more=_more(head.payload[place : place + 2]))
    if head.payload[0] == ERROR:
        return Reply((), -1, head.end, error=failure(head.payload))
    columns, _ = number(head.payload, 0)
    described = list(islice(left, columns + 1))  # and the EOF behind them
    rows: list[bytes] = []
    for row in left:
        if row.payload[0] == ERROR:
            return Reply(tuple(rows), -1, row.end, error=failure(row.payload))
        if row.payload[0] == EOF and len(row.payload) == 5:
            last_row = row.end - HEADER - len(row.payload)
            return Reply(tuple(rows), -1, row.end, described[-1].end, last_row, more=_more(row.payload[3:5]))
        rows.append(row.payload)
    return None


def row(value: bytes) -> bytes:
    """Return the payload of a row with one column of text."""
    return ROW + text(value)


def column_value(payload: bytes) -> bytes | None:
    """Read the column of such a row; None for NULL and for any other row."""
    if not payload.startswith(ROW) or payload[len(ROW) :][:1] in NO_LENGTH:
        return None
    size, place = number(payload, len(ROW))
    return payload[place:] if place + size == len(payload) else None


def failure(payload: bytes) -> tuple[int, str]:
    """Read the number and the text of an error."""
    words = payload[3:]
    if words[:1] == b"#":
        words = words[6:]
    return int.from_bytes(payload[1:3], "little"), words.decode("utf-8", "replace")


def _more(status: bytes) -> bool:
    return bool(int.from_bytes(status, "little") & MORE_RESULTS)


PLACE: Final = re.compile(r":(key|value)\b")
NO_CURSOR_ONCE: Final = b"\0\1\0\0\0"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a scenario.

    sql: with `?` where the parameters go. parameters: `key` or `value`, in their order.
    numbers: the key is a whole number.
    """

    verb: str
    sql: str
    parameters: tuple[str, ...]
    numbers: bool

    def execute(self, handle: int, key: bytes, value: bytes) -> bytes:
        """Encode a COM_STMT_EXECUTE.

        handle: of the statement in its connection. key: decimal digits where it is a number.
        """
        types = b"".join(INTEGER if self._number(each) else TEXT for each in self.parameters)
        given = b"".join(self._encoded(each, key if each == "key" else value) for each in self.parameters)
        nulls = bytes((len(self.parameters) + 7) // 8)
        head = bytes([EXECUTE]) + handle.to_bytes(4, "little") + NO_CURSOR_ONCE
        return framed(head + nulls + b"\1" + types + given)

    def key(self, request: bytes) -> bytes:
        """Read the key from a COM_STMT_EXECUTE again; b"" in one without."""
        count = len(self.parameters)
        place = HEADER + 10 + (count + 7) // 8 + 1 + 2 * count
        for each in self.parameters:
            if self._number(each):
                return b"%d" % int.from_bytes(request[place : place + INTEGER_BYTES], "little", signed=True)
            size, place = number(request, place)
            if each == "key":
                return request[place : place + size]
            place += size
        return b""

    def _number(self, parameter: str) -> bool:
        return self.numbers and parameter == "key"

    def _encoded(self, parameter: str, given: bytes) -> bytes:
        return int(given).to_bytes(INTEGER_BYTES, "little", signed=True) if self._number(parameter) else text(given)


def statements(work: Work) -> tuple[Statement, ...]:
    """Read the statements of a work's verbs, in the order in which each connection prepares them.

    Raises:
        BenchError: a statement without parameters, which has no place for a key.
    """
    return tuple(_statement(verb, work.statements[verb], numbers=_numbers(work)) for verb in sorted(work.verbs))


def _statement(verb: str, sql: str, *, numbers: bool) -> Statement:
    parameters = tuple(PLACE.findall(sql))
    if "key" not in parameters:
        raise BenchError(f"the statement for {verb}, {sql!r}, has no :key: write it where the key goes")
    return Statement(verb, PLACE.sub("?", sql), parameters, numbers)


def _numbers(work: Work) -> bool:
    return work.keys.shape == "int" and work.keys.file is None
