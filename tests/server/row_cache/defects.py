"""Runs `kvref` with one defect of the row cache over a database server: `python defects.py NAME serve …`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from kvref.cli import main
from kvref.server.executors.mysql import cached_reads
from kvref.storage.isolation import Isolation
from kvref.storage.mysql.binlog import eligibility, events, follower, row_cache
from kvref.storage.mysql.binlog.events import Change, LogReader
from kvref.storage.mysql.binlog.local_log import LocalLog
from kvref.storage.mysql.binlog.positions import LogEnd
from kvref.storage.mysql.binlog.row_cache import RowCache

DIRECTORY = "KVREF_TEST_LOG_DIRECTORY"


def event_lost() -> None:
    rows, seen = LogReader._rows, [0]

    def lossy(self: LogReader, kind: int, body: bytes) -> None:
        seen[0] += 1
        if seen[0] % 4:
            rows(self, kind, body)

    LogReader._rows = lossy  # type: ignore[method-assign]


def applied_out_of_order() -> None:
    take, late = RowCache.take, [Change({}, everything=False, point=None)]

    def swapped(self: RowCache, change: Change | None, version: int, end: LogEnd | None = None) -> None:
        if change is not None:
            before, late[0] = late[0], change
            change = change._replace(keys=before.keys, everything=before.everything)
        take(self, change, version, end)

    RowCache.take = swapped  # type: ignore[method-assign]


def rollback_cached() -> None:
    Isolation.session_level = property(lambda _: "READ UNCOMMITTED")  # type: ignore[assignment,method-assign]


def key_update_missed() -> None:
    row, number, after = events._row, [0], [False]

    def after_only(body: bytes, at: int, layout: Any, width: int, keys: Any, types: Any) -> int:
        number[0] += 1
        return row(body, at, layout, width, set() if number[0] % 2 and after[0] else keys, types)

    rows = LogReader._rows

    def reported(self: LogReader, kind: int, body: bytes) -> None:
        after[0], number[0] = kind in events._UPDATES, 0
        rows(self, kind, body)

    events._row = after_only
    LogReader._rows = reported  # type: ignore[method-assign]


def cascade_missed() -> None:
    refusal = eligibility.refusal
    eligibility.refusal = lambda created, key, **_: refusal(created.replace(" CASCADE", " NO ACTION"), key)


def ddl_missed() -> None:
    query = LogReader._query

    def blind(self: LogReader, body: bytes) -> bool:
        ends = query(self, body)
        self._everything = False
        return ends

    LogReader._query = blind  # type: ignore[method-assign]


def wrong_position_after_reconnect() -> None:
    begin = RowCache.begin

    def resumed(self: RowCache, applied: Any, log: Any = None) -> None:
        kept = {cached: dict(cached.rows) for cached in self._tables.values()}
        begin(self, applied, log)
        self._floor = None
        for cached, rows in kept.items():
            cached.rows, cached.refusal = rows, ""

    RowCache.begin = resumed  # type: ignore[method-assign]
    RowCache.end = lambda _: None  # type: ignore[method-assign,assignment,misc]


def filled_by_an_older_read() -> None:
    RowCache._is_current = lambda *_: True  # type: ignore[method-assign,assignment]
    keep = RowCache.put

    def careless(self: RowCache, cached: Any, rows: Any, executed: Any) -> None:
        self._floor = None
        keep(self, cached, rows, executed)

    RowCache.put = careless  # type: ignore[method-assign]


def one_mapping_of_a_table() -> None:
    table = RowCache.table

    def first_only(self: RowCache, form: Any, name: events.Table, types: Any) -> row_cache.CachedTable:
        found = table(self, form, name, types)
        del self._of_table[found.table][1:]
        return found

    RowCache.table = first_only  # type: ignore[method-assign]


def collation_equal_keys() -> None:
    """Keep rows under the spelling of the client."""
    keep = RowCache.put
    read = cached_reads.CachingReader._read

    async def careless(self: Any, group: Any, missing: Any, *, for_hits: bool) -> Any:
        found = await read(self, group, missing, for_hits=for_hits)
        if self._executed is not None:
            keep(self._cache, group.cached, found, self._executed)
        return found

    cached_reads.CachingReader._read = careless  # type: ignore[method-assign]


def not_compared() -> None:
    RowCache.covers = lambda *_: True  # type: ignore[method-assign,assignment]


def end_of_log_not_compared() -> None:
    LocalLog.is_read = lambda self: self._file >= 0  # type: ignore[method-assign]


def log_elsewhere() -> None:
    """No defect: the files of the log are not where the server says."""
    follower._Source.directories = lambda _: (  # type: ignore[method-assign]
        "/proc/0/root",
        os.environ[DIRECTORY],
    )


DEFECTS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        event_lost, applied_out_of_order, rollback_cached, key_update_missed, cascade_missed, ddl_missed,
        wrong_position_after_reconnect, filled_by_an_older_read, one_mapping_of_a_table, collation_equal_keys,
        not_compared, end_of_log_not_compared,
    )
}  # fmt: skip

if __name__ == "__main__":
    (DEFECTS | {log_elsewhere.__name__: log_elsewhere})[sys.argv[1]]()
    main(sys.argv[2:], prog_name="kvref")
