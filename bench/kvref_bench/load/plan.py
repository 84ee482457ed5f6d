"""What a worker sends and what must come back; made before the clock, so that nothing is encoded while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator


class Kind(NamedTuple):
    """What happened to one operation.

    verb: as the protocol has it; for several keys in one get `get`.
    outcome: hit, miss, stored, not_stored, exists, not_found, deleted, touched, counted, ok, error.
    """

    verb: str
    outcome: str


class Exchange(NamedTuple):
    """One write and the replies to it.

    request: its commands, joined.
    reply: the replies that are expected, joined.
    kinds: what each operation of it is when the reply is the expected one, by number in `Plan.kinds`; each key of a
        get is one operation.
    """

    request: bytes
    reply: bytes
    kinds: tuple[int, ...]


# An exchange without its names: made as it is needed, where a pool of them would have to come from memory.
Parts = tuple[bytes, bytes, tuple[int, ...]]


class Answer(NamedTuple):
    """What other bytes than the expected ones mean.

    kinds: one for each operation of the exchange.
    unexpected: the bytes of replies that are no allowed answer; none where all are (a miss, NOT_STORED).
    """

    kinds: tuple[int, ...]
    unexpected: tuple[bytes, ...] = ()


class Reader(Protocol):
    """Reads replies that differ from the expected ones; one for each protocol."""

    def read(self, exchange: Exchange, data: bytes) -> Answer | None:
        """Return the outcomes of the replies to an exchange, or None while they are not complete."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of a point that one worker does.

    kinds: all that can happen.
    connect: opens one session, logged in and bound to its mapping; raises BenchError.
    exchanges: of a session of this worker, by its number from 0 on: endless, or as many as it has to do.
    reader: for other replies than the expected ones.
    """

    kinds: tuple[Kind, ...]
    connect: Callable[[], socket.socket]
    exchanges: Callable[[int], Iterator[Parts]]
    reader: Reader
