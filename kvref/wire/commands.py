"""What a client can ask, one record for each shape of request. Keys are the client's words, uninterpreted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Get:
    """Retrieve by words; `refused` when a later word of the line was too long (the earlier ones still switch)."""

    words: list[bytes]
    with_cas: bool
    refused: bool = False


@dataclass(slots=True)
class Store:
    """Write one item; verb is set, add, replace, append, prepend or cas. `exptime` is the client's number."""

    verb: str
    word: bytes
    flags: int
    exptime: int
    data: bytes
    cas: int = 0
    noreply: bool = False


@dataclass(slots=True)
class Arithmetic:
    """Add to or subtract from a number; `delta` is 0 to 2^64-1."""

    increment: bool
    word: bytes
    delta: int
    noreply: bool = False


@dataclass(slots=True)
class Delete:
    """Remove one item."""

    word: bytes
    noreply: bool = False


@dataclass(slots=True)
class Touch:
    """Give one item another time; `exptime` is the client's number."""

    word: bytes
    exptime: int
    noreply: bool = False


@dataclass(slots=True)
class GetAndTouch:
    """Retrieve by words and give what is found another time."""

    words: list[bytes]
    exptime: int
    with_cas: bool


@dataclass(slots=True)
class FlushAll:
    """Empty the bound table; `delay` in seconds as the client wrote it."""

    delay: int = 0
    noreply: bool = False


@dataclass(slots=True)
class Bind:
    """Bind the connection to a mapping by its bare name."""

    name: bytes


@dataclass(slots=True)
class Stats:
    """Report counters; `words` are what followed `stats`."""

    words: list[bytes]


@dataclass(slots=True)
class Version:
    """Report the release."""


@dataclass(slots=True)
class Verbosity:
    """Accept a log level, which has no effect."""

    noreply: bool = False


@dataclass(slots=True)
class Quit:
    """Close the connection without a word."""


@dataclass(slots=True)
class Refused:
    """A line that the grammar itself answers; `line` without CR LF, `removes` a key whose row goes all the same."""

    line: bytes
    noreply: bool = False
    removes: bytes = b""


Command = (
    Get
    | Store
    | Arithmetic
    | Delete
    | Touch
    | GetAndTouch
    | FlushAll
    | Bind
    | Stats
    | Version
    | Verbosity
    | Quit
    | Refused
)
