"""A server between the judge and memcached that carries out nothing of one verb, and answers as if it had.

A request of the faked verb runs on a copy of its item, so that the answer is right and the item stays as it is; or, where
only its time is faked, without its time. Verbs of features that it is without are answered ERROR, and the binary protocol
by closing the connection.
"""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from kvref_conformance.endpoints.probe import STORES, WORDS

COPY: Final = b"copy-"
END: Final = b"NF Oend\r\n"
# The place of a verb's first key among its words.
KEYS: Final = {b"gat": 2, b"gats": 2}
# A request with a time in seconds.
TIMED: Final = re.compile(rb"((?:flush_all|[a-z]+ \S+ \d+) )[1-9]\d*\b")


class Connection:
    """A connection to the server that carries commands out.

    Args:
        address: of it.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address)
        self._file: BinaryIO = self._socket.makefile("rb")

    def ask(self, request: bytes) -> bytes:
        """Return everything that is answered to a request."""
        self._socket.sendall(request + b"md kvref-no-such-key Oend\r\n")
        got = b""
        while True:
            line = self._file.readline()
            if not line or line == END:
                return got
            got += line
            if found := re.match(rb"(?:VALUE \S+ \d+|VA) (\d+)", line):
                got += self._file.read(int(found[1]) + 2)

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._socket.close()


class Fake:
    """Answers of one connection.

    Args:
        server: that carries commands out.
        verb: the faked one.
        without: features whose verbs are refused.
        timeless: only the time of the verb has no effect.
    """

    def __init__(self, server: Connection, verb: str, without: frozenset[str], *, timeless: bool) -> None:
        self._server = server
        self._verb = verb.encode()
        self._without = without
        self._timeless = timeless

    def answer(self, request: bytes) -> bytes:
        """Return the answer to a request, its data included."""
        verb, *words = request.partition(b"\r\n")[0].split() or [b""]
        if WORDS.get(verb.decode("latin-1")) in self._without:
            return b"ERROR\r\n"
        if verb != self._verb or (self._timeless and not TIMED.match(request)):
            return self._server.ask(request)
        if self._timeless and verb != b"flush_all":
            return self._server.ask(TIMED.sub(rb"\g<1>0", request, count=1))
        if verb == b"flush_all":
            return b"" if b"noreply" in words else b"OK\r\n"
        place = KEYS.get(verb, 1)
        if len(words) < place:
            return self._server.ask(request)
        return self._of_a_copy(request, words[place - 1])

    def _of_a_copy(self, request: bytes, key: bytes) -> bytes:
        copy = (COPY + key)[-250:] if len(key) <= 250 else key
        item = re.match(
            rb"VALUE \S+ (\d+) (\d+) (\d+)\r\n(.*)\r\nEND", self._server.ask(b"gets %s\r\n" % key), re.DOTALL
        )
        self._server.ask(b"delete %s\r\n" % copy)
        sent = request.replace(b" " + key, b" " + copy, 1)
        if item is not None:
            self._server.ask(b"set %s %s 0 %s\r\n%s\r\n" % (copy, item[1], item[2], item[4]))
            stored = re.search(rb" (\d+)\r\n", self._server.ask(b"gets %s\r\n" % copy))
            assert stored is not None, "the copy was not stored"
            sent = re.sub(rb"(?<=[ C])%s\b" % item[3], stored[1], sent)
        answer = self._server.ask(sent)
        self._server.ask(b"delete %s\r\n" % copy)
        return answer.replace(copy, key)


class _Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        """Read requests until the other side closes."""
        upstream = Connection(self.server.behind)
        fake = Fake(upstream, self.server.verb, self.server.without, timeless=self.server.timeless)
        try:
            while line := self.rfile.readline():
                if line.startswith((b"\x80", b"quit")):
                    return
                self.wfile.write(fake.answer(line + self._data(line)))
        finally:
            upstream.close()

    def _data(self, line: bytes) -> bytes:
        words = line.split()
        place = 2 if words[:1] == [b"ms"] else 4
        if not words or words[0].decode("latin-1") not in STORES or len(words) <= place or not words[place].isdigit():
            return b""
        return self.rfile.read(int(words[place]) + 2)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, behind: tuple[str, int], verb: str, without: frozenset[str], *, timeless: bool) -> None:
        self.behind, self.verb, self.without, self.timeless = behind, verb, without, timeless
        super().__init__(("127.0.0.1", 0), _Handler)


@contextmanager
def faking(behind: str, verb: str, without: frozenset[str], *, timeless: bool = False) -> Iterator[str]:
    """Serve with one verb faked; give the address.

    Args:
        behind: HOST:PORT of the memcached that carries the other verbs out.
        verb: the faked one; empty for none.
        without: features, as the probe names them, whose verbs are refused.
        timeless: the verb is carried out without its time; `flush_all` with a delay is not carried out.
    """
    host, _, port = behind.rpartition(":")
    with _Server((host, int(port)), verb, without, timeless=timeless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
