"""The ordered replies of one connection: each command takes its place when it is parsed, and they leave in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from kvref.protocol import commands as c
from kvref.protocol.codec import encode
from kvref.protocol.replies import Reply, ServerError

MAX_WAITING: Final = 4096  # commands of one connection whose replies wait for commits
_ANY: Final = c.Get([], with_cas=False)  # an error has the same text for all commands


class SlotOwner(Protocol):
    """The connection of the replies."""

    def send_replies(self, replies: Sequence[bytes], names: list[str] | None, started: float) -> None:
        """Send replies, or drop them where the client is gone."""

    def rejected(self, reply: Reply) -> None:
        """Note a reply that rejects a command, for the log and the metrics."""

    def replies_lost(self) -> None:
        """Note that a commit failed, for which replies have waited."""

    def drained(self) -> None:
        """Go on: no reply waits any more."""


class Replies(list[bytes]):
    """Replies of one connection that leave together, one place for each command, empty for noreply.

    Attributes:
        owner: the connection.
        late: one of them waits for a commit.
        open: a scheduler that carries out groups in the background has not filled all places yet.
        deadline: until when (loop time) a command may wait for another writer; None: none waits.
        names: under which the commands are measured, one for each place; None: nothing is measured.
        started: when the first of them was parsed, see `CommandTimes`.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]  # by identity
    # Defaults of the class, since one is made for each packet.
    owner: SlotOwner
    late = False
    open = False
    deadline: float | None = None
    names: list[str] | None = None
    started = 0.0


class Slots:
    """Replies that are not sent yet.

    Args:
        owner: sends them.

    Attributes:
        open: a reply is undecided or waits for a commit.
        awaited: the owner is to be notified once no reply is open, see `SlotOwner.drained`.
        current: the list in which the next command takes its place; None: there is none, nothing is undecided.
        planned: the current list has places that a scheduler fills.
        size: bytes of the replies of the current list that no scheduler has filled.
        reads: rows that the gets among the others read.
    """

    __slots__ = ("_owner", "_waiting", "awaited", "current", "open", "planned", "reads", "size")

    def __init__(self, owner: SlotOwner) -> None:
        self._owner = owner
        self._waiting: list[Replies] = []  # decided, for their commits, in order
        self.current: Replies | None = None
        self.planned = False
        self.open = self.awaited = False
        self.size = self.reads = 0

    @property
    def full(self) -> bool:
        """Return whether so many replies wait that no more commands are taken."""
        return bool(self._waiting) and sum(map(len, self._waiting)) > MAX_WAITING

    def reply(self, reply: bytes) -> None:
        """Fill the next place of the current list."""
        assert self.current is not None, "called while input is planned"
        self.current.append(reply)
        self.size += len(reply)

    def begin(self) -> Replies:
        """Return the current list."""
        current = self.current
        if current is None:
            current = self.current = Replies()
            current.owner = self._owner
            self.open = True
            self.size = self.reads = 0
        return current

    def end_chunk(self) -> None:
        """Send the current list if no place of it is open and nothing precedes it; called once input is planned."""
        if not self.planned and self.current is not None:
            self._hand_over(self.current)

    def decided(self) -> Replies | None:
        """Take the current list, whose places are filled; return it if it must wait for the commit of its group."""
        current = self.current
        assert current is not None, "a scheduler fills the places of a list"
        self.planned = False
        if current.late:
            self.current = None
            self._waiting.append(current)
            return current
        self._hand_over(current)
        if self.awaited and not self.open:
            self.awaited = False
            self._owner.drained()
        return None

    def part(self) -> Replies:
        """Take the current list while its places are open, for a scheduler that fills them later, see `completed`."""
        current = self.current
        assert current is not None, "a scheduler fills the places of a list"
        self.planned, self.current, current.open = False, None, True
        self._waiting.append(current)
        return current

    def completed(self, replies: Replies) -> None:
        """Send a list from `part` whose places are filled, once those before it are, and those that wait for it."""
        replies.open = False
        while self._waiting and not self._waiting[0].open:
            first = self._waiting.pop(0)
            self.open = bool(self._waiting) or self.current is not None
            self._owner.send_replies(first, first.names, first.started)
        if self.awaited and not self.open:
            self.awaited = False
            self._owner.drained()

    def settled(self, replies: Replies, lost: str) -> None:
        """Send the list that has waited for a commit.

        Args:
            replies: the oldest list that waits.
            lost: why the commit failed, which is sent in place of each reply; empty if it succeeded.
        """
        first = self._waiting.pop(0)
        assert first is replies, "commits are settled in order"
        if lost:
            error = encode(_ANY, ServerError(lost), 0)
            replies[:] = [error if each else each for each in replies]
            self._owner.replies_lost()
        self.open = bool(self._waiting) or self.current is not None
        self._owner.send_replies(replies, replies.names, replies.started)
        if self.awaited and not self.open:
            self.awaited = False
            self._owner.drained()

    def _hand_over(self, current: Replies) -> None:
        self.current = None
        self.open = bool(self._waiting)
        if not current:
            return
        if not self._waiting:
            self._owner.send_replies(current, current.names, current.started)
            return
        last = self._waiting[-1]
        last += current
        if last.names is not None and current.names is not None:
            last.names += current.names
