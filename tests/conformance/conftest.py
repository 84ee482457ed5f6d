"""Fixtures of the judge's own tests: an endpoint with scripted replies, and commands in a folder."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.commands import kvref
from helpers.faulty import Kvref
from helpers.live import target_or_skip

VERSION = b"VERSION 9.9.9\r\n"


class Scripted:
    """A server that answers whole lines from a table, `version` and unknown lines like memcached.

    Args:
        answers: reply by line, without the line end; b"<close>" closes, b"" sends no reply.
        version: its VERSION line.
        pause: seconds before each reply, so that replies arrive separately.
    """

    def __init__(self, answers: dict[bytes, bytes], version: bytes = VERSION, pause: float = 0.0) -> None:
        self._pause = pause
        self.answers = {b"version": version, **answers}
        self.lines: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._connections: list[socket.socket] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def where(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def close(self) -> None:
        self._end(self._listener)
        self._acceptor.join()  # no connection comes after this
        for each in self._connections:
            self._end(each)

    @staticmethod
    def _end(each: socket.socket) -> None:
        with contextlib.suppress(OSError):  # already closed by its own thread
            each.shutdown(socket.SHUT_RDWR)
        each.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed by the test
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        waiting = b""
        while True:
            try:
                received = connection.recv(4096)
            except OSError:  # closed by the test
                return
            if not received:
                connection.close()
                return
            *lines, waiting = (waiting + received).split(b"\r\n")
            for line in lines:
                self.lines.append(line)
                reply = self.answers.get(line, b"ERROR\r\n")
                if reply == b"<close>":
                    connection.close()
                    return
                time.sleep(self._pause)  # as slow as the test says
                try:
                    connection.sendall(reply)
                except OSError:  # closed by the judge, in the middle of a long reply
                    return


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    """Return a maker of scripted endpoints: scripted({b"get a": b"END\\r\\n"})."""
    made: list[Scripted] = []

    def make(answers: dict[bytes, bytes] | None = None, version: bytes = VERSION, pause: float = 0.0) -> Scripted:
        made.append(Scripted(answers or {}, version, pause))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def memcached() -> Iterator[str]:
    """Return the address of a native memcached."""
    with target_or_skip("memcached") as target:
        yield target.address


@pytest.fixture
def unused_port() -> int:
    """Return a port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def in_folder(tmp_path: Path) -> Kvref:
    """Return a function that runs a command of kvref in an empty directory, its report in `out`."""

    def run(*arguments: str, command: str = "conform") -> subprocess.CompletedProcess[str]:
        report = ["--report", "out"] if command == "conform" else []
        return kvref(command, *arguments, *report, folder=tmp_path, timeout=280)

    return run
