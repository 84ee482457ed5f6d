"""The target of a literal case: the endpoint under judgment, and the suite's own tables behind it."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Final

import pymysql

from kvref_conformance.sql import binlog

if TYPE_CHECKING:
    from kvref_conformance.endpoints.endpoint import Endpoint
    from kvref_conformance.judging.player import Result
    from kvref_conformance.sql.base import Database
    from kvref_conformance.sql.world import World
    from kvref_conformance.wire.connection import Connection

LOG_SECONDS: Final = 2.0


class EndpointTarget:
    """The `player.Target` of an endpoint.

    Args:
        endpoint: the endpoint.
        world: the tables behind it, where the run has them.
    """

    def __init__(self, endpoint: Endpoint, world: World | None) -> None:
        self._endpoint = endpoint
        self._world = world
        self._named: dict[str, Database] = {}
        self._mark = ("", 0)

    @property
    def world(self) -> World:
        """Return the tables; a case that uses them is not-run without --sql."""
        assert self._world is not None, "a case with SQL is not-run without --sql"
        return self._world

    def connect(self) -> Connection:
        """Open a connection."""
        return self._endpoint.connect()

    def execute(self, name: str, statement: str) -> Result:
        """Run a statement; with an empty name on the suite's own connection, where each statement commits itself."""
        if name and name not in self._named:
            self._named[name] = self.world.database.another()
        database = self._named[name] if name else self.world.database
        try:
            if statement.startswith("SELECT"):
                return {"rows": database.query(statement)}
            database.execute(statement)
        except (pymysql.MySQLError, sqlite3.Error) as error:
            return {"error": [0, str(error)]}
        return {"affected": None}

    def server(self, action: str) -> str:
        """Make the endpoint read its configuration again; a literal case has no other action."""
        assert action == "reload", f"{action} is not an action of a literal case"
        self.world.reload()
        return "open"

    def mark(self) -> None:
        """Remember where the binary log ends; raises NotRun where there is none."""
        self._mark = binlog.end(self.world.database)

    def logged(self, wanted: tuple[str, ...]) -> str:
        """Return what came into the binary log since the mark; 5.6 shows it a moment after the rows."""
        deadline = time.monotonic() + LOG_SECONDS
        while (got := binlog.since(self.world.database, self._mark)) not in wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        return got

    def close(self) -> None:
        """Close the named SQL connections; what was not committed is gone."""
        for database in self._named.values():
            database.close()
