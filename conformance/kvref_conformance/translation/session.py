"""A SQL connection that runs MySQL's statements on a SQLite file, with MySQL's functions and results."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kvref import collations
from kvref.collations.charsets import CHARSETS
from kvref_conformance.translation.expressions import LARGEST
from kvref_conformance.translation.translate import Translator, Untranslatable

if TYPE_CHECKING:
    from pathlib import Path

Cell: TypeAlias = "int | float | str | bytes | None"


def register(connection: sqlite3.Connection, numbers: dict[str, int]) -> None:
    """Define the functions that `expressions.py` and the recorded statements call, and the collations.

    Args:
        connection: of one SQL session.
        numbers: AUTO_INCREMENT counters by table, shared by the sessions of a world.
    """
    collations.register(connection)
    for name, count, function in (
        ("lpad", 3, _lpad),
        ("md5", 1, lambda text: None if text is None else hashlib.md5(_encoded(text, "utf8mb4")).hexdigest()),  # noqa: S324
        ("mysql_hex", 1, _hex),
        ("member", 1, lambda cell: "" if isinstance(cell, int | bytes) else cell),  # a number that is not a member
        ("members", 2, _members),
        ("now", -1, _now),
        ("octet_length", 1, lambda cell: None if cell is None else len(_encoded(cell, "utf8mb4"))),
        ("repeat", 2, lambda text, n: None if text is None else str(text) * n),
        ("to_bytes", 2, lambda cell, charset: None if cell is None else _encoded(cell, charset)),
        ("unix_timestamp", -1, _unix_timestamp),
        ("unsigned", 1, _unsigned),
    ):
        connection.create_function(name, count, function)
    _register_variables(connection)
    _register_numbers(connection, numbers)


def _register_variables(connection: sqlite3.Connection) -> None:
    variables: dict[str, Cell] = {}

    def assign(name: str, value: Cell) -> Cell:
        variables[name] = value
        return value

    connection.create_function("set_user_variable", 2, assign)
    connection.create_function("user_variable", 1, variables.get)


def _register_numbers(connection: sqlite3.Connection, last: dict[str, int]) -> None:
    """Define AUTO_INCREMENT: SQL's inserts alone move a table's counter, and TRUNCATE sets it back (type-048)."""

    def next_number(table: str) -> int:
        return used_number(table, last.get(table, 0) + 1)

    def used_number(table: str, number: int) -> int:
        last[table] = max(last.get(table, 0), number)
        return number

    connection.create_function("next_number", 1, next_number)
    connection.create_function("used_number", 2, used_number)
    connection.create_function("restart_numbers", 1, lambda table: last.pop(table, None))


def _encoded(cell: Cell, charset: str) -> bytes:
    return cell if isinstance(cell, bytes) else CHARSETS[charset].encode(str(cell))


def _hex(cell: Cell) -> str | None:
    if cell is None:
        return None
    return f"{cell % (1 << 64):X}" if isinstance(cell, int) else _encoded(cell, "utf8mb4").hex().upper()


def _lpad(text: Cell, width: int, padding: str) -> str:
    missing = max(0, width - len(str(text)))
    return ((padding * missing)[:missing] + str(text))[:width]


def _members(cell: Cell, labels: str) -> Cell:
    """Return a SET's cell as SQL shows it: of a number, the labels of its bits."""
    if not isinstance(cell, int | bytes):
        return cell
    return ",".join(label for bit, label in enumerate(labels.split(",")) if int(cell) >> bit & 1)


def _now(*digits: int) -> float:
    """Return UNIX time: the statements met only feed NOW to UNIX_TIMESTAMP."""
    return round(time.time(), *digits) if digits else int(time.time())


def _unsigned(number: int | None) -> int | None:
    if number is not None and number < 0:
        raise ValueError(f"{number} is not an unsigned number")
    return number


def _unix_timestamp(*moment: float) -> float:
    return moment[0] if moment else int(time.time())


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
    register(connection, translator.numbers)
    return connection


def _cell(cell: Any) -> Any:
    if not isinstance(cell, bytes):
        return cell
    # SQLite's integers end at 2^63-1; larger ones of BIGINT UNSIGNED are kept as their digits.
    if cell.isdigit() and LARGEST < int(cell) < 1 << 64:
        return int(cell)
    return cell.decode("latin-1")
