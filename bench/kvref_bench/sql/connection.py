"""Connections with their prepared statements, logged in by PyMySQL and then bare sockets.

MySQL counts the handles of statements from 1 in each connection. MariaDB goes on counting where it uses the state of an
ended connection again (10.11: seen with `thread_cache_size` above 0), and a proxy counts as it likes.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from pymysql.constants import CLIENT

from kvref.errors import cause_of
from kvref_bench.errors import BenchError
from kvref_bench.sql.packets import ERROR, HEADER, PREPARE, Reply, failure, framed, packet, packets, reply

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence

    from kvref_bench.load.records import Parts
    from kvref_bench.sql.login import Login
    from kvref_bench.sql.packets import Statement
    from kvref_bench.workload.commands import Kinds

# Affected are the rows that were found, changed or not; a procedure may answer with rows.
FLAGS: Final = CLIENT.FOUND_ROWS | CLIENT.PS_MULTI_RESULTS
STEP_SECONDS: Final = 30.0
RECEIVED: Final = 1 << 16
# Where a COM_STMT_EXECUTE has the handle.
BEFORE: Final = HEADER + 1
AFTER: Final = BEFORE + 4


def take_over(login: Login, database: str) -> socket.socket:
    """Log in and keep only the socket.

    Raises:
        BenchError: the server is not reached, or refuses.
    """
    # Names of PyMySQL's own; there is no other way to its socket.
    connection: Any = login.connect(database, FLAGS)
    taken: socket.socket = connection._sock
    connection._rfile.close()
    # Else it is closed with the connection.
    connection._sock = connection._rfile = None
    taken.settimeout(STEP_SECONDS)
    return taken


def prepare(to: socket.socket, statements: Sequence[Statement]) -> tuple[int, ...]:
    """Prepare the statements and give their handles.

    Raises:
        BenchError: the server refuses one; the text has the statement and the server's words.
    """
    return tuple(_prepare(to, each) for each in statements)


def execute(to: socket.socket, request: bytes) -> tuple[bytes, Reply]:
    """Execute one statement and give the bytes that came, and what they say."""
    to.sendall(request)
    data = b""
    while (answered := reply(data)) is None:
        data += _received(to)
    return data, answered


def _prepare(to: socket.socket, statement: Statement) -> int:
    to.sendall(framed(bytes([PREPARE]) + statement.sql.encode()))
    data = b""
    while (head := packet(data, 0)) is None:
        data += _received(to)
    if head.payload[0] == ERROR:
        number, words = failure(head.payload)
        raise BenchError(f"the server refuses the statement for {statement.verb}, {statement.sql!r}: {number} {words}")
    handle, columns, parameters = (
        int.from_bytes(head.payload[start:end], "little") for start, end in ((1, 5), (5, 7), (7, 9))
    )
    # Each of the two lists ends with an EOF packet.
    left = sum(count + 1 for count in (columns, parameters) if count)
    while sum(1 for _ in packets(data)) <= left:
        data += _received(to)
    return handle


def _received(to: socket.socket) -> bytes:
    try:
        data = to.recv(RECEIVED)
    except OSError as error:
        raise BenchError(f"the SQL server did not answer a prepared statement: {cause_of(error)}") from error
    if not data:
        raise BenchError("the SQL server closed the connection; look into its log")
    return data


class Connections:
    """The connections of one worker; the one opened first is that of session 0.

    connect: logs in. usual: the handles that exchanges are encoded with.
    """

    def __init__(
        self, connect: Callable[[], socket.socket], statements: Sequence[Statement], usual: Sequence[int], kinds: Kinds
    ) -> None:
        self._connect = connect
        self._statements = statements
        self._usual = tuple(usual)
        self._verbs = [each.verb for each in kinds.all]
        self._given: list[tuple[int, ...]] = []

    def open(self) -> socket.socket:
        """Open the next session and prepare the statements. Raises BenchError."""
        opened = self._connect()
        try:
            self._given.append(prepare(opened, self._statements))
        except BaseException:
            opened.close()
            raise
        return opened

    def numbered(self, session: int, exchanges: Iterator[Parts]) -> Iterator[Parts]:
        """Return the exchanges of a session with the handles of its connection, once that is open."""
        # Chained, so that exchanges that are right as they are pass no line of Python.
        return chain.from_iterable(self._numbered(session, exchanges))

    def _numbered(self, session: int, exchanges: Iterator[Parts]) -> Iterator[Iterator[Parts]]:
        given = self._given[session] if session < len(self._given) else self._usual
        if given == self._usual:
            yield exchanges
            return
        handles = {
            each.verb: handle.to_bytes(4, "little") for each, handle in zip(self._statements, given, strict=True)
        }
        yield map(partial(_with_handles, [handles[verb] for verb in self._verbs]), exchanges)


def _with_handles(handles: list[bytes], exchange: Parts) -> Parts:
    request, reply, kinds = exchange
    if len(kinds) == 1:
        return request[:BEFORE] + handles[kinds[0]] + request[AFTER:], reply, kinds
    parts, place = [], 0
    for kind in kinds:
        end = place + HEADER + int.from_bytes(request[place : place + 3], "little")
        parts += [request[place : place + BEFORE], handles[kind], request[place + AFTER : end]]
        place = end
    return b"".join(parts), reply, kinds
