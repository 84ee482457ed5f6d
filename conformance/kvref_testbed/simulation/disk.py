"""A disk whose durable state is that of the last completed sync, under the real SQLite file.

SQLite writes to a file in memory, and only ever appends to its write-ahead log while a world runs (a world is far
smaller than a checkpoint), so that the durable state is the file as it was at the start, and the log up to a length. A
sync makes durable what the log had when the sync began. A crash keeps that, and any part of what came after it.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import asyncio

    from kvref_testbed.simulation.plan import Plan, Writer

_TORN: Final = b"\xa5"


class Disk:
    """The disk of one world.

    Args:
        path: of the SQLite file.
        plan: how long each sync takes, and what fails.
        log: takes a line for each event.
    """

    def __init__(self, path: Path, plan: Plan, log: Callable[[str], None]) -> None:
        self.path = path
        self.log = log
        self.crash_at_sync: Callable[[int, str], None] = lambda _number, _where: None
        self.failed = False  # an error was returned
        self._plan = plan
        self._wal = path.with_name(f"{path.name}-wal")
        self.durable = self.written
        self.flight: int | None = None  # length of the log when the running sync began
        self._syncs = 0
        self._commits = 0

    @property
    def written(self) -> int:
        """Return the length of the log, in bytes."""
        return self._wal.stat().st_size if self._wal.exists() else 0

    def begin(self) -> None:
        """Begin a sync that takes its time."""
        self.flight = self.written
        self.log(f"sync {self._syncs} begins at {self.flight}")
        self.crash_at_sync(self._syncs, "begins")

    def sync(self) -> None:
        """Complete a sync; raises OSError if the plan says so."""
        number, self._syncs = self._syncs, self._syncs + 1
        reached, self.flight = self.written if self.flight is None else self.flight, None
        if number in self._plan.failed_syncs:
            self.failed = True
            self.log(f"sync {number} fails")
            self.crash_at_sync(number, "completes")
            raise OSError(errno.EIO, "Input/output error")
        self.durable = max(self.durable, reached)
        self.log(f"sync {number} is complete: {self.durable}")
        self.crash_at_sync(number, "completes")

    def commit(self) -> None:
        """Note a COMMIT; raises sqlite3.OperationalError if the plan says so."""
        number, self._commits = self._commits, self._commits + 1
        if number in self._plan.failed_commits:
            self.failed = True
            self.log(f"commit {number} fails")
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    def survive(self, path: Path, surviving: float) -> None:
        """Write what a crash leaves to another file.

        Args:
            path: of that file.
            surviving: part of what no sync has completed that reached the disk all the same, 0.0 to 1.0.
        """
        log = self._wal.read_bytes() if self._wal.exists() else b""
        length = self.durable + int((len(log) - self.durable) * surviving)
        path.write_bytes(self.path.read_bytes())
        # A torn page: SQLite finds it by its checksum.
        path.with_name(f"{path.name}-wal").write_bytes(log[:length] + _TORN * min(512, len(log) - length))
        self.log(f"crash: {length} of {len(log)} bytes of the log survive, {self.durable} are synced")


class SyncThread:
    """In the place of the thread that waits for the disk, and of its queue: its work ends at a time of the plan.

    Args:
        loop: of the world.
        disk: of the world.
        duration: returns how long the start of the next work takes and how long the work, in seconds.

    Attributes:
        target: what the thread runs: it takes work from the queue until that is None.
        completed: when its last work was complete (loop time).
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, disk: Disk, duration: Callable[[], tuple[float, float]]
    ) -> None:
        self.target: Callable[[], object]
        self.loop = loop
        self.disk = disk
        self.duration = duration
        self._work: Callable[[], str] | None = None
        self._due: Callable[[], str] | None = None
        self._begun = False
        self.completed = -1.0

    def put(self, work: Callable[[], str] | None) -> None:
        """Give the thread some work, which it does later; None ends it."""
        if work is None:
            return
        assert self._work is None, "the server has one sync at a time"
        self._work, self._begun = work, False
        wait, seconds = self.duration()
        self.loop.call_later(wait, self._begin)
        self.loop.call_later(wait + seconds, self._end)

    def complete(self, work: Callable[[], str]) -> None:
        """Let the thread do some work now."""
        self._due, self.completed = work, self.loop.time()
        self.target()

    def get(self) -> Callable[[], str] | None:
        """Return the work whose time has come; None lets the thread wait, which here is to return."""
        due, self._due = self._due, None
        return due

    def start(self) -> None:
        """Do nothing: the thread waits for work."""

    def join(self) -> None:
        """Return once the work is done: nothing else happens meanwhile."""
        self._begin()
        self._end()

    def _begin(self) -> None:
        if self._work is not None and not self._begun:
            self._begun = True
            self.disk.begin()

    def _end(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            self.complete(work)


class FaultyConnection(sqlite3.Connection):
    """A connection whose COMMIT may fail; `disk` returns that of the world."""

    disk: Callable[[], Disk | None]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run a statement."""
        if sql == "COMMIT" and (disk := type(self).disk()) is not None:
            disk.commit()
        return super().execute(sql, parameters)


class Program(Protocol):
    """Another program that uses the tables."""

    def begin(self) -> bool:
        """Take the lock of the plan, and write; return whether it was free."""

    def end(self) -> None:
        """Commit, and end."""

    def close(self) -> None:
        """End without a commit."""


class OtherProgram:
    """Another program that takes the write lock of a file.

    Args:
        path: of the file.
        writer: what it does.
        number: cas number of the row that it writes.
    """

    def __init__(self, path: Path, writer: Writer, number: int) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        self._row = (writer.key, writer.value, number) if writer.key else None

    def begin(self) -> bool:
        """See `Program`."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            self.close()
            return False
        if self._row:
            self._connection.execute("INSERT OR REPLACE INTO demo_test VALUES (?, ?, 0, ?, 0)", self._row)
        return True

    def end(self) -> None:
        """See `Program`."""
        self._connection.execute("COMMIT")
        self.close()

    def close(self) -> None:
        """See `Program`."""
        self._connection.close()
