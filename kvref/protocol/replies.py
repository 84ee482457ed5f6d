"""What a server can answer, without the protocol's spelling."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvref.protocol.commands import KeyDump

ITEM_OVERHEAD: Final = 32  # bytes to count for an item in a reply, besides its word and its data


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
    NOOP = b"MN\r\n"
    RESET = b"RESET\r\n"
    ERROR = b"ERROR\r\n"


class MetaCode(Enum):
    """Outcomes of meta commands; the value is the word in front of the reply where it bears no data."""

    DONE = b"HD"
    MISSED = b"EN"
    NOT_STORED = b"NS"
    EXISTS = b"EX"
    NOT_FOUND = b"NF"


@dataclass(slots=True)
class Item:
    """One hit of a get: the word as the client sent it, flags 0 to 2^32-1, the bytes, the cas number."""

    word: bytes
    flags: int
    data: bytes
    cas: int

    @property
    def size(self) -> int:
        return len(self.word) + len(self.data) + ITEM_OVERHEAD


@dataclass(slots=True)
class Items:
    """The hits of one get, in the order of the request."""

    items: list[Item]
    with_cas: bool


@dataclass(slots=True)
class Number:
    """The result of incr or decr."""

    value: int


class Fault(Enum):
    """Why a command failed, where the binary protocol has a specific status for the reason."""

    NOT_A_NUMBER = auto()
    NOT_STORED = auto()
    NOT_FLUSHED = auto()
    TOO_LARGE = auto()
    OUT_OF_MEMORY = auto()
    UNFIT_TABLE = auto()  # the table no longer fits its mapping
    CONFLICT = auto()  # another transaction was in the way: the same request may succeed later


@dataclass(slots=True)
class ClientError:
    """The request cannot be carried out as sent; `text` names the value and the fix.

    Only `fault` decides the status of a binary reply: the text can be the database's, which any of its users can set.
    """

    text: str
    fault: Fault | None = None


@dataclass(slots=True)
class ServerError:
    """The server or its database failed; `text` names the cause, `fault` is as of `ClientError`."""

    text: str
    fault: Fault | None = None


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
class MetaItem:
    """Metadata of an item in a meta reply.

    Args:
        flags: 0 to 2^32-1.
        size: of its value in bytes.
        ttl: seconds left, -1 without an expiry time.
        earlier: seconds left before this command changed the expiry time.
        fetched: the item was read after it was written.
        idle: seconds since it was last accessed.
    """

    flags: int = 0
    size: int = 0
    cas: int = 0
    ttl: int = -1
    earlier: int = -1
    fetched: bool = False
    idle: int = 0


@dataclass(slots=True)
class Meta:
    """The reply to a meta command.

    Args:
        data: the value, None if it was not requested.
        stale: a client has marked the item as stale.
        won: this client is to recache the item.
        taken: another client is recaching the item.
    """

    code: MetaCode
    item: MetaItem = field(default_factory=MetaItem)
    data: bytes | None = None
    stale: bool = False
    won: bool = False
    taken: bool = False


@dataclass(slots=True)
class MetaDebug:
    """The rows of an `me` reply, in order; None if there is no item."""

    rows: list[tuple[str, str]] | None


@dataclass(slots=True)
class ListedKey:
    """An item in a listing of keys.

    Args:
        key: as clients send it.
        expiry: UNIX second from which it is expired; 0: never.
        size: bytes of key and value.
        accessed: UNIX second of the last access.
    """

    key: bytes
    expiry: int
    cas: int
    size: int
    accessed: int


@dataclass(slots=True)
class Keys:
    """A part of a listing of keys; `more` is the command that lists the rest, None: there is no more."""

    keys: list[ListedKey]
    more: KeyDump | None = None


@dataclass(slots=True)
class Closed:
    """The connection is closed; only a binary quit is answered."""


Reply = (
    Status | Items | Number | ClientError | ServerError | StatRows | Release | Line | Meta | MetaDebug | Keys | Closed
)
