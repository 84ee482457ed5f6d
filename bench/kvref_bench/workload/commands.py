"""memcached's commands and their outcomes, independent of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kvref_bench.load.records import Answer, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from kvref_bench.load.records import Exchange

GETTING: Final = ("get", "gets")
PIECE: Final = b"+"
"""What append and prepend add: values made by `workload.values` have none of it, so that they are still verified."""

OUTCOMES: Final[dict[str, tuple[str, ...]]] = {
    "get": ("hit", "miss"),
    "gets": ("hit", "miss"),
    "set": ("stored", "not_stored", "exists", "not_found"),
    "add": ("stored", "not_stored"),
    "replace": ("stored", "not_stored"),
    "append": ("stored", "not_stored"),
    "prepend": ("stored", "not_stored"),
    "incr": ("counted", "not_found"),
    "decr": ("counted", "not_found"),
    "delete": ("deleted", "not_found"),
    "touch": ("touched", "not_found"),
}
"""Outcomes of each verb other than an error."""


class Item(NamedTuple):
    """A key with its value.

    name: as it is sent, with the mapping in front where the route says so. there: in the table when the point begins.
    """

    name: bytes
    value: bytes
    there: bool


class Read(NamedTuple):
    """What a reply says.

    outcomes: of the operations that it answers. end: position after it. wrong: bytes that are not an allowed reply.
    """

    outcomes: tuple[str, ...]
    end: int
    wrong: tuple[bytes, ...] = ()


class Codec(Protocol):
    """One of memcached's protocols, or SQL."""

    @property
    def unpredictable(self) -> slice | None:
        """Return which bytes of a single reply are not compared with the expected one."""

    def encode(self, verb: str, items: Sequence[Item], place: int = 0, /) -> tuple[bytes, bytes]:
        """Encode a command and the reply it should have.

        items: several for get and gets, else one. place: of its first operation in the exchange.

        Returns: the request and the reply, in which unpredictable parts (a cas number, a sum) are omitted or 0.
        """

    def replies(self, request: bytes, verbs: tuple[str, ...], data: bytes, fits: Fits) -> Iterator[Read | None]:
        """Yield what each reply to an exchange says, and at last None if one is not complete.

        verbs: of the operations. fits: decides whether a value may be that of a key.
        """


class Kinds:
    """All that the operations of some verbs can become, numbered."""

    def __init__(self, verbs: Collection[str]) -> None:
        self.all = tuple(Kind(verb, outcome) for verb in sorted(verbs) for outcome in (*OUTCOMES[verb], "error"))
        self._numbers = {kind: number for number, kind in enumerate(self.all)}

    def number(self, verb: str, outcome: str) -> int:
        """Return the number of the outcome of an operation."""
        return self._numbers[Kind(verb, outcome)]


class Fits:
    """Decides whether a value that was read may be that of a key.

    verbs: all of the point; append, prepend, incr and decr change values in ways that are known. values: of each name.
    """

    def __init__(self, verbs: Collection[str], of: Callable[[bytes], bytes]) -> None:
        self._grows = "append" in verbs or "prepend" in verbs
        self._counts = "incr" in verbs or "decr" in verbs
        self._of = of

    def __call__(self, name: bytes, value: bytes) -> bool:
        """Compare the value read for a name."""
        if self._counts:
            # memcached pads a number that got shorter with blanks: protocol.txt, `decr`.
            return value.rstrip(b" ").isdigit()
        return (value.strip(PIECE) if self._grows else value) == self._of(name)


class Reader:
    """Reads replies that differ from the expected ones."""

    def __init__(self, codec: Codec, kinds: Kinds, fits: Fits) -> None:
        self._codec = codec
        self._kinds = kinds
        self._fits = fits

    def read(self, exchange: Exchange, data: bytes) -> Answer | None:
        """Return the outcomes of the replies to an exchange, or None while they are not complete."""
        hidden, reply = self._codec.unpredictable, exchange.reply
        if hidden is not None and len(exchange.kinds) == 1:
            start, stop = hidden.start, hidden.stop
            if data[:start] == reply[:start] and data[stop:] == reply[stop:]:
                return Answer(exchange.kinds)
        verbs = tuple(self._kinds.all[each].verb for each in exchange.kinds)
        outcomes, wrong, end = list[str](), list[bytes](), 0
        for read in self._codec.replies(exchange.request, verbs, data, self._fits):
            if read is None:
                return None
            outcomes += read.outcomes
            wrong += read.wrong
            end = read.end
        if end < len(data):
            wrong.append(data[end:])
        return Answer(tuple(map(self._kinds.number, verbs, outcomes)), tuple(wrong))


def expected(verb: str, *, there: bool) -> str:
    """Return the expected outcome of a verb for a key that is in the table, or not."""
    if verb == "set":
        return "stored"
    return OUTCOMES[verb][there if verb == "add" else not there]
