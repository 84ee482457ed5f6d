"""The ordered replies of one connection: each command takes its place when it is parsed, and they leave in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from kvref.protocol.codec import replaced
from kvref.protocol.replies import Reply, ServerError

MAX_WAITING: Final = 4096  # commands of one connection whose replies wait for commits


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
        owner: see above.
        open: a reply is undecided or waits for a commit.
        awaited: the owner is to be notified once no reply is open, see `SlotOwner.drained`.
        current: the list in which the next command takes its place; None: there is none, nothing is undecided.
        planned: the current list has places that a scheduler fills.
        size: bytes of the replies of the current list that no scheduler has filled.
        reads: rows that the gets among the others read.
        waiting: lists that are decided and wait for their commits, in order.
    """

    __slots__ = ("awaited", "current", "open", "owner", "planned", "reads", "size", "waiting")

    def __init__(self, owner: SlotOwner) -> None:
        self.owner = owner
        self.waiting: list[Replies] = []
        self.current: Replies | None = None
        self.planned = False
        self.open = self.awaited = False
        self.size = self.reads = 0

    @property
    def full(self) -> bool:
        """Return whether so many replies wait that no more commands are taken."""
        return bool(self.waiting) and sum(map(len, self.waiting)) > MAX_WAITING

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
            current.owner = self.owner
            self.open = True
            self.size = self.reads = 0
        return current

    def end_chunk(self) -> None:
        """Send the current list if no place of it is open and nothing precedes it; called once input is planned."""
        if not self.planned and self.current is not None:
            self.hand_over(self.current)

    def part(self) -> Replies:
        """Take the current list while its places are open, for a scheduler that fills them later, see `completed`."""
        current = self.current
        assert current is not None, "a scheduler fills the places of a list"
        self.planned, self.current, current.open = False, None, True
        self.waiting.append(current)
        return current

    def send_before(self, replies: Replies, place: int) -> None:
        """Send the replies of a list from `part` in front of a place that waits, unless others come before them.

        Args:
            replies: the list.
            place: all before it are filled.
        """
        if self.waiting[0] is not replies or not any(replies[:place]):
            return
        first, replies[:place] = replies[:place], [b""] * place
        self.owner.send_replies(first, None if replies.names is None else replies.names[:place], replies.started)

    def completed(self, replies: Replies) -> None:
        """Send a list from `part` whose places are filled, once those before it are, and those that wait for it."""
        replies.open = False
        while self.waiting and not self.waiting[0].open:
            first = self.waiting.pop(0)
            self.open = bool(self.waiting) or self.current is not None
            self.owner.send_replies(first, first.names, first.started)
        if self.awaited and not self.open:
            self.awaited = False
            self.owner.drained()

    def hand_over(self, current: Replies) -> None:
        """Send the current list, whose places are filled, once those before it are sent."""
        self.current = None
        self.open = bool(self.waiting)
        if not current:
            return
        if not self.waiting:
            self.owner.send_replies(current, current.names, current.started)
            return
        last = self.waiting[-1]
        last += current
        if last.names is not None and current.names is not None:
            last.names += current.names


def decided(slots: Sequence[Slots]) -> list[tuple[Slots, Replies]]:
    """Take the current lists of connections, whose places are filled; return those that must wait for a commit."""
    waiting: list[tuple[Slots, Replies]] = []
    for each in slots:
        current = each.current
        assert current is not None, "a scheduler fills the places of a list"
        each.planned = False
        if current.late:
            each.current = None
            each.waiting.append(current)
            waiting.append((each, current))
            continue
        each.hand_over(current)
        if each.awaited and not each.open:
            each.awaited = False
            each.owner.drained()
    return waiting


def settled(waiting: Sequence[tuple[Slots, Replies]], lost: str) -> None:
    """Send lists that have waited for a commit.

    Args:
        waiting: see `decided`, the oldest lists that wait.
        lost: why the commit failed, which is sent in place of each reply; empty if it succeeded.
    """
    for slots, replies in waiting:
        first = slots.waiting.pop(0)
        assert first is replies, "commits are settled in order"
        if lost:
            error = ServerError(lost)
            replies[:] = [replaced(each, error) if each else each for each in replies]
            slots.owner.replies_lost()
        slots.open = bool(slots.waiting) or slots.current is not None
        slots.owner.send_replies(replies, replies.names, replies.started)
        if slots.awaited and not slots.open:
            slots.awaited = False
            slots.owner.drained()
