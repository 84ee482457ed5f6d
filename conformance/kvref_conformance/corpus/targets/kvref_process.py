"""`kvref serve` in the place of the plugin, whatever it serves from: loaded is started, loaded again is SIGHUP."""

from __future__ import annotations

import re
import time
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from kvref.errors import SuiteError
from kvref_conformance.corpus.templates import sent
from kvref_conformance.steps import Send
from kvref_conformance.wire.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_conformance.corpus.conversation import Conversation

# Options of mysqld that kvref has as settings of the same name, and those that are the SQL server's alone.
SETTINGS: Final = frozenset(
    "daemon_memcached_r_batch_size daemon_memcached_w_batch_size innodb_api_bk_commit_interval innodb_api_trx_level"
    " innodb_api_disable_rowlock innodb_api_enable_mdl innodb_api_enable_binlog innodb_lock_wait_timeout".split()
)
FOREIGN: Final = frozenset(
    "log-bin skip-log-bin binlog-format log-slave-updates gtid-mode enforce-gtid-consistency binlog-ignore-db"
    " binlog-row-image innodb_flush_log_at_trx_commit daemon_memcached_enable_binlog".split()
)


# Beginning of a binary frame that requests counters.
STAT: Final = "8010"
SETTLE_SECONDS: Final = 10.0


class Machine(Protocol):
    """A `kvref serve` at hand; `kvref_testbed.targets.kvref_server` gives one."""

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""

    def running(self) -> bool:
        """Return whether it runs."""

    def start(self, settings: Sequence[str] = ()) -> bool:
        """Start with settings NAME=VALUE; False when it refuses its configuration."""

    def reload(self) -> bool:
        """Make it read its configuration again; False when it refuses."""

    def stop(self) -> None:
        """End it in order."""

    def kill(self) -> None:
        """Kill it with SIGKILL."""

    def exit_status(self) -> int | None:
        """Return how it ended by itself, negative for a signal; None while it runs."""


class KvrefProcess:
    """One server for all conversations.

    Args:
        machine: started with the first conversation; its owner ends it.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._options: tuple[str, ...] = ()
        self._settings: tuple[str, ...] = ()
        self._serves = False
        self._last = ""

    def load(self, conversation: Conversation) -> str:
        """Serve the world of a conversation; return "" or "closed".

        A reload checks the configuration as a start does: "closed" means that it was rejected, and no client can
            connect then.

        Raises:
            SuiteError: kvref has no such option.
        """
        settings = settings_of(conversation)
        self._last = conversation.id
        if conversation.options != self._options or _asks_for_counters(conversation):
            self._machine.stop()
            self._options, self._settings = conversation.options, settings
        self._serves = self._machine.reload() if self._machine.running() else self._machine.start(settings)
        return "" if self._serves else "closed"

    def settle(self) -> None:
        """Wait until the clients of the last conversation are gone, and with them what their batches commit.

        Raises:
            SuiteError: they do not go.
        """
        if not self._machine.running() or not any("batch_size" in option for option in self._options):
            return
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._clients() > 1:
            if time.monotonic() > deadline:
                raise SuiteError(f"clients of {self._last} are still there after {SETTLE_SECONDS:.0f} s")
            time.sleep(0.01)

    def _clients(self) -> int:
        with Connection(self._machine.address) as connection:
            connection.send(b"stats\r\n")
            answer = connection.read(lambda data: 0.0 if data.endswith(b"END\r\n") else inf, SETTLE_SECONDS).data
        if not answer.endswith(b"END\r\n"):
            raise SuiteError(f"`stats` of kvref has no end: {answer[:200]!r}")
        found = re.search(rb"STAT curr_connections (\d+)", answer)
        return int(found[1]) - 1 if found else 0  # one is the socket it listens on

    def stop(self) -> None:
        """End the server, and with it commands that are no longer awaited; `load` starts it again."""
        self._machine.stop()

    def connect(self) -> Connection:
        """Open a memcached connection; raises OSError if the configuration was rejected, since no port is open then."""
        if not self._serves:
            raise ConnectionRefusedError("the configuration was refused")
        return Connection(self._machine.address)

    def server(self, action: str, again: Callable[[str], None] | None = None) -> str:
        """Do `reload`, `restart` or `kill9`; returns "open" or "closed".

        Args:
            action: one of the three.
            again: restarts or kills the database too, while nothing is served from it.
        """
        if action == "reload" and self._machine.running():
            self._serves = self._machine.reload()
        else:
            if action == "kill9":
                self._machine.kill()
            else:
                self._machine.stop()
            if again is not None and action != "reload":
                again(action)
            self._serves = self._machine.start(self._settings)
        return "open" if self._serves else "closed"

    def exit_status(self) -> int | None:
        """Return the exit status of a server that died; None while it runs."""
        return self._machine.exit_status()


def settings_of(conversation: Conversation) -> tuple[str, ...]:
    """Return the settings NAME=VALUE that stand for a conversation's options.

    Raises:
        SuiteError: kvref has no such option.
    """
    options = [(option.removeprefix("--").partition("=")[0], option) for option in conversation.options]
    if foreign := [option for name, option in options if name not in SETTINGS | FOREIGN]:
        raise SuiteError(f"{conversation.id}: kvref has no setting for {', '.join(foreign)}")
    return tuple(option.removeprefix("--") for name, option in options if name in SETTINGS)


def _asks_for_counters(conversation: Conversation) -> bool:
    """Return whether it shows that the plugin was loaded for it: its counters began at 0 then."""
    return any(
        str(sent(each.step)).startswith(STAT if each.binary else "stats")
        for each in conversation.steps
        if isinstance(each.step, Send)
    )
