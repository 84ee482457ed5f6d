"""The line between a worker and the coordinator of its point: JSON lines over TCP, on any engine and machine.

The worker says hello, ready, then once a second what it did; the coordinator says go, and stop when the user does.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Self

from kvref.errors import cause_of
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from types import TracebackType

    from kvref_bench.load.work import Task

_CONNECT_SECONDS: Final = 10.0
PATIENCE: Final = 600.0  # for the slowest of the other workers to be ready


@dataclass(frozen=True, slots=True)
class Progress:
    """One second of one worker: operations, answers that are not allowed, latencies in ns."""

    worker: int
    second: int
    operations: int
    errors: int
    p50: int
    p99: int


class Channel:
    """A worker's end; a context manager. Raises BenchError if the coordinator is not reachable.

    task: has the address and the token.
    """

    def __init__(self, task: Task) -> None:
        host, _, port = task.control.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
        except OSError as error:
            raise BenchError(
                f"the worker {task.worker} does not reach the coordinator at {task.control}: {cause_of(error)}; "
                "give an address that it reaches with --control-host"
            ) from error
        self._rest = b""
        self._stopped = False
        self._say({"hello": task.token, "worker": task.worker})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ready(self) -> float:
        """Say that all is prepared and wait until all workers are.

        Returns:
            Seconds until the common start. Raises BenchError when the coordinator gave up.
        """
        self._say({"ready": True})
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for message in self._receive(0.5):
                if "go" in message:
                    return float(message["go"])
            if self._stopped:
                break
        raise BenchError("the point was given up before all workers were ready")

    def stopped(self) -> bool:
        """Return whether the coordinator said stop or is gone."""
        self._receive(0)
        return self._stopped

    def progress(self, what: Progress) -> None:
        """Report the progress to the coordinator."""
        self._say(asdict(what))

    def _say(self, message: dict[str, object]) -> None:
        # A coordinator that is gone is noticed by `stopped`; what was measured is still given back.
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _receive(self, seconds: float) -> list[dict[str, float]]:
        messages: list[dict[str, float]] = []
        while not self._stopped and select.select([self._socket], [], [], 0 if messages else seconds)[0]:
            try:
                data = self._socket.recv(4096)
            except OSError:
                data = b""
            if not data:
                self._stopped = True
                break
            *lines, self._rest = (self._rest + data).split(b"\n")
            messages += [json.loads(line) for line in lines]
        self._stopped = self._stopped or any("stop" in message for message in messages)
        return messages
