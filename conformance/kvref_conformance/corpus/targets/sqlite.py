"""The replay target of `kvref serve` on SQLite: one server for all conversations, its file is set up again for each."""

from __future__ import annotations

import re
import sqlite3
import threading
from contextlib import closing
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Protocol

from kvref.errors import SuiteError
from kvref_conformance.corpus.compare import NOT_TO_SEE
from kvref_conformance.corpus.targets import kvref_process
from kvref_conformance.corpus.targets.kvref_process import KvrefProcess
from kvref_conformance.translation.schema import quote
from kvref_conformance.translation.session import Session, connect
from kvref_conformance.translation.translate import Translator

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.wire.connection import Connection

# What no reader of a SQLite file can be shown.
READS_UNCOMMITTED: Final = re.compile(r"SET (?:SESSION )?TRANSACTION ISOLATION LEVEL READ UNCOMMITTED\b", re.IGNORECASE)
# The server's own table, which it counts cas numbers in.
COUNTERS: Final = "kvref_counters"


class Machine(kvref_process.Machine, Protocol):
    """A `kvref serve` over a SQLite file; `kvref_testbed.targets.kvref_server` gives one."""

    file: Path


class SQLiteTarget:
    """The `ReplayTarget` of kvref over SQLite; the machine's owner ends it.

    Args:
        machine: the server.
        version: the MySQL version whose recordings it is compared with; its defaults make the tables.
    """

    def __init__(self, machine: Machine, version: str) -> None:
        self.version = version
        self._machine = machine
        self._guard = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._dirty: set[str] = set()  # sessions at READ UNCOMMITTED
        self._plugin = Translator(version)
        self._plugin_schema = [sql for each in plugin_schema() for sql in self._plugin.translate(each)]
        self._translator = self._plugin.fork()
        self._process = KvrefProcess(machine)

    def prepare(self, conversation: Conversation) -> str:
        """Set the world up; returns "" or "closed", see `KvrefProcess.load`.

        Raises:
            SuiteError: a statement of the set-up has no form in SQLite or failed, or kvref has no such option.
        """
        self._process.settle()
        self._set_up(conversation)
        return self._process.load(conversation)

    def _set_up(self, conversation: Conversation) -> None:
        self._translator = self._plugin.fork()
        with closing(connect(self._machine.file, self._translator)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("BEGIN IMMEDIATE")
            _clear(connection)
            for statement in self._plugin_schema:
                connection.execute(statement)
            for statement in conversation.sql:
                try:
                    for translated in self._translator.translate(statement):
                        connection.execute(translated)
                except sqlite3.Error as error:
                    raise SuiteError(f"{conversation.id}: set-up: {statement!r} failed: {error}") from error
            connection.execute("COMMIT")

    def connect(self) -> Connection:
        """Open a memcached connection, see `KvrefProcess.connect`."""
        return self._process.connect()

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        """Run a statement; see `ReplayTarget.execute`."""
        if name not in self._sessions:
            self._sessions[name] = Session(self._machine.file, self._translator, self._guard)
        if READS_UNCOMMITTED.match(statement):
            self._dirty.add(name)
        if name in self._dirty and statement.startswith("SELECT"):
            return dict(NOT_TO_SEE)
        return self._sessions[name].execute(statement)

    def server(self, action: str) -> str:
        """Do `reload`, `restart` or `kill9`; returns "open" or "closed"."""
        return self._process.server(action)

    def exit_status(self) -> int | None:
        """Return the exit status of a server that died; None while it runs."""
        return self._process.exit_status()

    def settle(self) -> None:
        """Wait until what closed connections had pending is committed."""
        self._process.settle()

    def finish(self) -> None:
        """Close the SQL connections."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self._dirty.clear()


def plugin_schema() -> list[str]:
    """Return the statements that make the plugin's configuration tables, its demo table and their rows."""
    script = files("kvref_conformance.sql").joinpath("plugin_schema.sql").read_text(encoding="utf-8")
    return [statement for part in script.split(";\n") if (statement := part.strip())]


def _clear(connection: sqlite3.Connection) -> None:
    made = connection.execute("SELECT type, name FROM sqlite_master WHERE type IN ('view', 'table')").fetchall()
    for kind, name in made:
        if name != COUNTERS and not name.startswith("sqlite_"):
            connection.execute(f"DROP {kind} {quote(name)}")
