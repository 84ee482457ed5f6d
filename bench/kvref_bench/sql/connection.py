"""A connection with its prepared statements, logged in by PyMySQL and then a bare socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pymysql.constants import CLIENT

from kvref.errors import cause_of
from kvref_bench.errors import BenchError
from kvref_bench.sql.packets import ERROR, PREPARE, QUERY, Reply, failure, framed, packet, reply

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from kvref_bench.sql.login import Login
    from kvref_bench.sql.statement import Statement

# Affected are the rows that were found, changed or not; a procedure may answer with rows.
FLAGS: Final = CLIENT.FOUND_ROWS | CLIENT.PS_MULTI_RESULTS
STEP_SECONDS: Final = 30.0
RECEIVED: Final = 1 << 16


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
    while (said := reply(data)) is None:
        data += _received(to)
    return data, said


def query(to: socket.socket, sql: bytes) -> None:
    """Run a statement without rows that is not prepared. Raises BenchError where it fails."""
    _, said = execute(to, framed(bytes([QUERY]) + sql))
    if said.error is not None:
        raise BenchError(f"the SQL server answers {sql.decode()!r} with {said.error[0]} {said.error[1]}")


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
    place = head.end
    while left:
        following = packet(data, place)
        if following is None:
            data += _received(to)
        else:
            place, left = following.end, left - 1
    return handle


def _received(to: socket.socket) -> bytes:
    try:
        data = to.recv(RECEIVED)
    except OSError as error:
        raise BenchError(f"the SQL server did not answer a prepared statement: {cause_of(error)}") from error
    if not data:
        raise BenchError("the SQL server closed the connection; look into its log")
    return data
