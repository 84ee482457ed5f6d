"""Steps in which time passes: a request that waits, an answer no later than, connections that end in several ways."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from kvref.specification.deviations import Deviations
from kvref_conformance.case import await_reply, case, eventually, send, start_request
from kvref_conformance.endpoints import endpoint
from kvref_conformance.judging.judge import Judge
from kvref_conformance.judging.verdict import FAILS, HOLDS, Verdict

VERSION = b"VERSION 9.9.9\r\n"
# How a connection ended, as its server sees it.
END_OF_FILE, RESET = "end of file", "reset"


class Slow:
    """A server that answers `wait` after a client sent `free`, counts at `count`, and records how connections end.

    Behind the answer to `wait and leave` it closes the connection.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.where = "{}:{}".format(*self._listener.getsockname())
        self.free = threading.Event()
        self.ended: list[str] = []
        self._numbers = itertools.count()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.free.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed by the test
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            try:
                for line in lines:
                    connection.sendall(self._answer(line))
                    if line == b"wait and leave\r\n":
                        return
            except ConnectionError:
                self.ended.append(RESET)
            else:
                self.ended.append(END_OF_FILE)

    def _answer(self, line: bytes) -> bytes:
        if line in (b"wait\r\n", b"wait and leave\r\n"):
            self.free.wait(10)
            return b"DONE\r\n"
        if line == b"free\r\n":
            self.free.set()
            return b"OK\r\n"
        if line == b"count\r\n":
            return b"%d\r\n" % next(self._numbers)
        return VERSION


@pytest.fixture
def slow() -> Iterator[Slow]:
    """Return such a server."""
    server = Slow()
    yield server
    server.close()


@pytest.fixture
def judged(slow: Slow) -> Callable[..., Verdict]:
    """Return a function that judges steps against it."""

    def judge(*steps: object) -> Verdict:
        one = case("one", "KV-CORE-041", *steps)  # type: ignore[arg-type]
        return Judge(endpoint.find(slow.where, "memcached"), Deviations(()), None, "", "zz").judge(one, "locks")

    return judge


def test_what_waits_is_answered_when_somebody_frees_it(judged: Callable[..., Verdict]) -> None:
    steps = start_request("wait\r\n", "a"), send("free\r\n", "OK\r\n", on="b"), await_reply("DONE\r\n", "a")
    assert judged(*steps).verdict == HOLDS


def test_what_should_wait_and_does_not_fails(judged: Callable[..., Verdict]) -> None:
    verdict = judged(send("free\r\n", "OK\r\n", on="b"), start_request("wait\r\n", "a"))
    assert verdict.verdict == FAILS
    assert "(it should wait)" in verdict.text


def test_an_endpoint_that_closes_the_connection_behind_the_wait_fails(judged: Callable[..., Verdict]) -> None:
    steps = start_request("wait and leave\r\n", "a"), send("free\r\n", "OK\r\n", on="b"), await_reply("DONE\r\n", "a")
    assert "(the endpoint closed the connection)" in judged(*steps).text


def test_a_step_is_repeated_until_it_gets_what_it_wants(judged: Callable[..., Verdict]) -> None:
    verdict = judged(eventually(send("count\r\n", "3\r\n")))
    assert verdict.verdict == HOLDS
    assert [exchange.got for exchange in verdict.conversation] == ["3\r\n"]
