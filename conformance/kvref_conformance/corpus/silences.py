"""Replies that end where the server is silent.

How long silence must last depends on the data: a reply whose last line can end a reply is complete sooner than
one that stops in the middle. Later bytes are detected, so that the conversation can run again at a slower pace.
"""

from __future__ import annotations

import re
import select
import time
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from kvref_conformance.wire.connection import MAX_ANSWER_BYTES, Reply, beyond
from kvref_conformance.wire.frames import split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.steps import AwaitReply, Send, StartRequest
    from kvref_conformance.wire.connection import Connection

# An answer that is still coming so many seconds after the wait for its first byte is not read to its end.
MAX_ANSWER_SECONDS: Final = 30.0
FLOOD: Final = f"<{beyond(MAX_ANSWER_BYTES)}>"
# Last lines of text answers. A value may look like one; then the rest follows at once or the wait was too short.
_LAST: Final = re.compile(
    rb"(?:\A|\n)(?:END|STORED|NOT_STORED|EXISTS|NOT_FOUND|DELETED|TOUCHED|OK|RESET|ERROR|SUCCEED|FAILED|\d+"
    rb"|(?:CLIENT_ERROR|SERVER_ERROR|VERSION) [^\r\n]*)\r\n\Z"
)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to listen, in seconds.

    Args:
        first: for the first byte, where a step does not say it.
        quiet: for the first byte, where none is expected.
        whole: of silence, after an answer that looks whole.
        broken: of silence, after one that does not.
    """

    first: float
    quiet: float
    whole: float
    broken: float


NORMAL: Final = Pace(first=1.5, quiet=0.25, whole=0.08, broken=0.4)
PATIENT: Final = Pace(first=4.0, quiet=0.5, whole=0.6, broken=1.5)


@dataclass(slots=True)
class _State:
    """A connection so far: `ending` follows the bytes of its last reply."""

    answered: bool = False
    reset: bool = False
    ending: str = ""


class Silences:
    """The `player.Replies` of recordings: a reply ends where the server is silent.

    Args:
        pace: how long to wait for replies.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._states: dict[Connection, _State] = {}
        self._late = False

    def send(self, connection: Connection, step: Send, packets: tuple[bytes, ...]) -> Reply:
        """Send packets and return the reply; a step without patience has that of the pace."""
        self._send(connection, b"".join(packets))
        first = step.patience or (self._pace.quiet if step.quiet else self._pace.first)
        return self._read(connection, first, binary=step.binary)

    def start(self, connection: Connection, _step: Send | StartRequest, packets: tuple[bytes, ...]) -> Reply:
        """Send packets and read nothing."""
        self._send(connection, b"".join(packets))
        return Reply(b"")

    def receive(self, connection: Connection, step: AwaitReply) -> Reply:
        """Return what has come."""
        self._send(connection, b"")
        return self._read(connection, step.patience or self._pace.first, binary=False)

    def disconnect(self, connection: Connection, how: str) -> Reply | None:
        """Close a connection; half: the sending side only, and return the reply."""
        if how == "half":
            self._send(connection, b"", half=True)
            return self._read(connection, self._pace.first, binary=False)
        self._states.pop(connection, None)
        connection.close(reset=how == "reset")
        return None

    def ending(self, connection: Connection) -> str:
        """Return how a connection ended, in angle brackets; "" for an open one."""
        return self._states[connection].ending

    def late(self) -> bool:
        """Return whether bytes came behind an answer that was taken for whole, also on waiting once more."""
        if not self._late and self._states:
            time.sleep(self._pace.whole)
        return self._late or any(map(self._has_more, self._states))

    def send_to_all(self, requests: Mapping[Connection, bytes], patience: float) -> dict[Connection, bytes]:
        """Send to each connection, then read from all until all are silent: one by one, a crowd would take too long.

        Args:
            requests: by connection.
            patience: seconds to wait for the first byte; 0: those of the pace.

        Returns:
            The replies.
        """
        for connection, request in requests.items():
            self._send(connection, request)
        received = dict.fromkeys(requests, b"")
        deadline = time.monotonic() + (patience or self._pace.first)
        end, silence = deadline + MAX_ANSWER_SECONDS, 0.0
        while (waiting := {c.fileno(): c for c in received if not self.ending(c)}) and time.monotonic() < end:
            poll = select.poll()
            for descriptor in waiting:
                poll.register(descriptor, select.POLLIN)
            every = all(received[connection] for connection in waiting.values())
            ready = poll.poll((silence if every else max(0.0, deadline - time.monotonic())) * 1000)
            if not ready:
                break
            for descriptor, _ in ready:
                reply = waiting[descriptor].read(lambda data: 0.0 if data else inf, MAX_ANSWER_SECONDS)
                received[waiting[descriptor]] += self._taken(waiting[descriptor], reply)
            open_ones = [connection for connection in waiting.values() if not self.ending(connection)]
            whole = all(_is_whole(received[connection], binary=False) for connection in open_ones)
            silence = self._pace.whole if whole else self._pace.broken
        return received

    def _send(self, connection: Connection, payload: bytes, *, half: bool = False) -> None:
        state = self._states.setdefault(connection, _State())
        self._late |= self._has_more(connection)
        if state.ending:
            # What TCP does: the first bytes sent to a peer that closed bring a reset, later ones find a broken pipe.
            state.ending = "<BrokenPipeError>" if payload and state.reset else "<EOF>"
            state.reset |= bool(payload)
        elif not connection.send(payload, half=half):
            state.answered = False

    def _read(self, connection: Connection, first: float, *, binary: bool) -> Reply:
        def silence(data: bytearray) -> float:
            return first if not data else self._pace.whole if _is_whole(data, binary=binary) else self._pace.broken

        state, data = self._states[connection], b""
        if not state.ending:
            data = self._taken(connection, connection.read(silence, first + MAX_ANSWER_SECONDS))
        state.answered = bool(data)
        return Reply(data)

    def _taken(self, connection: Connection, reply: Reply) -> bytes:
        self._states[connection].ending = FLOOD if reply.limit else "<EOF>" if reply.closed else ""
        return reply.data

    def _has_more(self, connection: Connection) -> bool:
        state = self._states[connection]
        return state.answered and not state.ending and connection.has_bytes(0)


def _is_whole(data: bytes | bytearray, *, binary: bool) -> bool:
    return not split(bytes(data))[1] if binary else _LAST.search(data[-1024:]) is not None
