"""A client of SQL without kvref, which meets the same faults: it connects again after each error."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from typing import TypeAlias

import pymysql
from cluster.generator import NumberWriter
from pymysql.connections import Connection
from pymysql.cursors import Cursor

_SET = "INSERT INTO test.demo_test (c1, c2) VALUES (%s, %s) ON DUPLICATE KEY UPDATE c2 = VALUES(c2)"
_GET = "SELECT c2 FROM test.demo_test WHERE c1 = %s"
_RETRY = 0.01  # seconds
Connect: TypeAlias = "Callable[[], Connection[Cursor]]"


class SQLWriter(NumberWriter):
    """Writes to the first of some servers that it can connect to, with autocommit.

    Args:
        servers: open a connection each, with a limit of time; raise OSError or PyMySQL's errors.
        client: its name, the beginning of its keys.
    """

    def __init__(self, servers: Sequence[Connect], client: str) -> None:
        super().__init__(client)
        self._servers = cycle(servers)
        self._connection: Connection[Cursor] | None = next(self._servers)()

    def _set(self, key: str, number: int) -> None:
        try:
            self._run(_SET, (key, str(number)))
        except (OSError, pymysql.err.MySQLError) as error:
            # With autocommit no error says whether the statement was committed.
            self.unknown[key].add(number)
            self.refusals.append(str(error).encode())
            self._close()
            time.sleep(_RETRY)  # the next attempt of a client that was refused
        else:
            self._acknowledge(key, number)

    def _get(self, key: str) -> None:
        try:
            self._run(_GET, (key,))
        except (OSError, pymysql.err.MySQLError):
            self._close()

    def _run(self, statement: str, values: Sequence[str]) -> None:
        if self._connection is None:
            self._connection = next(self._servers)()
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(OSError, pymysql.err.MySQLError):
                self._connection.close()
            self._connection = None
