"""The reply queue of one connection: in order, each reply after the commit of its writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvref.protocol import commands as c
from kvref.protocol.codec import encode
from kvref.protocol.replies import ServerError
from kvref.server.executors.base import Executor
from kvref.server.telemetry.command_times import CommandTimes


class ReplyQueue:
    """Replies of one connection that are not sent yet.

    Args:
        executor: reports which commit replies must wait for.
        send: sends bytes; called without bytes when a connection that ends can be closed.
        settled: called after a commit that replies waited for, with whether it failed.
        times: measures the commands until their replies are sent; None: nothing does.
    """

    def __init__(
        self,
        executor: Executor,
        send: Callable[[bytes], None],
        settled: Callable[[bool], None],
        times: CommandTimes | None = None,
    ) -> None:
        self._executor = executor
        self._send = send
        self._settled = settled
        self._times = times
        self.replies: list[tuple[c.Command, bytes]] = []
        # Commits that replies wait for, at most two: its number, and how many replies it covers.
        self._waits: list[tuple[int, int]] = []
        self.owed = 0  # bytes

    def __bool__(self) -> bool:
        return bool(self.replies)

    @property
    def waits(self) -> bool:
        """Return whether anything waits for a commit."""
        return bool(self._waits)

    def add(self, command: c.Command, replies: Sequence[bytes], names: Sequence[str] = ()) -> None:
        """Keep replies until `flush`.

        Args:
            command: if the commit fails, an error in the form that it needs replaces the replies.
            replies: in order.
            names: under which the commands are measured, one for each reply; not used if nothing is measured.
        """
        for reply in replies:
            self.replies.append((command, reply))
            self.owed += len(reply)
        if self._times is not None:
            self._times.queue(names)

    def flush(self) -> None:
        """Send the replies that need not wait; the others follow after their commit."""
        number = self._executor.unsettled
        if number is None:
            if not self._waits:
                self._release(len(self.replies))
        elif self._waits and self._waits[-1][0] == number:
            self._waits[-1] = number, len(self.replies)
        else:
            self._waits.append((number, len(self.replies)))
            self._executor.when_settled(number, self._settle)

    def _release(self, count: int) -> None:
        if count == 1:
            ready = self.replies.pop(0)[1]
        else:
            ready = b"".join([reply for _, reply in self.replies[:count]])
            del self.replies[:count]
        self.owed -= len(ready)
        if self._times is not None:
            self._times.sending(count)
        self._send(ready)

    def _settle(self, lost: str) -> None:
        _, covered = self._waits.pop(0)
        if self._waits:
            self._waits = [(number, count - covered) for number, count in self._waits]
        if lost:
            # What the tick wrote is gone and what it read may never have been: no reply of it may stand.
            failed = [(command, encode(command, ServerError(lost), 0)) for command, _ in self.replies[:covered]]
            self.owed += sum(len(line) for _, line in failed) - sum(len(line) for _, line in self.replies[:covered])
            self.replies[:covered] = failed
        self._release(covered)
        self._settled(bool(lost))
