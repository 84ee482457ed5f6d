"""The requests of a literal case: its steps with their exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_conformance.steps import Disconnect, Mark, Pause, Reload, Send, StartRequest, StartSql, Tick, innermost
from kvref_conformance.wire.frames import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.steps import Step

# They make no exchange.
SILENT = (Disconnect, StartSql, Mark, Pause, Tick)


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent in one step; no bytes: the connection ended, or with no name every one.

    Args:
        on: connection.
        data: the bytes.
        got: the answer; None where it comes later.
        binary: both protocols may be used in one case, not on one connection.
        more: the last request may go on in the next bytes.
    """

    on: str
    data: bytes = b""
    got: str | None = None
    binary: bool = False
    more: bool = False


def sent_in(steps: Sequence[Step], exchanges: Sequence[Exchange]) -> Iterator[Sent]:
    """Yield what was sent, up to the step that was the last.

    Args:
        steps: of the case.
        exchanges: of its conversation; it may have ended before its last step.
    """
    left = iter(exchanges)
    for step in steps:
        if isinstance(step, Disconnect):
            yield Sent(step.on)
        if isinstance(step, SILENT):
            continue
        exchange = next(left, None)
        inner = innermost(step)
        binary = isinstance(inner, Send | StartRequest) and inner.binary
        if exchange is not None and exchange.opening:
            yield _sent(exchange, binary=binary)
            exchange = next(left, None)
        if exchange is None:
            return
        if isinstance(inner, Reload):
            yield Sent("")
        elif isinstance(inner, Send):
            yield _sent(exchange, binary=binary, more=inner.quiet)
        elif isinstance(inner, StartRequest):
            yield Sent(exchange.on, _bytes(exchange, binary=binary), None, binary)


def _sent(exchange: Exchange, *, binary: bool, more: bool = False) -> Sent:
    return Sent(exchange.on, _bytes(exchange, binary=binary), exchange.got, binary, more)


def _bytes(exchange: Exchange, *, binary: bool) -> bytes:
    return encode(exchange.sent) if binary else exchange.sent.encode("latin-1")
