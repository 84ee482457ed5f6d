"""A MariaDB server with HandlerSocket, for tests of kvref that reads through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from database import database_or_skip, sql
from live import missing_skips

from kvref_testbed.targets import SQLServer, handlersocket
from kvref_testbed.targets.ports import free_port
from kvref_testbed.targets.progress import QUIET

SECRET = "s3cret of many"
VARIABLE = "KVREF_HANDLERSOCKET_SECRET"
AA = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


@dataclass(frozen=True)
class Base:
    """A MariaDB server and its HandlerSocket's port and level."""

    server: SQLServer
    port: int
    level: str

    @property
    def dsn(self) -> str:
        """Return the DSN that uses it."""
        return f"{self.server.dsn}?handlersocket={self.port}&handlersocket_level={self.level}"

    def rounds(self) -> int:
        """Return the number of look-ups through HandlerSocket so far."""
        ((_, count),) = sql(self.server, "SHOW GLOBAL STATUS LIKE 'handlersocket_hs_table_lock'")
        return int(count)


@contextmanager
def base(level: str, *more: str) -> Iterator[Base]:
    port = free_port()
    with missing_skips():
        options = handlersocket.options(port, SECRET, QUIET, level)
    with database_or_skip("mariadb", [*options, *more]) as server:
        sql(server, handlersocket.AS_USUAL)
        yield Base(server, port, level)
