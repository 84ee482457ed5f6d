"""One worker, as its parent sees it."""

from __future__ import annotations

from dataclasses import dataclass

from kvref.server.workers.channel import Channel


@dataclass(eq=False)
class Child:
    """A process that serves connections.

    Args:
        number: its seat.
        pid: of its process.
        channel: to it.
        since: monotonic time of its start.
        given: counts connections handed to any worker, as of the last one for this.
        said: its latest message, None since a question.
        ready: it takes connections.
    """

    number: int
    pid: int
    channel: Channel
    since: float
    given: int = 0
    said: tuple[str, str] | None = None
    ready: bool = False
