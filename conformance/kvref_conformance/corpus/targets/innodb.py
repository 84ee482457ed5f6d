"""The replay target of `kvref serve` on InnoDB of a server without the plugin: SQL goes to that server unchanged."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kvref.errors import SuiteError
from kvref_conformance.corpus.targets.kvref_process import KvrefProcess, settings_of
from kvref_conformance.corpus.targets.mysql_database import MySQLDatabase, start_again
from kvref_conformance.corpus.targets.sqlite import plugin_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pymysql.connections import Connection as SQLConnection
    from pymysql.cursors import Cursor

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.corpus.targets.kvref_process import Machine
    from kvref_conformance.wire.connection import Connection

# What another server needs to take the tables of a version as that version took them, where it can. And a write that
# outlives the process is enough here: no conversation cuts the power. 200 clients have an open batch at once.
DURABLE: Final = (
    "--innodb_flush_log_at_trx_commit=2", "--skip-log-bin", "--innodb-doublewrite=OFF", "--max-connections=400",
)  # fmt: skip
OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "8.0.33": DURABLE,
    "5.6.14": (
        *DURABLE, "--character-set-server=latin1", "--collation-server=latin1_swedish_ci",
        "--sql-mode=NO_ENGINE_SUBSTITUTION", "--explicit-defaults-for-timestamp=OFF", "--innodb-strict-mode=OFF",
    ),
}  # fmt: skip
# MariaDB's nearest to utf8mb4_0900_ai_ci, the default of 8.0.33.
MARIADB_0900: Final = "--collation-server=utf8mb4_uca1400_nopad_ai_ci"
# The one setting that is MySQL's own, for kvref and for SQL alike.
LOCK_WAIT: Final = "innodb_lock_wait_timeout="


def options(version: str, *, mariadb: bool) -> Sequence[str]:
    """Return the options of a server that shall take a version's tables."""
    return (*OPTIONS[version], MARIADB_0900) if mariadb and version == "8.0.33" else OPTIONS[version]


class Database(Protocol):
    """A MySQL or MariaDB server at hand; `kvref_testbed.targets.servers` gives one."""

    def start(self) -> None:
        """Start on its data folder."""

    def stop(self) -> None:
        """End it in order; its data stay."""

    def kill(self) -> None:
        """Kill it with SIGKILL; its data stay as they are."""

    def exit_status(self) -> int | None:
        """Return how it ended by itself, negative for a signal; None while it runs."""

    def connect(self, patience: float | None = None) -> SQLConnection[Cursor]:
        """Open a SQL connection with autocommit; `patience` as `mysql_database.Server` has it."""


class InnoDBTarget:
    """The `ReplayTarget` of kvref over a SQL server that runs, whose owner ends both.

    Args:
        machine: `kvref serve` from the database.
        database: all its databases are dropped, again and again.
        version: the MySQL version whose recordings it is compared with.
        schemas: makes the schemas again; None: as MySQL wants it.
        script: makes the plugin's own tables; empty: in a schema that is not there.
    """

    def __init__(
        self,
        machine: Machine,
        database: Database,
        version: str,
        schemas: MySQLDatabase | None = None,
        script: Sequence[str] = (),
    ) -> None:
        self.version = version
        self._server = database
        self._database = schemas or MySQLDatabase(database)
        self._process = KvrefProcess(machine)
        self._current: Conversation | None = None
        self._schema = script or ["CREATE DATABASE innodb_memcache", *plugin_schema()]

    def prepare(self, conversation: Conversation) -> str:
        """Set the world up; returns "" or "closed", see `KvrefProcess.load`.

        Raises:
            SuiteError: a statement of the set-up failed, or kvref has no such option.
        """
        shared = [each for each in settings_of(conversation) if each.startswith(LOCK_WAIT)] or [f"{LOCK_WAIT}50"]
        self._process.settle()
        if conversation is self._current:
            # It is a repetition: a command that was too slow in the first run must not run in the new tables.
            self._process.stop()
        self._current = conversation
        try:
            self._set_up(conversation, shared)
        except SuiteError:
            if self._server.exit_status() is None:
                raise
            self._set_up(conversation, shared)
        return self._process.load(conversation)

    def _set_up(self, conversation: Conversation, shared: Sequence[str]) -> None:
        if self._server.exit_status() is not None:
            self._server.start()  # it died of the conversation before
        for setting in shared:
            self._database.query(f"SET GLOBAL {setting}")
        self._database.fill(self._schema, conversation)

    def connect(self) -> Connection:
        """Open a memcached connection, see `KvrefProcess.connect`."""
        return self._process.connect()

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        """Run a statement; see `ReplayTarget.execute`."""
        return self._database.execute(name, statement)

    def server(self, action: str) -> str:
        """Do `reload`, or `restart` or `kill9` of both servers; returns "open" or "closed"."""
        self.finish()
        return self._process.server(action, partial(start_again, self._server))

    def exit_status(self) -> int | None:
        """Return the exit status of a kvref that died; None while it runs."""
        return self._process.exit_status()

    def settle(self) -> None:
        """Wait until what closed connections had pending is committed."""
        self._process.settle()

    def finish(self) -> None:
        """Close the SQL connections."""
        self._database.close()
