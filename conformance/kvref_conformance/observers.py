"""The SQL connections of a case: the suite's own, where each statement commits itself, and others by name."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Overdue
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_conformance.sql import binlog

if TYPE_CHECKING:
    from concurrent.futures import Future

    from kvref_conformance.sql.base import Database

REFUSED: Final = "refused: "
DONE: Final = "done"
LOG_SECONDS: Final = 2.0


class Observers:
    """SQL connections, opened at their first use.

    Args:
        own: the suite's own.
    """

    def __init__(self, own: Database) -> None:
        self._own = own
        self._named: dict[str, Database] = {}
        self._running: dict[str, tuple[str, Future[str]]] = {}
        self._mark = ("", 0)
        self._threads = ThreadPoolExecutor(thread_name_prefix="sql")

    def query(self, statement: str, on: str) -> str:
        """Run a SELECT; returns its rows as text, or why it is refused."""
        try:
            return str(self._of(on).query(statement))
        except (pymysql.MySQLError, sqlite3.Error) as error:
            return f"{REFUSED}{error}"

    def execute(self, statement: str, on: str) -> str:
        """Run a statement; returns DONE, or why it is refused."""
        try:
            self._of(on).execute(statement)
        except (pymysql.MySQLError, sqlite3.Error) as error:
            return f"{REFUSED}{error}"
        return DONE

    def start(self, statement: str, on: str) -> None:
        """Let a statement run on a named connection."""
        self._of(on)
        self._running[on] = statement, self._threads.submit(self.execute, statement, on)

    def end(self, on: str, patience: float) -> tuple[str, str]:
        """Wait for what runs there; returns the statement, and DONE, why it was refused or that it still runs."""
        statement, running = self._running.pop(on)
        try:
            return statement, running.result(patience)
        except Overdue:
            return statement, f"still runs after {patience:g} s"

    def mark(self) -> None:
        """Remember where the binary log ends; raises NotRun where there is none."""
        self._mark = binlog.end(self._own)

    def logged(self, wanted: tuple[str, ...]) -> str:
        """Return what came into the binary log since the mark; 5.6 shows it a moment after the rows."""
        deadline = time.monotonic() + LOG_SECONDS
        while (got := binlog.since(self._own, self._mark)) not in wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        return got

    def close(self) -> None:
        """Close the named connections; what was not committed is gone."""
        for _, running in self._running.values():
            running.cancel()
        for database in self._named.values():
            database.close()
        self._threads.shutdown(wait=False)

    def _of(self, name: str) -> Database:
        if not name:
            return self._own
        if name not in self._named:
            self._named[name] = self._own.another()
        return self._named[name]
