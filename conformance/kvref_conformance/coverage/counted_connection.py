"""A connection of the histories whose requests are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvref_conformance.coverage.collect import Exercised
    from kvref_conformance.stateful.concurrency.player import Line


class CountedLine:
    """A `histories.play.Line` that hands what is sent to the collector.

    Args:
        line: does the talking.
        exercised: collects.
    """

    def __init__(self, line: Line, exercised: Exercised) -> None:
        self._line = line
        self._exercised = exercised
        self._on = f"line {id(self)}"

    def ask(self, request: bytes) -> None:
        """Send a request."""
        self._exercised.say(self._on, request)
        self._line.ask(request)

    def tell(self, request: bytes) -> None:
        """Send a request that has no answer."""
        self._exercised.say(self._on, request)
        self._line.tell(request)

    def answer(self, patience: float) -> str | None:
        """Return the answer; None when it is not there after so many seconds."""
        return self._line.answer(patience)

    def closes(self, patience: float) -> bool:
        """Shut this side and tell whether the endpoint closes within so many seconds."""
        self._exercised.end(self._on)
        return self._line.closes(patience)

    def close(self) -> None:
        """Close it at once."""
        self._exercised.end(self._on)
        self._line.close()
