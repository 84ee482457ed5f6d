"""One connection to MariaDB's HandlerSocket: it blocks, and is used in a thread.

While it has an index open, the server lets no session alter, truncate, lock or drop that table (observed on 10.11).
Close it soon, see `reads.py`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Final

from kvref.storage.mysql.handlersocket import protocol
from kvref.storage.mysql.handlersocket.protocol import HandlerError, RefusedError, RefusedNameError
from kvref.storage.mysql.login import SECRET, Login

LOOPBACK: Final = "127.0.0.1"
_CHUNK: Final = 1 << 18


class HandlerLink:
    """An authorised connection.

    Args:
        login: where the server is.
        patience: timeout of a reply in seconds.

    Raises:
        HandlerError: the port is not reachable or the server does not reply.
        RefusedError: the secret is wrong.
    """

    def __init__(self, login: Login, patience: float) -> None:
        address = login.host or LOOPBACK, login.handlersocket
        self._where = f"HandlerSocket at {address[0]}:{address[1]}"
        try:
            self._socket = socket.create_connection(address, patience)
        except OSError as error:
            raise HandlerError(f"{self._where}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opened = 0
        try:
            self._do(protocol.authorisation(login.secret))
        except RefusedError as error:
            self.close()
            fix = f"put the server's handlersocket_plain_secret into {SECRET}, or into handlersocket_secret_file=PATH"
            raise RefusedError(f"{self._where} refuses the secret ({error}): {fix}") from error
        except BaseException:
            self.close()
            raise

    def open(self, names: Sequence[str], columns: Iterable[str]) -> int:
        """Open an index; returns its number.

        Args:
            names: of the schema, the table and the index.
            columns: whose cells each row has.

        Raises:
            HandlerError: no answer.
            RefusedNameError: no such table, index or column.
        """
        line = protocol.opening(self._opened, names, columns)
        try:
            self._do(line)
        except RefusedError as error:
            raise RefusedNameError(f"{self._where} does not open {names}: {error}") from error
        self._opened += 1
        return self._opened - 1

    def look_up(self, number: int, keys: Sequence[bytes], width: int) -> list[list[protocol.Field] | None]:
        """Return the row of each key, None where there is none.

        Args:
            number: of the index.
            keys: at least one, see `handlersocket.questions`.
            width: number of requested columns.

        Raises:
            HandlerError: no answer.
            RefusedError: the server cannot read.
        """
        replies = self._ask(protocol.questions(number, keys), len(keys))
        head = protocol.no_row(width)
        try:
            return [protocol.row(each, head, width) for each in replies]
        except RefusedError as error:
            raise RefusedError(f"{self._where}: {error}") from error

    def close(self) -> None:
        """Close it, and with it all tables."""
        self._socket.close()

    def _do(self, line: bytes) -> None:
        (reply,) = self._ask(line, 1)
        protocol.done(reply)

    def _ask(self, lines: bytes, count: int) -> list[bytes]:
        chunks: list[bytes] = []
        missing = count
        try:
            self._socket.sendall(lines)
            while missing > 0:
                chunk = self._socket.recv(_CHUNK)
                if not chunk:
                    raise HandlerError(f"{self._where} closed the connection")
                chunks.append(chunk)
                missing -= chunk.count(b"\n")
        except OSError as error:
            raise HandlerError(f"{self._where}: {error}") from error
        replies = b"".join(chunks).split(b"\n")
        if missing < 0 or replies.pop():
            raise HandlerError(f"{self._where} sent more replies than requests")
        return replies
