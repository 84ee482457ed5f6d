"""Positions in a binary log: GTID sets of MySQL, file and offset of MariaDB.

A *point* is the end of one transaction in the log. *Executed* is what the server has made visible to readers:
`gtid_executed` of MySQL, `Binlog_snapshot_position` of MariaDB. Both change after the commit in InnoDB and before its
client gets the answer. A replica may get the event of a transaction earlier than that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from kvref.errors import KvrefError


class LogError(KvrefError):
    """The log cannot be followed: its end, or a position that cannot be compared."""


class Gtid(NamedTuple):
    """A transaction of MySQL: UUID of the server where it was committed, 32 hexadecimal digits; number from 1."""

    source: str
    number: int


class FilePoint(NamedTuple):
    """An offset in the files of MariaDB's log: the number at the end of a file's name, and the end of an event."""

    file: int
    offset: int


Point = Gtid | FilePoint


class LogEnd(NamedTuple):
    """How far a log was read: the name of its file, the end of the last event.

    `head`: the first bytes of its first event: time, type and id of the server.
    """

    file: str
    head: bytes
    offset: int


class GtidSet:
    """A GTID set of MySQL, such as `3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7`.

    Raises LogError: it has tags (MySQL 8.3 and later), which this reader does not know.
    """

    def __init__(self, text: str = "") -> None:
        # First and last number of each interval, in ascending order and with gaps between them.
        self.intervals: dict[str, list[list[int]]] = {}
        for each in text.replace("\n", "").split(","):
            source, *parts = each.strip().split(":")
            if not source:
                continue
            found = self.intervals[source.replace("-", "").lower()] = []
            for part in parts:
                first, _, last = part.partition("-")
                if not first.isdigit():
                    raise LogError(f"gtid_executed has the tag {first!r}: the row cache needs GTIDs without tags")
                found.append([int(first), int(last or first)])

    def has(self, point: Point) -> bool:
        """Return whether a transaction belongs to it."""
        assert isinstance(point, Gtid)
        return self._has(point.source, point.number, point.number)

    def covers(self, other: Position) -> bool:
        """Return whether all transactions of another position of the same log belong to this one."""
        assert isinstance(other, GtidSet)
        return all(self._has(source, first, last) for source, found in other.intervals.items() for first, last in found)

    def add(self, point: Point) -> None:
        """Add a transaction."""
        assert isinstance(point, Gtid)
        number, found = point.number, self.intervals.setdefault(point.source, [])
        if found and found[-1][1] + 1 == number:  # nearly always
            found[-1][1] = number
            return
        if self.has(point):
            return
        found.append([number, number])
        found.sort()
        merged = found[:1]
        for interval in found[1:]:
            if merged[-1][1] + 1 == interval[0]:
                merged[-1][1] = interval[1]
            else:
                merged.append(interval)
        self.intervals[point.source] = merged

    def copy(self) -> GtidSet:
        """Return a position with the same transactions, which `add` does not change."""
        copied = GtidSet()
        copied.intervals = {source: [[*each] for each in found] for source, found in self.intervals.items()}
        return copied

    def _has(self, source: str, first: int, last: int) -> bool:
        found = self.intervals.get(source)
        if not found:
            return False
        at = bisect_right(found, first, key=lambda each: each[0]) - 1
        return at >= 0 and found[at][1] >= last


class FilePosition:
    """Everything up to an offset in the log of one MariaDB server; offsets of two servers cannot be compared."""

    def __init__(self, point: FilePoint, server: int) -> None:
        self.point = point
        self.server = server

    def has(self, point: Point) -> bool:
        assert isinstance(point, FilePoint)
        return point <= self.point

    def covers(self, other: Position) -> bool:
        assert isinstance(other, FilePosition)
        return other.server == self.server and other.point <= self.point

    def add(self, point: Point) -> None:
        assert isinstance(point, FilePoint)
        self.point = max(self.point, point)

    def copy(self) -> FilePosition:
        return FilePosition(self.point, self.server)


# Which transactions of a log are meant: all that are executed, or all that were read.
Position = GtidSet | FilePosition

SETTLING: Final = 1.0  # seconds for which a position must stay the same to be settled


class Settled:
    """Which executed positions prove what readers see: all of MySQL, and those of MariaDB behind a transaction.

    MariaDB begins a file of its log within a group commit, and before InnoDB commits the group
    (`MYSQL_BIN_LOG::trx_group_commit_leader`). Up to the first transaction of the file, its position proves nothing of
    that group.
    """

    def __init__(self) -> None:
        self._first: FilePoint | None = None  # the first transaction that was read of the newest file
        self._last: Position | None = None  # what `of` returned last
        self._waiting: tuple[FilePoint, float] | None = None  # the point that is not settled, and since when

    def passed(self, point: Point) -> None:
        """Take note of the end of a transaction that was read."""
        if isinstance(point, FilePoint) and (self._first is None or self._first.file != point.file):
            self._first = point

    def of(self, executed: Position, at: float) -> Position | None:
        """Return a position that is settled, or the last one that was; None if there was none.

        `executed`: what the server reports; `at`: monotonic time in seconds before the query.
        """
        if isinstance(executed, FilePosition):
            point, first = executed.point, self._first
            if first is None or point.file != first.file or point < first:
                if self._waiting is None or self._waiting[0] != point:
                    self._waiting = point, at
                if at - self._waiting[1] < SETTLING:
                    return self._last
        self._last = executed
        return executed


def file_number(name: str) -> int:
    return int(name.rpartition(".")[2])


# What returns the executed position: one row with a GTID set; rows of SHOW STATUS.
_OF_MYSQL: Final = "SELECT @@GLOBAL.gtid_executed"
_OF_MARIADB: Final = "SHOW STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')"


def _text(cell: object) -> str:
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def executed(query: Callable[[str], Iterable[Sequence[object]]], mariadb: int | None) -> Position:
    """Query what a server has executed; raises LogError if the position cannot be compared, and as `query`.

    `mariadb`: server id of a MariaDB server; None: it is MySQL.
    """
    rows = query(_OF_MYSQL if mariadb is None else _OF_MARIADB)
    if mariadb is None:
        ((gtids,),) = rows
        return GtidSet(_text(gtids))
    values = {_text(name).lower(): _text(value) for name, value in rows}
    name, offset = values["binlog_snapshot_file"], values["binlog_snapshot_position"]
    if not name:
        raise LogError("Binlog_snapshot_file is empty: the server writes no binary log")
    return FilePosition(FilePoint(file_number(name), int(offset)), mariadb)
