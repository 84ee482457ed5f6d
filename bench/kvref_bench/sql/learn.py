"""What a server answers to each statement, seen once before the clock, so that replies can be made for every key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kvref_bench.errors import BenchError
from kvref_bench.sql.codec import outcome
from kvref_bench.sql.connection import execute, query
from kvref_bench.sql.packets import HEADER, OK, column_value, framed, numbers_end, packet, row
from kvref_bench.workload.commands import GETTING, expected
from kvref_bench.workload.keys import key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from kvref_bench.load.work import Work
    from kvref_bench.sql.packets import Reply
    from kvref_bench.sql.statement import Statement

IN_TRANSACTION: Final = 0x0001
# No server sends it, so every reply is read; b"" would make an exchange complete before its last reply came.
UNKNOWN: Final = b"\xff\xff\xff\xff"


class Frame(NamedTuple):
    """The replies to a statement, or UNKNOWN.

    there, missing: for a key with a row and for one without.
    row: place of the row in `there` and the number of its packet; None where the reply has no row.
    """

    there: bytes
    missing: bytes
    row: tuple[int, int] | None = None

    def reply(self, value: bytes, *, there: bool) -> bytes:
        """Return the reply that is expected for a key with this value."""
        if not there:
            return self.missing
        if self.row is None:
            return self.there
        place, number = self.row
        return self.there[:place] + framed(row(value), number) + self.there[place:]


def learn(to: socket.socket, work: Work, statements: Sequence[Statement], handles: Sequence[int]) -> dict[str, Frame]:
    """Execute each statement for a key that is there and for one that is not; what it writes is rolled back.

    Raises:
        BenchError: a statement that reads fails, or answers anything but one row with one column of text.
    """
    return {
        each.verb: (_read if each.verb in GETTING else _write)(to, work, each, handle)
        for each, handle in zip(statements, handles, strict=True)
    }


def _read(to: socket.socket, work: Work, statement: Statement, handle: int) -> Frame:
    (data, there), (missing, nothing) = (
        execute(to, statement.execute(handle, key(work.keys, number), b"")) for number in (0, work.keys.count)
    )
    for said in (there, nothing):
        if said.error is not None:
            raise BenchError(f"the server answers {statement.sql!r} with {said.error[0]} {said.error[1]}")
    if not there.rows:
        return Frame(UNKNOWN, missing)  # an empty table, or a row that an earlier point deleted
    if len(there.rows) > 1 or column_value(there.rows[0]) is None:
        raise BenchError(
            f"the statement for {statement.verb}, {statement.sql!r}, answers {len(there.rows)} rows, the first"
            f" {there.rows[0][:40]!r}: it must give one row with one column of text"
        )
    around = data[: there.first_row] + data[there.last_row :]
    return Frame(around, missing, (there.first_row, data[there.first_row + HEADER - 1]))


def _write(to: socket.socket, work: Work, statement: Statement, handle: int) -> Frame:
    def ask(number: int, *, there: bool) -> bytes:
        name = key(work.keys, number)
        query(to, b"START TRANSACTION")
        data, said = execute(to, statement.execute(handle, name, value(work.values, name)))
        query(to, b"ROLLBACK")
        # An UPDATE, for one, sets nothing where there is no row, which memcached would: each such reply is read.
        usual = outcome(statement.verb, said) == expected(statement.verb, there=there)
        return _committed(data, said) if usual else UNKNOWN

    return Frame(there=ask(0, there=True), missing=ask(work.keys.count, there=False))


def _committed(data: bytes, said: Reply) -> bytes:
    """Return the reply as it is outside of a transaction; UNKNOWN where it names the key or has rows."""
    head = packet(data, 0)
    if said.error is not None or head is None or head.end != said.end or head.payload[0] != OK:
        return UNKNOWN
    place = HEADER + numbers_end(head.payload)
    return data[:place] + bytes([data[place] & ~IN_TRANSACTION]) + data[place + 1 :]
