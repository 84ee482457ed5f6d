"""A stage over `kvref serve` on SQLite: one server for all conversations, its file set up anew for each."""

from __future__ import annotations

import socket
import sqlite3
import threading
from contextlib import closing
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Protocol

from kvref_conformance.errors import SuiteError
from kvref_conformance.sql.session import Session, connect
from kvref_conformance.sql.tables import quote
from kvref_conformance.sql.translate import Translator
from kvref_conformance.transcripts.conversation import Talk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kvref_conformance.transcripts.conversation import Conversation
    from kvref_conformance.transcripts.holes import Json

# The server's own table, which it counts cas numbers in.
COUNTERS: Final = "kvref_counters"
# Options of mysqld that kvref has as settings of the same name, and those that have no meaning here: kvref commits
# every write at once, and SQLite locks no table's definition.
SETTINGS: Final = frozenset({"innodb_lock_wait_timeout"})
MEANINGLESS: Final = frozenset({"innodb_api_bk_commit_interval", "innodb_api_enable_mdl"})


class Machine(Protocol):
    """A `kvref serve` at hand; `kvref.targets.kvref_server` gives one."""

    file: Path

    @property
    def address(self) -> tuple[str, int]:
        """Give host and port."""

    def running(self) -> bool:
        """Tell whether it runs."""

    def start(self, settings: Sequence[str] = ()) -> bool:
        """Start with settings NAME=VALUE; False when it refuses its configuration."""

    def reload(self) -> bool:
        """Make it read its configuration again; False when it refuses."""

    def stop(self) -> None:
        """End it in order."""

    def kill(self) -> None:
        """Kill it with SIGKILL."""

    def exit_status(self) -> int | None:
        """Give how it ended by itself, negative for a signal; None while it runs."""


class SQLiteStage:
    """The `play.Stage` of kvref over SQLite; starts the machine at once, whose owner ends it.

    Args:
        machine: the server.
        version: the MySQL version whose recordings it is compared with; its defaults make the tables.
    """

    def __init__(self, machine: Machine, version: str) -> None:
        self.version = version
        self._machine = machine
        self._guard = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._plugin = Translator(version)
        self._plugin_schema = [sql for each in plugin_schema() for sql in self._plugin.translate(each)]
        self._translator = self._plugin.fork()
        self._options: tuple[str, ...] = ()
        self._settings: tuple[str, ...] = ()
        self._serves = machine.start()

    def prepare(self, conversation: Conversation) -> str:
        """Set the world up; returns "" or "closed".

        A reload checks the configuration as a start does: "closed" says that it was refused, and nobody connects then.

        Raises:
            SuiteError: a statement of the set-up has no form in SQLite or failed, or kvref has no such option.
        """
        settings = _settings(conversation)
        self._set_up(conversation)
        if conversation.options != self._options or _asks_for_counters(conversation):
            self._machine.stop()
            self._options, self._settings = conversation.options, settings
        self._serves = self._machine.reload() if self._machine.running() else self._machine.start(settings)
        return "" if self._serves else "closed"

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

    def connect(self) -> socket.socket:
        """Open a memcached connection; raises OSError where the configuration was refused, as nobody listens then."""
        if not self._serves:
            raise ConnectionRefusedError("the configuration was refused")
        return socket.create_connection(self._machine.address, timeout=5.0)

    def execute(self, name: str, statement: str) -> dict[str, Json]:
        """Run a statement; see `play.Stage.execute`."""
        if name not in self._sessions:
            self._sessions[name] = Session(self._machine.file, self._translator, self._guard)
        return self._sessions[name].execute(statement)

    def server(self, action: str) -> str:
        """Do `reload`, `restart` or `kill9`; returns "open" or "closed"."""
        if action == "reload" and self._machine.running():
            self._serves = self._machine.reload()
        else:
            if action == "kill9":
                self._machine.kill()
            else:
                self._machine.stop()
            self._serves = self._machine.start(self._settings)
        return "open" if self._serves else "closed"

    def exit_status(self) -> int | None:
        """Give the exit status of a server that died; None while it runs."""
        return self._machine.exit_status()

    def finish(self) -> None:
        """Close the SQL connections."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()


def plugin_schema() -> list[str]:
    """Give the statements that make the plugin's configuration tables, its demo table and their rows."""
    script = files("kvref_conformance.sql").joinpath("plugin_schema.sql").read_text(encoding="utf-8")
    return [statement for part in script.split(";\n") if (statement := part.strip())]


def _settings(conversation: Conversation) -> tuple[str, ...]:
    options = [(option.removeprefix("--").partition("=")[0], option) for option in conversation.options]
    if foreign := [option for name, option in options if name not in SETTINGS | MEANINGLESS]:
        raise SuiteError(f"{conversation.id}: kvref has no setting for {', '.join(foreign)}")
    return tuple(option.removeprefix("--") for name, option in options if name in SETTINGS)


def _asks_for_counters(conversation: Conversation) -> bool:
    """Tell whether it shows that the plugin was loaded for it: its counters began at 0 then."""
    sent = (step.send for step in conversation.steps if isinstance(step, Talk))
    return any(isinstance(text, str) and text.startswith("stats") for text in sent)


def _clear(connection: sqlite3.Connection) -> None:
    made = connection.execute("SELECT type, name FROM sqlite_master WHERE type IN ('view', 'table')").fetchall()
    for kind, name in made:
        if name != COUNTERS and not name.startswith("sqlite_"):
            connection.execute(f"DROP {kind} {quote(name)}")
