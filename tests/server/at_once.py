"""Many clients whose requests reach kvref in one tick: it is stopped while they send."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from helpers.database import sql
from helpers.serving import Served, running
from helpers.waiting import until

from kvref_testbed.targets import SQLServer

_WHOLE = re.compile(rb"(?:VALUE [^\r]*\r\n.*)?END\r\n|(?!VALUE)[^\r]*\r\n", re.DOTALL)


# Nothing is batched after a pause, before the mapped tables are read again: here no pause is long enough. A table that
# was locked once is not tried again by a group.
WITHOUT_PAUSES = """
from kvref.server.executors.mysql import executor, planned
executor.SCHEMA_CHECK_INTERVAL = executor.MAX_SCHEMA_AGE = planned.BACK_OFF = 3600.0
from kvref.cli import main
main()
"""


@contextmanager
def serving_without_pauses(database: SQLServer, *options: str, changed: str = "") -> Iterator[Served]:
    """Serve a database such that commands are batched however long a busy machine takes between two of them.

    Args:
        changed: statements that change the server before it starts.
    """
    words = [
        sys.executable,
        "-c",
        changed + WITHOUT_PAUSES,
        "serve",
        "--store",
        database.dsn,
        "--listen",
        "127.0.0.1:0",
        *options,
    ]
    with running(words, database.dsn) as served:
        yield served


class Crowd:
    """So many connections to one server."""

    def __init__(self, served: Served, clients: int) -> None:
        self._served = served
        self._stack = ExitStack()
        self.clients = [self._stack.enter_context(served.connect()) for _ in range(clients)]
        for each in self.clients:
            each.sendall(b"version\r\n")  # accepted, and all its first costs paid
            answer(each)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def send(self, requests: Sequence[bytes]) -> None:
        """Send one request on each of the first connections; kvref sees all of them at once."""
        os.kill(self._served.process.pid, signal.SIGSTOP)
        try:
            until(self._is_stopped)
            for client, request in zip(self.clients, requests, strict=False):
                client.sendall(request)
        finally:
            os.kill(self._served.process.pid, signal.SIGCONT)

    def _is_stopped(self) -> bool:
        return Path(f"/proc/{self._served.process.pid}/stat").read_text().rpartition(") ")[2][0] == "T"

    def bind(self, name: str) -> None:
        """Bind every client to a mapping, so that its next commands are planned."""
        self.ask([f"bind {name}\r\n".encode()] * len(self.clients))
        self.ask([b"get nothing\r\n"] * len(self.clients))

    def ask(self, requests: Sequence[bytes]) -> list[bytes]:
        """Send, and return the replies in order."""
        assert len(requests) <= len(self.clients)
        self.send(requests)
        return [answer(client) for client in self.clients[: len(requests)]]


def answer(client: socket.socket) -> bytes:
    """Return one whole reply."""
    reply = b""
    while not _WHOLE.fullmatch(reply):
        chunk = client.recv(65536)
        assert chunk, f"the connection was closed behind {reply!r}"
        reply += chunk
    return reply


def put(key: str, value: str = "x", verb: str = "set") -> bytes:
    return f"{verb} {key} 0 0 {len(value)}\r\n{value}\r\n".encode()


def got(key: str, value: str = "x") -> bytes:
    return f"VALUE {key} 0 {len(value)}\r\n{value}\r\nEND\r\n".encode()


def common_statements(database: SQLServer) -> list[tuple[str, int]]:
    """Return the logged statements of several keys, each with the number of its keys, and end the log."""
    sql(database, "SET GLOBAL general_log = OFF")
    logged = sql(
        database, "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE argument LIKE '%% IN (%%'"
    )
    sql(database, "TRUNCATE TABLE mysql.general_log")
    texts = [text for (text,) in logged if "general_log" not in text]
    return [(text.split()[0], text.partition(" IN (")[2].count("X'")) for text in texts]
