"""The input buffer that the parsers of both protocols share."""

from __future__ import annotations

from typing import Final

from kvref.protocol.rules import WireRules

MAX_BUFFERED_VALUE: Final = 64 << 20  # bytes


class Input:
    """Incoming bytes of one connection; a parser takes commands from their beginning."""

    __slots__ = ("_buffer", "_discard", "_position", "_rules", "closed")

    def __init__(self, rules: WireRules) -> None:
        self._rules = rules
        self.closed = False  # the connection must be closed after the commands taken so far are answered
        self._buffer = bytearray()
        self._position = 0  # start of what is not parsed yet
        self._discard = 0  # bytes still to be thrown away

    @property
    def pending(self) -> int:
        """Return the number of buffered bytes to parse."""
        return len(self._buffer) - self._position

    @property
    def between_commands(self) -> bool:
        """Return whether commands can be planned from received bytes before they are fed."""
        return False

    @property
    def at_command(self) -> bool:
        """Return whether the buffered bytes, if any, begin with a command."""
        return not self._discard and not self.closed

    @property
    def starts_command(self) -> bool:
        """Return whether the buffered bytes, if any, can be planned from their beginning."""
        return False

    @property
    def halfway(self) -> bool:
        """Return whether a command is incomplete after all complete ones were taken."""
        return bool(self._buffer or self._discard)

    def begun(self) -> None:
        """Note that the first command was taken from the bytes of `take_all`."""

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def take_all(self) -> bytes:
        """Return the buffered bytes and drop them; only where `at_command`."""
        data = bytes(memoryview(self._buffer)[self._position :])
        self._buffer = bytearray()
        self._position = 0
        return data

    def _value(self, start: int, end: int) -> bytes:
        """Return the bytes of a value, which may be large: a slice of the buffer would copy them twice."""
        with memoryview(self._buffer) as view:
            return bytes(view[start:end])

    def _exceeds_limit(self, start: int) -> bool:
        """Return whether a value exceeds MAX_BUFFERED_VALUE, where the profile does not limit values."""
        return self._rules.value_limit is None and len(self._buffer) - start > MAX_BUFFERED_VALUE

    def _compact(self) -> None:
        del self._buffer[: self._position]
        self._position = 0

    def _throw_away(self) -> bool:
        """Drop received bytes that are to be discarded; return whether none are left to discard."""
        taken = min(self._discard, self.pending)
        self._position += taken
        self._discard -= taken
        return not self._discard
