"""The reply queue of one connection: in order, each reply after the commit of its writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kvref.protocol import commands as c
from kvref.protocol.codec import encode
from kvref.protocol.replies import ServerError
from kvref.server.commits import Commits
from kvref.server.telemetry.command_times import CommandTimes


class Sender(Protocol):
    """The connection of the replies."""

    def send(self, data: bytes) -> None:
        """Send bytes; called without bytes when a connection that ends can be closed."""

    def settled(self, lost: bool) -> None:
        """Go on after a commit that replies waited for; `lost`: it failed."""


class ReplyQueue:
    """Replies of one connection that are not sent yet.

    Args:
        commits: which of them replies must wait for.
        sender: sends them.
        times: measures the commands until their replies are sent; None: nothing does.

    Attributes:
        replies: with their commands, in order.
        owed: bytes of them.
    """

    # An idle connection has an empty one, without lists.
    __slots__ = ("_commits", "_sender", "_times", "_waits", "owed", "replies")

    def __init__(
        self,
        commits: Commits,
        sender: Sender,
        times: CommandTimes | None = None,
    ) -> None:
        self._commits = commits
        self._sender = sender
        self._times = times
        self.replies: Sequence[tuple[c.Command, bytes]] = ()
        # Commits that replies wait for, at most two: its number, and how many replies it covers.
        self._waits: tuple[tuple[int, int], ...] = ()
        self.owed = 0

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
        queued = self.replies if isinstance(self.replies, list) else []
        for reply in replies:
            queued.append((command, reply))
            self.owed += len(reply)
        self.replies = queued
        if self._times is not None:
            self._times.queue(names)

    def flush(self) -> None:
        """Send the replies that need not wait; the others follow after their commit."""
        number = self._commits.unsettled
        if number is None:
            if not self._waits:
                self._release(len(self.replies))
        elif self._waits and self._waits[-1][0] == number:
            self._waits = *self._waits[:-1], (number, len(self.replies))
        else:
            self._waits = *self._waits, (number, len(self.replies))
            self._commits.when_settled(number, self._settle)

    def _release(self, count: int) -> None:
        ready = self.replies[0][1] if count == 1 else b"".join([reply for _, reply in self.replies[:count]])
        self.replies = [*self.replies[count:]] if count < len(self.replies) else ()
        self.owed -= len(ready)
        if self._times is not None:
            self._times.sending(count)
        self._sender.send(ready)

    def _settle(self, lost: str) -> None:
        (_, covered), *later = self._waits
        self._waits = tuple([(number, count - covered) for number, count in later])
        if lost:
            # What the tick wrote is gone and what it read may never have been: no reply of it may stand.
            failed = [(command, encode(command, ServerError(lost), 0)) for command, _ in self.replies[:covered]]
            self.owed += sum(len(line) for _, line in failed) - sum(len(line) for _, line in self.replies[:covered])
            self.replies = [*failed, *self.replies[covered:]]
        self._release(covered)
        self._sender.settled(bool(lost))
