"""The replay target of the real plugin: MySQL with daemon_memcached, set up again for each conversation.

One server serves many conversations: between two of them the plugin is unloaded, every schema dropped and created
    again,
and the plugin loaded. A new server is started only if options differ, after a crash, and after statements that leave
traces outside the schemas. Cas numbers continue while the server runs, also after a reload.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import pymysql

from kvref.errors import SuiteError
from kvref_conformance.corpus.targets.mysql_database import MySQLDatabase, start_again
from kvref_conformance.wire.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pymysql.connections import Connection as SQLConnection
    from pymysql.cursors import Cursor

    from kvref.addresses import SocketAddress
    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.holes import Json

INSTALL: Final = "INSTALL PLUGIN daemon_memcached SONAME 'libmemcached.so'"
INSTALLED: Final = "SELECT 1 FROM information_schema.plugins WHERE plugin_name = 'daemon_memcached'"
UNINSTALL: Final = "UNINSTALL PLUGIN daemon_memcached"
# The port opens 20 ms after INSTALL PLUGIN, and never with a configuration the plugin dislikes.
PORT_SECONDS: Final = 3.0
DEATH_SECONDS: Final = 5.0
# How much further on the cas numbers of a used server are: further than a conversation counts.
CAS_NUMBERS: Final = 1000
THREADS: Final = 2
DEFAULT_MAPPING: Final = (
    "SELECT db_schema, db_table, key_columns FROM innodb_memcache.containers ORDER BY name <> 'default', name LIMIT 1"
)
# What a statement may begin with and leave nothing behind that dropping the schemas does not remove.
CLEAN: Final = re.compile(
    r"\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|TRUNCATE|CREATE\s+(?:TEMPORARY\s+)?TABLE|ALTER\s+TABLE|DROP\s+TABLE"
    r"|CREATE\s+(?:UNIQUE\s+)?INDEX|BEGIN|START|COMMIT|ROLLBACK|SHOW|LOCK|UNLOCK|DO\s|RESET\s+MASTER"
    r"|SET\s+(?!\s*(?:GLOBAL|PERSIST|@@GLOBAL)))",
    re.IGNORECASE,
)


class Machine(Protocol):
    """A MySQL server with the plugin at hand; `kvref_testbed.targets.servers` gives one."""

    @property
    def address(self) -> SocketAddress:
        """Return the address where the plugin listens once it is installed."""

    def boot(self, options: Sequence[str]) -> None:
        """Start on a fresh data folder without the plugin; one that ran before is gone."""

    def start(self) -> None:
        """Start again on the same data folder."""

    def stop(self) -> None:
        """End it in order."""

    def kill(self) -> None:
        """Kill it with SIGKILL."""

    def exit_status(self) -> int | None:
        """Return how it ended by itself, negative for a signal; None while it runs."""

    def connect(self, patience: float) -> SQLConnection[Cursor]:
        """Open a SQL connection with autocommit; a statement is given up after so many seconds."""

    def config_script(self) -> list[str]:
        """Return the statements of the plugin's own schema."""


class PluginTarget:
    """The `ReplayTarget` of one plugin version; boots the machine at once, whose owner ends it.

    Args:
        machine: the server.
        used: let it look used at the begin of each conversation: cas numbers are further on, and each worker thread has
            read a row, so that uninitialised memory is seen to be that.
    """

    def __init__(self, machine: Machine, *, used: bool = False) -> None:
        self._machine = machine
        self._options: tuple[str, ...] = ()
        self._database = MySQLDatabase(machine)
        self._reusable = True
        self._used = used
        self._boot(())
        self.version = str(self._database.query("SELECT VERSION()")[0][0])

    def prepare(self, conversation: Conversation) -> str:
        """Set the world up; returns "", "closed" or "server died", the state of the port.

        Raises:
            SuiteError: a statement of the set-up failed.
        """
        if not (self._reusable and conversation.options == self._options and self._unloaded()):
            self._boot(conversation.options)
        state = self._set_up(conversation)
        if state == "open" and self._used:
            self._read_a_row()
            if self.exit_status() is not None:
                # A row that kills whoever reads it: the conversation shall do so itself.
                self._boot(conversation.options)
                state = self._set_up(conversation)
        leaves_nothing = all(CLEAN.match(step.statement or "DO ") for step in conversation.steps)
        self._reusable = leaves_nothing and state == "open"
        return "" if state == "open" else state

    def _set_up(self, conversation: Conversation) -> str:
        self._reusable = False
        self._database.fill(self._machine.config_script(), conversation)
        return self._load()

    def connect(self) -> Connection:
        """Open a memcached connection."""
        return Connection(self._machine.address)

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        """Run a statement; see `ReplayTarget.execute`."""
        return self._database.execute(name, statement)

    def server(self, action: str) -> str:
        """Do `reload`, `restart` or `kill9`; returns "open", "closed" or "server died", the state of the port."""
        # Their transactions would end with the server; that they end before a reload too makes the three alike.
        self.finish()
        if action == "reload":
            return self._load() if self._survives(UNINSTALL) else "server died"
        start_again(self._machine, action)
        # Its cas numbers begin at 1 again, like those of any other server that was started again.
        self._reusable = False
        return self._port_state()

    def exit_status(self) -> int | None:
        """Return the exit status of a server that died; None while it runs."""
        return self._machine.exit_status()

    def settle(self) -> None:
        """Do nothing: the plugin commits before it closes a connection (wbatch-058)."""

    def finish(self) -> None:
        """Close the SQL connections."""
        self._database.close()

    def _boot(self, options: tuple[str, ...]) -> None:
        self._machine.boot(options)
        self._options = options
        if not self._used:
            return
        self._database.query(*self._machine.config_script())
        if self._load() == "open":
            self._say(b"set spent 0 0 1\r\nx\r\n" * CAS_NUMBERS)
        if not self._unloaded():
            self._machine.boot(options)

    def _read_a_row(self) -> None:
        """Read a row of the default mapping over each worker thread; connections go to the threads in turn."""
        try:
            ((schema, table, key),) = self._database.query(DEFAULT_MAPPING)
            ((value,),) = self._database.query(f"SELECT `{key}` FROM `{schema}`.`{table}` LIMIT 1")  # noqa: S608 - its own mapping
        except (pymysql.err.MySQLError, ValueError):
            return  # no such mapping, or no row in it: nothing that could be read
        if re.fullmatch(r"[!-~]{1,250}", str(value)):
            for _ in range(THREADS):
                self._say(f"get {value}\r\n".encode("ascii"))

    def _say(self, lines: bytes) -> None:
        with suppress(OSError), self.connect() as connection:
            connection.send(lines + b"quit\r\n")
            connection.drain(5.0)

    def _unloaded(self) -> bool:
        if self.exit_status() is not None:
            return False
        try:
            if self._database.query(INSTALLED):
                self._database.query(UNINSTALL)
        except pymysql.err.MySQLError:
            # The unload ended it: the result of the conversation before was recorded already.
            return False
        return True

    def _load(self) -> str:
        return self._port_state() if self._survives(INSTALL) else "server died"

    def _survives(self, statement: str) -> bool:
        try:
            self._database.query(statement)
        except pymysql.err.OperationalError as error:
            deadline = time.monotonic() + DEATH_SECONDS
            while self.exit_status() is None:
                if time.monotonic() > deadline:
                    raise SuiteError(f"{statement} failed on {self.version}: {error}") from error
                time.sleep(0.02)
            return False
        return True

    def _port_state(self) -> str:
        deadline = time.monotonic() + PORT_SECONDS
        while time.monotonic() < deadline:
            try:
                with self.connect() as connection:
                    connection.send(connection.request)
                    if connection.has_bytes(PORT_SECONDS) and connection.receive():
                        return "open"
            except OSError:
                # No server listens yet, or it has ended.
                if self.exit_status() is not None:
                    return "server died"
            time.sleep(0.02)
        return "closed"
