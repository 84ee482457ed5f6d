"""The ordered replies of one connection: each command takes its place when it is parsed, and they leave in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any, Final, Protocol

from kvref.protocol.codec import replaced
from kvref.protocol.replies import Reply, ServerError


class Commits(Protocol):
    """The commits that the replies of a connection wait for."""

    @property
    def unsettled(self) -> int | None:
        """Return which commit replies must wait for, see `when_settled`; None where they need not."""

    def when_settled(self, number: int, settled: Callable[[str], None], *, at_once: bool = False) -> None:
        """Call back when replies of that commit may leave, with an empty text or why its writes are lost.

        Args:
            at_once: of one connection: the commit does not wait for further writes, unless others write too.
        """


class Settled:
    """The commits of an executor whose replies wait for none: it gives them after their commit."""

    unsettled = None

    def when_settled(
        self, number: int, settled: Callable[[str], None], *, at_once: bool = False  # noqa: ARG002 - see `Commits`
    ) -> None:  # fmt: skip
        settled("")


SETTLED: Final = Settled()


MAX_WAITING: Final = 4096  # commands of one connection whose replies wait for commits
MAX_BYTES: Final = 256 << 10  # of such replies


class Awaited(Enum):
    """What a connection waits for."""

    DECIDED = auto()  # each of its planned commands has a reply
    SENT = auto()  # all replies are sent


class SlotOwner(Protocol):
    """The connection of the replies, see `Connection`."""

    def send_replies(self, replies: Replies) -> None: ...
    def rejected(self, reply: Reply) -> None: ...
    def replies_lost(self) -> None: ...
    def note_batch(self) -> None: ...
    def resume(self, awaited: Awaited) -> None: ...


class Replies(list[bytes]):
    """Replies of one connection that leave together, one place for each command, empty for noreply.

    Attributes:
        owner: the connection.
        late: one of them waits for a commit.
        open: they cannot leave yet.
        undecided: a scheduler that carries out groups in the background has not filled all places yet.
        unfilled: how many places such a scheduler still fills.
        commit: number of the commit that they wait for, of commands that were not planned.
        size: bytes of the replies, of lists that a scheduler has filled or that nothing fills.
        input_size: bytes of the commands that were planned.
        counted: bytes that `stats` has counted.
        deadline: until when (loop time) a command may wait for another writer; None: none waits.
        names: under which the commands are measured, one for each place; None: nothing is measured.
        started: when the first of them was parsed, see `CommandTimes`.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]  # by identity
    # Defaults of the class, since one is made for each packet.
    owner: SlotOwner
    late = False
    open = False
    undecided = False
    unfilled = 0
    commit: int | None = None
    size = 0
    input_size = 0
    counted = 0
    deadline: float | None = None
    names: list[str] | None = None
    started = 0.0


class Slots:
    """Replies that are not sent yet.

    Attributes:
        open: a reply is undecided or waits for a commit.
        awaited: what the owner waits for, see `Connection.resume`.
        current: the list in which the next command takes its place; None: there is none, nothing is undecided.
        planned: the current list has places that a scheduler fills.
        planner: what has planned their commands.
        size: bytes of the replies of the current list that no scheduler has filled.
        reads: rows that the gets among the others read.
        direct: a get may be answered without a plan: no get of the current list, and no command of those that wait, is
            planned before it, which may show a later state of its row.
        waiting: lists that cannot leave yet, or wait for those before them, in order.
        background: what a scheduler that carries out groups in the background notes of the connection.
    """

    __slots__ = (
        "awaited", "background", "current", "direct", "open", "owner", "planned", "planner", "reads", "size",
        "waiting",
    )  # fmt: skip

    def __init__(self, owner: SlotOwner) -> None:
        self.owner = owner
        self.waiting: list[Replies] = []
        self.current: Replies | None = None
        self.planned = False
        self.open = False
        self.awaited: Awaited | None = None
        self.background: Any = None
        self.planner: Any = None
        self.size = self.reads = 0
        self.direct = True

    @property
    def full(self) -> bool:
        """Return whether so many replies wait that no more commands are taken."""
        waiting = self.waiting
        return bool(waiting) and (
            sum(map(len, waiting)) > MAX_WAITING or sum([each.size for each in waiting]) > MAX_BYTES
        )

    @property
    def queued_bytes(self) -> int:
        """Return how many bytes of replies to commands that were not planned have not left, nor wait for a commit."""
        return 0 if self.current is None else self.size

    @property
    def undecided(self) -> bool:
        """Return whether a planned command has no reply yet."""
        return self.planned or (bool(self.waiting) and any(each.undecided for each in self.waiting))

    @property
    def undecided_size(self) -> int:
        """Return how many bytes the planned commands have that have no reply yet, and those of the same lists."""
        current = self.current.input_size if self.planned and self.current is not None else 0
        return current + sum([each.input_size for each in self.waiting if each.undecided])

    def count_waiting(self) -> int:
        """Return how many bytes wait that `stats` has not counted; it does so by then."""
        more = 0
        for each in self.waiting:
            size = sum(map(len, each))
            more += size - each.counted
            each.counted = size
        return more

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
            self.direct = not (self.waiting and self.undecided)
        return current

    def end_chunk(self) -> None:
        """Send the current list if no place of it is open and nothing precedes it; called once input is planned."""
        if not self.planned and self.current is not None:
            self.send_or_queue(self.current)

    def flush(self, commits: Commits) -> None:
        """Send the replies to commands that were not planned, after the commit of what is written so far."""
        current = self.current
        if current is None or self.planned:
            return
        number = commits.unsettled
        if number is None:
            self.send_or_queue(current)
            return
        if self.waiting and self.waiting[-1].commit == number:
            self.current = None
            self._join(current)
            return
        current.commit, current.late = number, True
        commits.when_settled(number, partial(settled, [(self, self.detach(undecided=False))]))

    def detach(self, *, undecided: bool = True) -> Replies:
        """Take the current list, which cannot leave yet; with `undecided`, a scheduler fills its places later."""
        current = self.current
        assert current is not None, "a scheduler fills the places of a list"
        self.planned, self.current, current.open, current.undecided = False, None, True, undecided
        if not undecided:
            current.size = sum(map(len, current))
        self.waiting.append(current)
        return current

    def wait_for(self, replies: Replies) -> None:
        """Append a list to those that wait, whose places a scheduler fills later."""
        replies.open = replies.undecided = self.open = True
        self.waiting.append(replies)

    def send_before(self, replies: Replies, place: int) -> None:
        """Send the replies of a list from `detach` before a place that waits, unless others precede them."""
        if self.waiting[0] is not replies or not any(replies[:place]):
            return
        first = Replies(replies[:place])
        replies[:place] = [b""] * place
        if replies.names is not None:
            first.names, first.started = replies.names[:place], replies.started
        self.owner.send_replies(first)

    def completed(self, replies: Replies) -> None:
        """Send a list from `detach` that may leave now, once those before it are, and those that wait for it."""
        replies.open = replies.undecided = False
        while self.waiting and not self.waiting[0].open:
            first = self.waiting.pop(0)
            self.open = bool(self.waiting) or self.current is not None
            self.owner.send_replies(first)
        if self.awaited is not None:
            self.notify()

    def notify(self) -> None:
        """Let the owner resume if what it awaits has happened."""
        if self.awaited is not None and not (self.open if self.awaited is Awaited.SENT else self.undecided):
            awaited, self.awaited = self.awaited, None
            self.owner.resume(awaited)

    def send_or_queue(self, current: Replies) -> None:
        """Send the current list, whose places are filled, once those before it are sent."""
        self.current = None
        self.open = bool(self.waiting)
        if not current:
            return
        if self.waiting:
            self._join(current)
        else:
            self.owner.send_replies(current)

    def _join(self, current: Replies) -> None:
        """Let a list leave with the last one that waits."""
        last = self.waiting[-1]
        last += current
        last.size += sum(map(len, current))
        last.counted += current.counted
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
            each.detach(undecided=False)
            waiting.append((each, current))
        else:
            each.send_or_queue(current)
        if each.awaited is not None:
            each.notify()
    return waiting


def settled(waiting: Sequence[tuple[Slots, Replies]], lost: str) -> None:
    """Send lists that have waited for a commit.

    Args:
        waiting: see `decided`, the oldest lists that wait.
        lost: why the commit failed, which is sent in place of each reply; empty if it succeeded.
    """
    for slots, replies in waiting:
        if lost:
            error = ServerError(lost)
            replies[:] = [replaced(each, error) if each else each for each in replies]
            slots.owner.replies_lost()
        slots.completed(replies)
