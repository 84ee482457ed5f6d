"""Bytes that wait to be parsed: what both protocols do with what arrived."""

from __future__ import annotations


class Input:
    """Incoming bytes of one connection; a parser takes commands from their beginning."""

    def __init__(self) -> None:
        self.closed = False  # the connection must be closed after the commands taken so far are answered
        self._buffer = bytearray()
        self._position = 0  # start of what is not parsed yet
        self._discard = 0  # bytes still to be thrown away

    @property
    def pending(self) -> int:
        """Return how many bytes wait to be parsed."""
        return len(self._buffer) - self._position

    @property
    def between_commands(self) -> bool:
        """Tell whether plain text commands may be taken from what arrives before it is fed."""
        return False

    def feed(self, data: bytes) -> None:
        """Append bytes as they arrived."""
        self._buffer += data

    def _compact(self) -> None:
        del self._buffer[: self._position]
        self._position = 0

    def _throw_away(self) -> bool:
        """Drop what is to be thrown away as far as it has arrived; tell whether all of it is gone."""
        taken = min(self._discard, self.pending)
        self._position += taken
        self._discard -= taken
        return not self._discard
