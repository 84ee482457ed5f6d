"""The work's verbs as prepared statements: what is sent, what must come, and the reading of other replies.

What a server answers to a read is seen once before the clock, so that replies can be made for every key.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from pymysql.constants import ER

from kvref_bench.errors import BenchError
from kvref_bench.load.records import Plan
from kvref_bench.peers.base_tables import DATABASE
from kvref_bench.sql.connection import Connections, execute, prepare, take_over
from kvref_bench.sql.login import parse
from kvref_bench.sql.packets import (
    HEADER,
    column_value,
    framed,
    packets,
    reply,
    row,
    statements,
)
from kvref_bench.workload.commands import GETTING, OUTCOMES, Fits, Kinds, Read, Reader, expected
from kvref_bench.workload.exchanges import Exchanges
from kvref_bench.workload.keys import key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from kvref_bench.load.work import Task, Work
    from kvref_bench.sql.packets import Reply, Statement
    from kvref_bench.workload.commands import Item

# No server sends it, so every reply is read; b"" would make an exchange complete before its last reply came.
UNKNOWN: Final = b"\xff\xff\xff\xff"


def plan_of(task: Task) -> Plan:
    """Return the plan of one worker for the protocol `mysql`; reads the bytes around rows from the server.

    Raises:
        BenchError: the server is not reachable or rejects a statement, or the parts of the work are incompatible.
    """
    work = task.work
    if work.multiget > 1:
        raise BenchError(f"protocol mysql: multiget = {work.multiget}: a statement has one :key; leave it out")
    where, texts = parse(task.address), statements(work)
    kinds = Kinds(work.verbs)
    with take_over(where, DATABASE) as first:
        handles = prepare(first, texts)
        codec = SQL(texts, handles, learn(first, work, texts, handles))
    exchanges = Exchanges(task, codec, kinds)
    connections = Connections(partial(take_over, where, DATABASE), texts, handles, kinds)
    return Plan(
        kinds=kinds.all,
        connect=connections.open,
        exchanges=lambda session: connections.numbered(session, exchanges.of(session)),
        reader=Reader(codec, kinds, Fits(work.verbs, partial(value, work.values))),
    )


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
    """Execute each statement that reads for a key that is there and for one that is not.

    The replies to others are read one by one: they are not known without writing.

    Raises:
        BenchError: a statement that reads fails, or answers anything but one row with one column of text.
    """
    return {
        each.verb: _read(to, work, each, handle) if each.verb in GETTING else Frame(UNKNOWN, UNKNOWN)
        for each, handle in zip(statements, handles, strict=True)
    }


def _read(to: socket.socket, work: Work, statement: Statement, handle: int) -> Frame:
    (data, there), (missing, nothing) = (
        execute(to, statement.execute(handle, key(work.keys, number), b"")) for number in (0, work.keys.count)
    )
    for answered in (there, nothing):
        if answered.error is not None:
            raise BenchError(f"the server answers {statement.sql!r} with {answered.error[0]} {answered.error[1]}")
    if not there.rows:
        return Frame(UNKNOWN, missing)  # an empty table, or a row that an earlier point deleted
    if len(there.rows) > 1 or column_value(there.rows[0]) is None:
        raise BenchError(
            f"the statement for {statement.verb}, {statement.sql!r}, answers {len(there.rows)} rows, the first"
            f" {there.rows[0][:40]!r}: it must give one row with one column of text"
        )
    around = data[: there.first_row] + data[there.last_row :]
    return Frame(around, missing, (there.first_row, data[there.first_row + HEADER - 1]))


class SQL:
    """A work's verbs as prepared statements, for connections in which these have certain handles.

    frames: by verb.
    """

    unpredictable = None

    def __init__(self, statements: Sequence[Statement], handles: Sequence[int], frames: dict[str, Frame]) -> None:
        self._statements = {each.verb: each for each in statements}
        self._handles = dict(zip(self._statements, handles, strict=True))
        self._frames = frames
        self._keys = lru_cache(maxsize=65536)(self._keys_of)

    def encode(self, verb: str, items: Sequence[Item], _place: int = 0, /) -> tuple[bytes, bytes]:
        """Encode a statement and the reply it should have; see `workload.commands.Codec`."""
        [item] = items
        request = self._statements[verb].execute(self._handles[verb], item.name, item.value)
        return request, self._frames[verb].reply(item.value, there=item.there)

    def replies(self, request: bytes, verbs: tuple[str, ...], data: bytes, fits: Fits) -> Iterator[Read | None]:
        """Yield what each reply to an exchange says; see `workload.commands.Codec`."""
        place = 0
        # The handles of statements differ between connections, their keys do not.
        for verb, name in zip(verbs, self._keys(request, verbs), strict=True):
            answered = reply(data, place)
            if answered is None:
                yield None
                return
            became = outcome(verb, answered)
            if became == "hit" and not _is_right(name, answered.rows, fits):
                became = "error"
            yield Read((became,), answered.end, (data[place : answered.end],) if became == "error" else ())
            place = answered.end

    def _keys_of(self, request: bytes, verbs: tuple[str, ...]) -> list[bytes]:
        ends = [0, *(each.end for each in packets(request))]
        parts = zip(verbs, pairwise(ends), strict=True)
        return [self._statements[verb].key(request[begin:end]) for verb, (begin, end) in parts]


def _is_right(name: bytes, rows: tuple[bytes, ...], fits: Fits) -> bool:
    value = column_value(rows[0]) if len(rows) == 1 else None
    return value is not None and fits(name, value)


def outcome(verb: str, answered: Reply) -> str:
    """Return the outcome of an operation; the value of a row is not checked.

    With CLIENT_FOUND_ROWS, the count is 0 only if there is no row.
    """
    if answered.error is not None:
        return "not_stored" if verb == "add" and answered.error[0] == ER.DUP_ENTRY else "error"
    if verb in GETTING:
        return "hit" if answered.rows else "miss"
    if answered.affected:
        return expected(verb, there=verb != "add")
    return next((each for each in ("not_found", "not_stored") if each in OUTCOMES[verb]), "error")
