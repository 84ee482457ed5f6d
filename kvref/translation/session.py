"""A SQL connection that takes MySQL's statements and carries them out on a SQLite file, answering in MySQL's manner."""

from __future__ import annotations

import re
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kvref.translation import functions
from kvref.translation.expressions import LARGEST
from kvref.translation.translate import Translator, Untranslatable

if TYPE_CHECKING:
    from pathlib import Path

Result: TypeAlias = dict[str, Any]

LOCK_WAIT_SECONDS: Final = 5.0
# MySQL's error numbers for what SQLite says.
_ERRORS: Final = (
    (r"UNIQUE constraint failed|PRIMARY KEY", 1062),
    (r"NOT NULL constraint failed", 1048),
    (r"FOREIGN KEY constraint failed", 1452),
    (r"CHECK constraint failed", 3819),
    (r"no such table", 1146),
    (r"no such column|has no column", 1054),
    (r"table .* already exists", 1050),
    (r"locked|busy", 1205),
    (r"user-defined function raised", 1690),
)
_AUTOCOMMIT: Final = re.compile(r"\s*SET\s+(?:SESSION\s+)?(?:@@)?autocommit\s*=\s*(\w+)", re.IGNORECASE)
_QUERY: Final = re.compile(r"[\s(]*(?:SELECT|SHOW|WITH|OPTIMIZE)\b", re.IGNORECASE)
_COMMITS: Final = re.compile(r"\s*(?:CREATE|ALTER|DROP|RENAME|TRUNCATE|LOCK)\b", re.IGNORECASE)


class Session:
    """One connection.

    Args:
        file: the SQLite file.
        translator: translator of the SQL dialect, shared by the sessions of the file.
        guard: lock for translating a statement, since the translator caches tables.
    """

    def __init__(self, file: Path, translator: Translator, guard: threading.Lock) -> None:
        self._translator = translator
        self._guard = guard
        self._autocommit = True
        self._connection = connect(file, translator)
        for statement in translator.session:
            self._connection.execute(statement)

    def execute(self, statement: str) -> Result:
        """Run a statement of MySQL's.

        Returns:
            {"rows": …}, {"affected": n} or {"error": [number, text]}: MySQL's number, SQLite's text; number 0 where the
            statement has no form in SQLite.
        """
        if found := _AUTOCOMMIT.match(statement):
            self._autocommit = found[1].upper() in {"1", "ON"}
        within = self._connection.in_transaction
        try:
            with self._guard:
                translated = self._translator.translate(statement)
            last = self._run(translated, commits=_COMMITS.match(statement) is not None)
            if _QUERY.match(statement):
                return {"rows": [[_cell(cell) for cell in row] for row in (last or ())]}
            return {"affected": 0 if last is None else max(last.rowcount, 0)}
        except Untranslatable as error:
            return {"error": [0, str(error)]}
        except sqlite3.Error as error:
            if not within and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")  # of a statement that took several here
            self._connection.execute("PRAGMA foreign_keys = ON")
            text = str(error)
            return {"error": [next((n for pattern, n in _ERRORS if re.search(pattern, text)), 0), text]}

    def close(self) -> None:
        """Close; what was not committed is gone."""
        self._connection.close()

    def _run(self, statements: list[str], *, commits: bool) -> sqlite3.Cursor | None:
        connection = self._connection
        if commits and connection.in_transaction:
            connection.execute("COMMIT")
        if not self._autocommit and not commits and not connection.in_transaction:
            connection.execute("BEGIN")
        last = None
        for statement in statements:
            if statement == "BEGIN" and connection.in_transaction:
                connection.execute("COMMIT")
            if statement not in {"COMMIT", "ROLLBACK"} or connection.in_transaction:
                last = connection.execute(statement)
        return last


def connect(file: Path, translator: Translator) -> sqlite3.Connection:
    """Open a file for the statements of a translator: each commits itself, durability is the server's matter."""
    connection = sqlite3.connect(file, timeout=LOCK_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    functions.register(connection, translator.numbers)
    return connection


def _cell(cell: Any) -> Any:
    if not isinstance(cell, bytes):
        return cell
    # SQLite's integers end at 2^63-1; larger ones of BIGINT UNSIGNED are kept as their digits.
    if cell.isdigit() and LARGEST < int(cell) < 1 << 64:
        return int(cell)
    return cell.decode("latin-1")
