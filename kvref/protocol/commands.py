"""Client commands, one record for each shape of request. Keys are the client's words, uninterpreted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from typing import Any, Final


class Right(Flag):
    """What a listener can withhold from its connections."""

    WRITE = auto()  # change rows, or what other connections see
    FLUSH = auto()  # empty a table
    ALL_MAPPINGS = auto()  # learn of rows of every mapping
    LIST_KEYS = auto()  # learn all keys of a table
    LIST_CLIENTS = auto()  # learn who is connected


NO_RIGHT: Final = Right(0)
EVERY_RIGHT: Final = Right.WRITE | Right.FLUSH | Right.ALL_MAPPINGS | Right.LIST_KEYS | Right.LIST_CLIENTS


@dataclass(slots=True)
class Frame:
    """What the reply to a binary request repeats of it.

    Args:
        opcode: 0 to 255.
        opaque: the client's four bytes.
        key: the client's word, up to MAX_KEY bytes.
        quiet: a success, or the miss of a get, is not answered.
        with_key: the reply to a get bears the key.
    """

    opcode: int
    opaque: bytes
    key: bytes = b""
    quiet: bool = False
    with_key: bool = False


@dataclass(slots=True)
class _Request:
    frame: Frame | None = field(default=None, kw_only=True)  # None: a text command


@dataclass(slots=True)
class Get(_Request):
    """Retrieve by words.

    Args:
        refused: a word after these was too long, so that the reply is an error; `@@` in these words still switches.
        more: the line ends as if more words followed, and none do.
    """

    words: list[bytes]
    with_cas: bool
    refused: bool = False
    more: bool = False


@dataclass(slots=True)
class Store(_Request):
    """Write one item; verb is set, add, replace, append, prepend or cas. `exptime` is the client's number.

    append and prepend have a cas number only in the binary protocol; 0 is none.
    """

    verb: str
    word: bytes
    flags: int
    exptime: int
    data: bytes
    cas: int = 0
    noreply: bool = False


@dataclass(slots=True)
class Arithmetic(_Request):
    """Add to or subtract from a number; `delta` is 0 to 2^64-1.

    What only the binary protocol has: `initial` is stored with `exptime` where no row is found (None: nothing is), and
    the row must have the number `cas`, unless that is 0.
    """

    increment: bool
    word: bytes
    delta: int
    noreply: bool = False
    initial: int | None = None
    exptime: int = 0
    cas: int = 0


@dataclass(slots=True)
class Delete(_Request):
    """Remove one item; in the binary protocol only one with the number `cas`, unless that is 0."""

    word: bytes
    noreply: bool = False
    cas: int = 0


@dataclass(slots=True)
class Touch(_Request):
    """Give one item another time; `exptime` is the client's number."""

    word: bytes
    exptime: int
    noreply: bool = False


@dataclass(slots=True)
class GetAndTouch(_Request):
    """Retrieve by words and give what is found another time."""

    words: list[bytes]
    exptime: int
    with_cas: bool


@dataclass(slots=True)
class MetaRequest(_Request):
    """What all meta commands about an item have.

    Args:
        word: the client's word, decoded where it came in base64.
        options: the flags as sent, in their order: what the reply answers or repeats.
    """

    word: bytes
    options: list[bytes]

    def has(self, letter: bytes) -> bool:
        return letter in [option[:1] for option in self.options]

    def precedes(self, letter: bytes, *others: bytes) -> bool:
        """Return whether this flag precedes the first of the others: memcached handles flags in order."""
        return next((option[:1] == letter for option in self.options if option[:1] in {letter, *others}), False)


@dataclass(slots=True)
class MetaGet(MetaRequest):
    """mg; numbers as sent, None where the flag is not there.

    Args:
        exptime: T, another time for the item.
        vivify: N, the time of an item without a value, to be stored where there is none.
        recache: R, the time from which an item is old.
    """

    exptime: int | None = None
    vivify: int | None = None
    recache: int | None = None

    @property
    def shows_access(self) -> bool:
        """Return whether the reply shows when the item was last accessed, or whether it was read."""
        return self.has(b"h") or self.has(b"l")


@dataclass(slots=True)
class MetaSet(MetaRequest):
    """ms.

    Args:
        verb: set, add, replace, append, prepend or cas.
        flags: F.
        exptime: T.
        cas: C, 0 where it is not there.
        stale: I: where the number is an older one the item is stored as a stale one.
    """

    verb: str = "set"
    flags: int = 0
    exptime: int = 0
    cas: int = 0
    stale: bool = False
    data: bytes = b""

    @property
    def noreply(self) -> bool:
        """Return False: which replies q leaves out is not a matter of the parser."""
        return False


@dataclass(slots=True)
class MetaDelete(MetaRequest):
    """md.

    Args:
        cas: C; None where it is not there.
        exptime: T, with `stale` only.
        stale: I: the item is marked instead, and has another number.
    """

    cas: int | None = None
    exptime: int | None = None
    stale: bool = False


_SHOWING: Final = {b"t", b"c"}  # flags of `ma` whose reply shows more of the item than its number


@dataclass(slots=True)
class MetaArithmetic(MetaRequest):
    """ma.

    Args:
        increment: M.
        delta: D.
        initial: J, the number to be stored where there is no item; None without N.
        vivify: N, its time.
        cas: C; 0 is any.
        exptime: T, another time for the item.
    """

    increment: bool = True
    delta: int = 1
    initial: int | None = None
    vivify: int = 0
    cas: int = 0
    exptime: int | None = None

    @property
    def shows_item(self) -> bool:
        """Return whether the reply shows more of the item than its number, or the item gets another time."""
        return self.exptime is not None or not _SHOWING.isdisjoint([option[:1] for option in self.options])


@dataclass(slots=True)
class MetaDebug(MetaRequest):
    """me."""


@dataclass(slots=True)
class MetaNoop(_Request):
    """mn."""


@dataclass(slots=True)
class FlushAll(_Request):
    """Empty the bound table; `delay` in seconds as the client wrote it."""

    delay: int = 0
    noreply: bool = False


@dataclass(slots=True)
class Bind(_Request):
    """Bind the connection to a mapping by its bare name."""

    name: bytes


@dataclass(slots=True)
class Stats(_Request):
    """Report counters; `words` are what followed `stats`."""

    words: list[bytes]


@dataclass(slots=True)
class Version(_Request):
    """Report the release."""


@dataclass(slots=True)
class Verbosity(_Request):
    """Set the level that `stats settings` shows; it has no other effect."""

    level: int
    noreply: bool = False


@dataclass(slots=True)
class CacheMemlimit(_Request):
    """Accept a limit of the memory for items, which has no effect: no item is kept in memory."""

    noreply: bool = False


class Crawled(Enum):
    """The items that an `lru_crawler` command covers."""

    ALL = auto()
    CLASSES = auto()  # those of slab classes
    NOTHING = auto()  # an empty list of classes
    UNKNOWN = auto()  # there is no such class


@dataclass(slots=True)
class KeyDump(_Request):
    """List all keys (`lru_crawler metadump`), from the cursor of the part before; None: from the beginning."""

    items: Crawled
    cursor: Any = None


@dataclass(slots=True)
class Crawl(_Request):
    """Look for expired items."""

    items: Crawled


@dataclass(slots=True)
class SwitchCrawler(_Request):
    """Enable or disable `lru_crawler`, for all connections."""

    enabled: bool


@dataclass(slots=True)
class TuneCrawler(_Request):
    """Accept a pace of `lru_crawler`, which has no effect."""


@dataclass(slots=True)
class VBucket(_Request):
    """Set, get or delete the state of a vbucket, by `verb`; `state` is what it is set to."""

    verb: str
    word: bytes
    state: bytes = b""


@dataclass(slots=True)
class Noop(_Request):
    """Answer and do nothing."""


@dataclass(slots=True)
class Quit(_Request):
    """Close the connection; only a binary `quit` is answered before."""


@dataclass(slots=True)
class Foreign(_Request):
    """A request of another protocol, by its name; the connection is closed, with what `foreign.farewell` returns."""

    protocol: str


@dataclass(slots=True)
class Refused(_Request):
    """What the grammar itself answers.

    Args:
        line: the reply without CR LF; in the binary protocol its text.
        removes: a key whose row goes all the same.
        status: of a binary reply.
        too_large: a value of the text protocol is too large.
    """

    line: bytes
    noreply: bool = False
    removes: bytes = b""
    status: int = 0
    too_large: bool = False


Command = (
    Get
    | Store
    | Arithmetic
    | Delete
    | Touch
    | GetAndTouch
    | MetaGet
    | MetaSet
    | MetaDelete
    | MetaArithmetic
    | MetaDebug
    | MetaNoop
    | FlushAll
    | Bind
    | Stats
    | Version
    | Verbosity
    | CacheMemlimit
    | KeyDump
    | Crawl
    | SwitchCrawler
    | TuneCrawler
    | VBucket
    | Noop
    | Quit
    | Foreign
    | Refused
)
