"""Tables that were read before: read again only where the server shows another CREATE TABLE.

What information_schema says takes half a dozen queries a table, and mapped tables are looked at every second.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from kvref.storage.containers import Table

# Changes with rows, not with DDL.
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")
OF_THE_CLIENT: Final = range(2000, 3000)  # numbers of errors that the server did not send: the connection is lost


class KnownTables:
    """The tables of one server as one profile reads them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Table]] = {}

    def table(self, connection: Connection[Cursor], source: str, read: Callable[[], Table | None]) -> Table | None:
        """Return a table as it was read, or read it.

        Args:
            connection: to the server.
            source: the table's quoted name.
            read: reads it; None where there is none.

        Raises:
            MySQLError: the connection is lost.
            ConfigError: as `read` does.
        """
        # In this order: what is read is never older than the text it is kept under.
        text = _shown(connection, source)
        known = self._known.get(source)
        if text is not None and known is not None and known[0] == text:
            return known[1]
        table = read()
        if text is not None and table is not None:
            self._known[source] = text, table
        return table


def _shown(connection: Connection[Cursor], source: str) -> str | None:
    """Return the CREATE TABLE, None where the server shows none: no such table, no privilege."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SHOW CREATE TABLE {source}")
            row: Any = cursor.fetchone()
    except pymysql.err.MySQLError as error:
        if error.args[0] in OF_THE_CLIENT or not connection.open:
            raise
        return None
    return _COUNTER.sub("", row[1] if isinstance(row[1], str) else row[1].decode("utf-8", "replace"))
