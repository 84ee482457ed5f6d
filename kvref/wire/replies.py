"""What a server can answer, without the protocol's spelling."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """Answers of one fixed line; the value is that line in the text protocol."""

    STORED = b"STORED\r\n"
    NOT_STORED = b"NOT_STORED\r\n"
    EXISTS = b"EXISTS\r\n"
    NOT_FOUND = b"NOT_FOUND\r\n"
    DELETED = b"DELETED\r\n"
    TOUCHED = b"TOUCHED\r\n"
    OK = b"OK\r\n"
    SUCCEED = b"SUCCEED\r\n"
    RESET = b"RESET\r\n"
    ERROR = b"ERROR\r\n"


@dataclass(slots=True)
class Item:
    """One hit of a get: the word as the client sent it, flags 0 to 2^32-1, the bytes, the cas number."""

    word: bytes
    flags: int
    data: bytes
    cas: int

    @property
    def size(self) -> int:
        """Return about how many bytes it takes in a reply."""
        return len(self.word) + len(self.data) + 32


@dataclass(slots=True)
class Items:
    """The hits of one get, in the order asked."""

    items: list[Item]
    with_cas: bool


@dataclass(slots=True)
class Number:
    """The result of incr or decr."""

    value: int


@dataclass(slots=True)
class ClientError:
    """The request cannot be carried out as sent; `text` names the value and the fix."""

    text: str


@dataclass(slots=True)
class ServerError:
    """The server or its database failed; `text` names the cause."""

    text: str


@dataclass(slots=True)
class StatRows:
    """Rows of `stats`."""

    rows: list[tuple[str, str]]


@dataclass(slots=True)
class Release:
    """The answer to `version`."""

    text: str


@dataclass(slots=True)
class Line:
    """A reply line that the grammar chose, without CR LF."""

    line: bytes


@dataclass(slots=True)
class Closed:
    """No answer: the connection ends."""


Reply = Status | Items | Number | ClientError | ServerError | StatRows | Release | Line | Closed
