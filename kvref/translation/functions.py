"""Functions of MySQL that SQLite lacks or means otherwise, for a connection that runs translated statements."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, TypeAlias

from kvref import collations
from kvref.collations.charsets import CHARSETS

if TYPE_CHECKING:
    import sqlite3

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
        ("member", 1, lambda cell: "" if isinstance(cell, int | bytes) else cell),  # a number that is no member
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
        raise ValueError(f"{number} is no unsigned number")
    return number


def _unix_timestamp(*moment: float) -> float:
    return moment[0] if moment else int(time.time())
