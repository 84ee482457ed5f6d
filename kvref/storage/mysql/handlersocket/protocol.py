"""Codec for HandlerSocket's protocol as MariaDB implements it: lines of fields to bytes and back, without I/O.

A line is fields between tabs. In a field each byte below 0x10 is 0x01 and the byte plus 0x40; NULL is one byte 0.
`connection.py` uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kvref.errors import KvrefError

Field = bytes | None

_ESCAPE: Final = b"\x01"
_SHIFT: Final = 0x40
_CONTROL: Final = re.compile(rb"[\x00-\x0f]")
_ESCAPED: Final = re.compile(rb"\x01(.)", re.DOTALL)
_NULL: Final = b"\0"
_DONE: Final = b"0"


class HandlerError(KvrefError):
    """Nothing to be had from HandlerSocket now; the text says why."""


class RefusedError(HandlerError):
    """It answered a line with an error, or with what is no answer to it."""


class RefusedNameError(RefusedError):
    """It has no index, table or column of that name, or it cannot be said."""


def escaped(data: bytes) -> bytes:
    """Return bytes as they stand in a field."""
    return _CONTROL.sub(lambda found: _ESCAPE + bytes((found[0][0] + _SHIFT,)), data)


def plain(field: bytes) -> Field:
    """Return what a field says, None for NULL.

    Raises:
        RefusedError: no server writes that.
    """
    if _ESCAPE not in field:
        return None if field == _NULL else field
    try:
        return _ESCAPED.sub(lambda found: bytes((found[1][0] - _SHIFT,)), field)
    except ValueError as error:
        raise RefusedError(f"{field!r} is no field") from error


def authorisation(secret: str) -> bytes:
    """Return the line that shows the secret."""
    return b"A\t1\t%s\n" % escaped(secret.encode())


def opening(number: int, names: Sequence[str], columns: Iterable[str]) -> bytes:
    """Return the line that opens an index for questions.

    Args:
        number: what the questions call it, from 0.
        names: of the schema, the table and the index.
        columns: whose cells a row is to have, in their order.

    Raises:
        RefusedNameError: a name cannot be said.
    """
    columns = list(columns)
    said = not any(_CONTROL.search(each.encode()) for each in (*names, *columns)) and all(names)
    # The server parts columns at commas, and takes an index that begins with a digit for a number.
    if not said or names[-1][0].isdigit() or any("," in each for each in columns):
        raise RefusedNameError(f"no way to name index {names} or columns {columns}")
    return b"P\t%d\t%s\t%s\n" % (number, "\t".join(names).encode(), ",".join(columns).encode())


def questions(number: int, keys: Iterable[bytes]) -> bytes:
    """Return one request line for each key, which looks up its row.

    Args:
        number: of the index.
        keys: in the column's character set, integers in decimal digits.
    """
    head = b"%d\t=\t1\t" % number
    return b"".join([b"%s%s\n" % (head, key if not _CONTROL.search(key) else escaped(key)) for key in keys])


def done(reply: bytes) -> None:
    """Check the reply to a request that returns no rows.

    Args:
        reply: without the line's end.

    Raises:
        RefusedError: the server rejected the request.
    """
    if not reply.startswith(b"0\t"):
        raise RefusedError(_reason(reply))


def row(reply: bytes, head: bytes, width: int) -> list[Field] | None:
    """Read the answer to a question; None where there is no row.

    Args:
        reply: without the line's end.
        head: what `no_row` returns for the width.
        width: how many cells a row has.

    Raises:
        RefusedError: it was refused.
    """
    if reply == head:
        return None
    fields = reply.split(b"\t")
    if len(fields) != width + 2 or fields[:2] != head.split(b"\t"):
        raise RefusedError(_reason(reply))
    if _ESCAPE in reply or _NULL in reply:
        return [plain(each) for each in fields[2:]]
    return [*fields[2:]]


def no_row(width: int) -> bytes:
    """Return the answer to a question where there is no row.

    Args:
        width: how many cells a row would have.
    """
    return b"0\t%d" % width


def _reason(reply: bytes) -> str:
    code, *fields = reply.split(b"\t")
    if code in (_DONE, b""):
        return "a reply to another request"
    return f"{code[:20].decode('ascii', 'replace')} {b' '.join(fields[1:])[:80].decode('utf-8', 'replace')}".strip()
