"""The text protocol for both clients: the first requests, and parsed replies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvref.client.errors import (
    CallError,
    MappedError,
    UnknownMappingError,
    UnsupportedError,
    invalid_reply,
    reply_error,
)

_KVREF_SUFFIX: Final = "-kvref"


def check_ranges(version: str) -> None:
    """Raise UnsupportedError for a server that reads a range as a key.

    The plugin has ranges from MySQL 5.7.3 on. kvref's version ends in `-kvref`, or is that of its profile.
    """
    if version.endswith(_KVREF_SUFFIX):
        return
    numbers = tuple(int(each) for each in re.findall(r"\d+", version)[:3])
    if numbers < (5, 7, 3):
        raise UnsupportedError(f"server version {version} has no ranges: the plugin has them from MySQL 5.7.3 on")


_MAX_CREDENTIALS: Final = 2048  # bytes of both, as servers take them
_AUTHENTICATE: Final = "authenticate"
_BIND: Final = "bind"


class Handshake(NamedTuple):
    """The first requests of a connection: authentication if there is a user, and `bind` if there is a mapping."""

    mapping: str | None = None
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Handshake(mapping={self.mapping!r}, user={self.user!r})"

    def requests(self) -> Iterator[tuple[str, bytes]]:
        """Yield verb and bytes of each request."""
        if self.user:
            token = f"{self.user} {self.password}".encode("utf-8", "surrogateescape")
            yield _AUTHENTICATE, b"set auth 0 0 %d\r\n%s\r\n" % (len(token), token)
        if self.mapping is not None:
            yield _BIND, b"bind %s\r\n" % self.mapping.encode("utf-8", "surrogateescape")

    def reply_error(self, verb: str, line: bytes, server: str) -> MappedError | None:
        """Return the error of the reply to a request; None if the server accepted the request."""
        if line == {_AUTHENTICATE: b"STORED", _BIND: b"SUCCEED"}[verb]:
            return None
        if verb == _BIND and line == b"NOT_FOUND":
            return UnknownMappingError(f"{server} has no usable mapping {self.mapping!r} in containers")
        if verb == _BIND and line == b"ERROR":
            return UnsupportedError(f"{server} has no mappings")
        return reply_error(line, verb, server) or invalid_reply(line, verb)


def handshake(credentials: tuple[str, str] | None) -> Handshake:
    """Return the first requests of connections without a mapping.

    Raises:
        CallError: credentials that no server accepts; the text does not show the password.
    """
    if credentials is None:
        return Handshake()
    if not (
        isinstance(credentials, tuple | list)
        and len(credentials) == 2
        and all(isinstance(each, str) for each in credentials)
    ):
        raise CallError("credentials: a user and a password, both text")
    user, password = credentials
    try:
        both = f"{user} {password}".encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise CallError("credentials: a text that cannot be written in UTF-8") from None
    if not (user and password) or " " in user or "\n" in user or len(both) > _MAX_CREDENTIALS:
        raise CallError(
            f"credentials of {user!r}: a user without blanks and a password, {_MAX_CREDENTIALS} bytes at most"
        )
    return Handshake(None, user, password)


# A key of a range may be storage bytes, line ends included (KV-RANGE-017); flags and size end its line.
_HEAD: Final = re.compile(rb"VALUE (.{1,300}?) (\d{1,10}) (\d{1,20})(?: (\d{1,20}))?\r\n", re.DOTALL)
_MAX_LINE: Final = 8192
_OF_STATS: Final = (b"STAT ", b"ITEM ", b"PREFIX ")
_ERROR: Final = re.compile(rb"(?:ERROR|CLIENT_ERROR [^\n]*|SERVER_ERROR [^\n]*)\r\n")
# Limit of one answer with all its rows, in bytes.
MAX_ANSWER_BYTES: Final = 64 << 20


class Item(NamedTuple):
    """A row of an answer; `cas` is None if it was not requested."""

    key: bytes
    flags: int
    value: bytes
    cas: int | None


@dataclass(slots=True)
class Answer:
    """The last line of an answer (or all before another end of its `Shape`), rows of a get, and lines of `stats`."""

    line: bytes
    items: list[Item] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)


class Shape(NamedTuple):
    """The parts of an expected reply: whether rows or lines of `stats` precede its last line, and its end.

    An error line ends it too.
    """

    rows: bool = False
    lines: bool = False
    end: bytes = b"\r\n"


LINE: Final = Shape()
ROWS: Final = Shape(rows=True)
STATS: Final = Shape(lines=True)


class GarbledError(Exception):
    """The bytes are not a reply, and the start of the next reply is unknown."""


class Replies:
    """Split the bytes of one connection into answers of at most `max_answer` bytes with all their rows."""

    def __init__(self, max_answer: int = MAX_ANSWER_BYTES) -> None:
        self._max_answer = max_answer
        self._size = 0
        self._buffer = bytearray()
        self._at = 0
        self._items: list[Item] = []
        self._lines: list[bytes] = []

    @property
    def rest(self) -> bytes:
        """Return the bytes that are not part of an answer yet."""
        return bytes(self._buffer[self._at :])

    def feed(self, data: bytes) -> None:
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data

    def next_answer(self, shape: Shape = LINE) -> Answer | None:
        """Return the next answer, None while it is not complete.

        Raises:
            GarbledError: a row without its end, a line longer than any answer, or an answer beyond the limit.
        """
        while shape.rows and self._buffer.startswith(b"VALUE ", self._at):
            if not self._read_row():
                return None
        while shape.lines and self._buffer.startswith(_OF_STATS, self._at):
            if not self._read_line():
                return None
        token = b"\r\n" if shape.end != b"\r\n" and _ERROR.match(self._buffer, self._at) else shape.end
        end = self._buffer.find(token, self._at)
        if end < 0:
            self._check_length(_MAX_LINE if token == b"\r\n" else self._max_answer)
            return None
        answer = Answer(bytes(self._buffer[self._at : end]), self._items, self._lines)
        self._at = end + len(token)
        self._items, self._lines, self._size = [], [], 0
        return answer

    def _read_line(self) -> bool:
        end = self._buffer.find(b"\r\n", self._at)
        if end < 0:
            self._check_length()
            return False
        self._size += end + 2 - self._at
        if self._size > self._max_answer:
            raise GarbledError(f"the answer has more than {self._max_answer} bytes")
        self._lines.append(bytes(self._buffer[self._at : end]))
        self._at = end + 2
        return True

    def _read_row(self) -> bool:
        head = _HEAD.match(self._buffer, self._at)
        if head is None:
            self._check_length()
            return False
        end = head.end() + int(head[3])
        if self._size + end - self._at > self._max_answer:
            raise GarbledError(f"{bytes(head[0])!r}: the answer has more than {self._max_answer} bytes")
        if len(self._buffer) < end + 2:
            return False
        if self._buffer[end : end + 2] != b"\r\n":
            raise GarbledError(f"{bytes(head[0])!r}: no line end after {int(head[3])} bytes")
        number = None if head[4] is None else int(head[4])
        self._size += end + 2 - self._at
        self._items.append(Item(bytes(head[1]), int(head[2]), bytes(self._buffer[head.end() : end]), number))
        self._at = end + 2
        return True

    def _check_length(self, limit: int = _MAX_LINE) -> None:
        if len(self._buffer) - self._at > limit:
            raise GarbledError(f"{self.rest[:60]!r}: no end of the line in {limit} bytes")
