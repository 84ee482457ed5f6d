"""The memcached connections of one conversation: send bytes, and read until the server is silent.

How long silence must last depends on the data: a reply whose last line can end a reply is complete sooner than
one that stops in the middle. Later bytes are detected, so that the conversation can run again at a slower pace.
"""

from __future__ import annotations

import re
import select
import time
from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from kvref_conformance.connection import MAX_ANSWER_BYTES, beyond
from kvref_conformance.corpus.holes import cas_number, cas_spans
from kvref_conformance.frames import split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kvref_conformance.connection import Connection
    from kvref_conformance.corpus.conversation import Crowd, Talk
    from kvref_conformance.corpus.holes import Json

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


class Lines:
    """The memcached connections of one conversation, by name.

    Args:
        connect: opens one.
        pace: how long to listen.
    """

    def __init__(self, connect: Callable[[], Connection], pace: Pace) -> None:
        self._connect = connect
        self._pace = pace
        self._open: dict[str, _Line] = {}
        self._cas: list[int] = []
        self._late = False

    def talk(self, step: Talk) -> str | None:
        """Take a step on a connection.

        Returns:
            The reply as in a recording; None if the step only closes.
        """
        binary = step.hex is not None
        payload = self._payload(step.hex if binary else step.send, hexadecimal=binary)
        if step.close and not payload:
            self._drop(step.mc, reset=False)
            return None
        if step.abort:
            self._drop(step.mc, reset=True)
            return None
        try:
            line = self._line(step.mc)
        except OSError as error:
            return f"<{type(error).__name__}>"
        answer = self._exchange(line, payload, step)
        if step.close:
            self._drop(step.mc, reset=False)
            return None
        shown = answer.hex() if binary else answer.decode("latin-1")
        self._remember(shown, hexadecimal=binary)
        return shown + line.ending

    def _exchange(self, line: _Line, payload: bytes, step: Talk) -> bytes:
        self._late |= line.has_more()
        line.send(payload, half=step.half)
        if step.close:
            return b""
        first = step.first if step.first is not None else self._pace.quiet if step.quiet else self._pace.first
        return line.read(first, self._pace, binary=step.hex is not None)

    def crowd(self, step: Crowd) -> dict[str, Json] | None:
        """Take a step on many connections.

        Returns:
            How often each answer came, its own words of `send` spelt as there; None when the step closes them.
        """
        names = [f"{step.name}{number}" for number in range(step.many)]
        if step.close:
            for name in names:
                self._drop(name, reset=False)
            return None
        answers: Counter[str] = Counter()
        lines: dict[int, _Line] = {}
        for number, name in enumerate(names):
            try:
                lines[number] = self._line(name)
            except OSError as error:
                answers[f"<{type(error).__name__}>"] += 1
                continue
            lines[number].send((step.send or "").replace("{i}", str(number)).encode("latin-1"), half=False)
        self._read_all(lines.values(), self._pace.first if step.first is None else step.first)
        for number, line in lines.items():
            answers[_as_sent(line.data.decode("latin-1"), step.send or "", number) + line.ending] += 1
        return dict(answers)

    def _read_all(self, lines: Iterable[_Line], first: float) -> None:
        """Read from all until all are silent; one after the other, a crowd would take longer than what it watches."""
        deadline = time.monotonic() + first
        end = deadline + MAX_ANSWER_SECONDS
        heard = {line.connection.fileno(): line for line in lines if not line.ending}
        silence = 0.0
        while heard and time.monotonic() < end:
            poll = select.poll()
            for descriptor in heard:
                poll.register(descriptor, select.POLLIN)
            wait = silence if all(line.data for line in heard.values()) else max(0.0, deadline - time.monotonic())
            if not (ready := poll.poll(wait * 1000)):
                return
            for descriptor, _ in ready:
                heard[descriptor].receive()
            heard = {descriptor: line for descriptor, line in heard.items() if not line.ending}
            whole = all(_is_whole(line.data, binary=False) for line in heard.values())
            silence = self._pace.whole if whole else self._pace.broken

    def late(self) -> bool:
        """Return whether bytes came behind an answer that was taken for whole, also on waiting once more."""
        if not self._late and self._open:
            time.sleep(self._pace.whole)
        return self._late or any(line.has_more() for line in self._open.values())

    def close(self) -> None:
        """Close every connection."""
        for name in list(self._open):
            self._drop(name, reset=False)

    def _line(self, name: str) -> _Line:
        if name not in self._open:
            self._open[name] = _Line(self._connect())
        return self._open[name]

    def _drop(self, name: str, *, reset: bool) -> None:
        line = self._open.pop(name, None)
        if line is not None:
            line.connection.close(reset=reset)

    def _payload(self, parts: Json, *, hexadecimal: bool) -> bytes:
        texts = [parts] if isinstance(parts, str) else parts if isinstance(parts, list) else []
        whole = "".join(
            part if isinstance(part, str) else self._cas_digits(part, hexadecimal=hexadecimal) for part in texts
        )
        return bytes.fromhex(whole) if hexadecimal else whole.encode("latin-1")

    def _cas_digits(self, part: Json, *, hexadecimal: bool) -> str:
        assert isinstance(part, dict), f"{part!r} in a `send` is neither a text nor a hole"
        n = part["cas"]
        assert isinstance(n, int), f"{part!r}: n is a number"
        # A number that was never answered becomes 0: no row that the plugin wrote has it.
        number = self._cas[n - 1] if n <= len(self._cas) else 0
        return f"{number:016x}" if hexadecimal else str(number)

    def _remember(self, answer: str, *, hexadecimal: bool) -> None:
        for begin, end in cas_spans(answer, hexadecimal=hexadecimal):
            number = cas_number(answer[begin:end], hexadecimal=hexadecimal)
            if number and number not in self._cas:
                self._cas.append(number)


class _Line:
    """One connection, and how it ended."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._answered = False
        self._reset = False
        self.data = b""
        self.ending = ""
        """What follows the bytes of the last reply: nothing, or how the connection ended."""

    def send(self, payload: bytes, *, half: bool) -> None:
        self.data = b""
        if self.ending:
            # What TCP does: the first bytes sent to a peer that closed bring a reset, later ones find a broken pipe.
            self.ending = "<BrokenPipeError>" if payload and self._reset else "<EOF>"
            self._reset |= bool(payload)
        elif not self.connection.send(payload, half=half):
            self._answered = False

    def read(self, first: float, pace: Pace, *, binary: bool) -> bytes:
        def silence(data: bytearray) -> float:
            return first if not data else pace.whole if _is_whole(data, binary=binary) else pace.broken

        if not self.ending:
            reply = self.connection.read(silence, first + MAX_ANSWER_SECONDS)
            self.data, self.ending = reply.data, FLOOD if reply.limit else "<EOF>" if reply.closed else ""
        self._answered = bool(self.data)
        return self.data

    def receive(self) -> None:
        """Take what has come; at the end of the connection, note that."""
        reply = self.connection.read(lambda data: 0.0 if data else inf, MAX_ANSWER_SECONDS)
        self.data += reply.data
        self.ending = FLOOD if reply.limit else "<EOF>" if reply.closed else ""

    def has_more(self) -> bool:
        """Return whether something came behind an answer that was taken for whole."""
        return self._answered and not self.ending and self.connection.has_bytes(0)


def _as_sent(answer: str, template: str, number: int) -> str:
    """Put the words of a template that hold `{i}` in the place of what was sent for them."""
    for word in {word for word in template.split() if "{i}" in word}:
        sent = re.escape(word.replace("{i}", str(number)))
        answer = re.sub(rf"(?<!\S){sent}(?!\S)", word, answer)
    return answer


def _is_whole(data: bytes | bytearray, *, binary: bool) -> bool:
    return not split(bytes(data))[1] if binary else _LAST.search(data[-1024:]) is not None
