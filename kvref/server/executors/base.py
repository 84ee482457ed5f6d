"""Interfaces of an executor and of its fast path, which the connection and the server use."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Protocol

from kvref.engine.mapping import Directory
from kvref.engine.operations import OperationGen
from kvref.engine.session import Session
from kvref.protocol.plain_frames import PlainFrame
from kvref.protocol.replies import Reply, ServerError
from kvref.protocol.rules import WireRules
from kvref.server.commits import Commits
from kvref.server.executors.loop_turn import LoopTurn
from kvref.server.planner import Planner

# Takes the replies of commands in their order, and the input from the first one on that needs the slow path.
Later = Callable[[list[bytes | ServerError], bytes], None]
# Takes the replies to the first of some frames, and the number of those that were taken: the others need the slow path.
LaterFrames = Callable[[list[bytes | ServerError], int], None]


class Wait(Enum):
    """What the replies of a fast path wait for."""

    NOTHING = auto()
    COMMIT = auto()  # of what is written so far
    ANSWER = auto()  # of the store: they come later


class FastPath(Protocol):
    """Carries out plain commands without verbs and operations, and text without the parser, by the same rules.

    One of a store serves all connections that have the same mapping in force and the same rights.
    """

    def usable(self, now: float) -> bool:
        """Return whether commands can be run now; called before each `hit` and `take`.

        Args:
            now: loop time.
        """

    def hit(self, data: bytes, loop_turn: LoopTurn | None) -> bytes | None:
        """Return the reply to a single get of a cached row; None for any other input.

        Args:
            data: what arrived.
            loop_turn: in which it was found; None: it may have been found later than other input of this turn.
        """

    def take(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:
        """Run the simple commands at the beginning of the input.

        Args:
            data: what arrived, at the beginning of a command.
            out: gets replies that are there.
            later: called with the others.

        Returns:
            How many bytes were taken, and what the replies wait for.
        """

    @property
    def frames_set(self) -> bool:
        """Return whether `take_frames` takes commands that store something."""

    def take_frames(self, frames: list[PlainFrame], out: list[bytes], later: LaterFrames) -> tuple[int, Wait]:
        """Run the first of some binary commands.

        Args:
            frames: of them, from the beginning of the input, see `PlainFrames`.
            out: gets the replies that are there, empty for a command that is not answered.
            later: called with the others.

        Returns:
            How many frames were taken, and what the replies wait for.
        """


class Executor(Protocol):
    """Carries out the commands of all connections against one store.

    Attributes:
        plans: `planner` may return one.
    """

    plans: bool

    def begin(self, reads: str = "") -> Any:
        """Return the transaction of a new connection: the executor's own, one at a time.

        Args:
            reads: which servers answer its plain gets, see `MappedTables.reads`; empty: as the store says.
        """

    def run(self, transaction: Any, begin: Callable[[], OperationGen], done: Callable[[Reply], None]) -> Reply | None:
        """Run a command; None where `done` is called later with the reply."""

    def commits_of(self, transaction: Any) -> Commits:
        """Return the commits that the replies of a connection with this transaction wait for."""

    def fast_path(self, transaction: Any, session: Session, wire_rules: WireRules) -> FastPath | None:
        """Return what carries out the plain commands of a connection, None where none of them is.

        Args:
            transaction: the connection's.
            session: the connection's.
            wire_rules: grammar facts of the profile.
        """

    def planner(self, transaction: Any, session: Session, wire_rules: WireRules) -> Planner | None:
        """Return what plans the commands of a connection, None where none of them is; see `Planner`.

        Args:
            transaction, session, wire_rules: see `fast_path`.
        """

    def end(self, transaction: Any) -> None:
        """Forget the transaction of a connection that is gone; what it has not committed goes with it."""

    def commit(self) -> None:
        """Commit what is open and notify everyone who waits for it."""

    async def check(self) -> None:
        """Check that the store answers a query, without reading rows; raises StoreError if it does not."""

    async def read_directory(self) -> Directory:
        """Read the configuration tables again."""

    async def close(self) -> None:
        """Finish running commands."""
