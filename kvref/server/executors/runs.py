"""Commands of one connection that a fast path carries out together, and replies to in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kvref.protocol.replies import ServerError
from kvref.server.executors.base import Later

MAX_RUN: Final = 64  # commands of one connection that are carried out together; of a burst of gets somewhat more
MAX_WORDS: Final = 1000  # keys of one get
TURN: Final = 64 << 10  # bytes of replies that are there at once; what is left of the input waits for its turn
MAX_VALUES: Final = 1 << 20  # bytes of the values of one get of several keys: the least that `reply_size_max` may be


class InRun(Protocol):
    """A command of a run.

    Attributes:
        data: what arrived of it.
        left: it has to take the slow path.
        answered: called once it is left, or answered.
    """

    data: bytes
    left: bool
    answered: Callable[[], None]

    def replies(self) -> list[bytes | ServerError]:
        """Return the replies and count the commands, most often one; only once it is answered and not left."""


class Run:
    """Commands of one connection that are carried out together, and replied to in their order.

    Args:
        commands: at least one.
        later: see `Later`.
    """

    __slots__ = ("_commands", "_later", "_waiting")

    def __init__(self, commands: Sequence[InRun], later: Later) -> None:
        self._commands = commands
        self._later = later
        self._waiting = len(commands)
        for each in commands:
            each.answered = self._answered

    def _answered(self) -> None:
        self._waiting -= 1
        if self._waiting:
            return
        replies: list[bytes | ServerError] = []
        left = len(self._commands)
        for number, each in enumerate(self._commands):
            if each.left:
                left = number  # what follows was only read, or was not written either
                break
            replies += each.replies()
        rest = self._commands[left:]
        self._later(replies, b"".join([each.data for each in rest]) if rest else b"")


def reply_alone(command: InRun, later: Later) -> None:
    """Reply to a command that is alone in its run."""
    if command.left:
        later([], command.data)
    else:
        later(command.replies(), b"")


def nothing() -> None:
    """Do nothing: the command is in no run yet."""
