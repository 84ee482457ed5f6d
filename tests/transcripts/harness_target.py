"""Conversations with the server's code in this process: no socket, no process, and a clock that a sleep moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from helpers.harness import Harness

from kvref.errors import ConfigError
from kvref_conformance.corpus.conversation import Conversation
from kvref_conformance.corpus.silences import Pace
from kvref_conformance.corpus.targets.sqlite import SQLiteTarget
from kvref_conformance.wire.connection import Reply

AT_ONCE = Pace(first=0, quiet=0, whole=0, broken=0)


class Line:
    """A connection to a harness, in the place of a socket."""

    def __init__(self, machine: Machine, name: str) -> None:
        self._machine, self._name = machine, name
        self._data = b""
        self._closed = False

    def send(self, data: bytes, *, half: bool = False) -> bool:
        if self._machine.harness is None or self._closed:
            return False
        reply = self._machine.harness.say(data, self._name) if data else b""
        self._closed = half or reply.endswith(b"<EOF>")
        self._data += reply.removesuffix(b"<EOF>")
        return True

    def read(self, _silence: Callable[[bytearray], float], _patience: float) -> Reply:
        data, self._data = self._data, b""
        return Reply(data, closed=self._closed)

    def has_bytes(self, _seconds: float) -> bool:
        return bool(self._data)

    def close(self, *, reset: bool = False) -> None:
        self._closed = True
        if self._machine.harness is not None:
            self._machine.harness.forget(self._name)


class Machine:
    """A harness that is started and loaded again as a server is, and its clock.

    Args:
        folder: where its file goes.
        profile: whose answers.
    """

    address = ("", 0)

    def __init__(self, folder: Path, profile: str) -> None:
        self.file = folder / "harness.sqlite"
        self.harness: Harness | None = None
        self._folder, self._profile = folder, profile
        self._opened = 0
        self._numbers: Iterator[int] | None = None
        self.set_clock()

    def set_clock(self) -> None:
        """Show the time of the day, in the middle of a second: recorded waits are longer than what they wait for."""
        self._now = int(time.time()) + 0.5

    def time(self) -> float:
        return self._now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        if self.harness is not None:
            self.harness.now = int(self._now)

    def start(self, settings: Sequence[str] = ()) -> bool:
        assert not settings, "a harness has no settings"
        self._close()
        try:
            self.harness = Harness(self._folder, self._profile, now=int(self._now))
        except ConfigError:
            return False
        # A server that is loaded again goes on with its numbers.
        self._numbers = self.harness.shared.cas = self._numbers or self.harness.shared.cas
        return True

    def running(self) -> bool:
        return False

    def reload(self) -> bool:
        return self.start()

    def _close(self) -> None:
        if self.harness is not None:
            self.harness.close()
            self.harness = None

    def stop(self) -> None:
        self._close()
        self._numbers = None

    kill = stop

    def exit_status(self) -> None:
        return None

    def connect(self) -> Line:
        if self.harness is None:
            raise ConnectionRefusedError("the configuration was refused")
        self._opened += 1
        return Line(self, str(self._opened))


class HarnessTarget(SQLiteTarget):
    """The replay target of a harness; `play` must use the clock of its machine."""

    def __init__(self, machine: Machine, version: str) -> None:
        super().__init__(machine, version)
        self._machine_in_process = machine

    def prepare(self, conversation: Conversation) -> str:
        self._machine_in_process.set_clock()
        return super().prepare(conversation)

    def connect(self) -> Line:  # type: ignore[override]
        return self._machine_in_process.connect()
