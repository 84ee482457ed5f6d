"""memcached's commands and their outcomes, independent of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kvref_bench.load.records import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from kvref_bench.load.records import Reader

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


class Codec(Protocol):
    """One of memcached's protocols, or SQL."""

    def ask(self, verb: str, items: Sequence[Item], place: int = 0, /) -> tuple[bytes, bytes]:
        """Encode a command and the reply it should have.

        items: several for get and gets, else one. place: of its first operation in the exchange.

        Returns: the request and the reply, in which unpredictable parts (a cas number, a sum) are omitted or 0.
        """

    def reader(self, kinds: Kinds, fits: Fits) -> Reader:
        """Return a reader of other replies."""


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


def expected(verb: str, *, there: bool) -> str:
    """Return the expected outcome of a verb for a key that is in the table, or not."""
    if verb == "set":
        return "stored"
    return OUTCOMES[verb][there if verb == "add" else not there]
