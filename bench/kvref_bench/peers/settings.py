"""Ways to let a server run with settings: as a target, or over SQL while it runs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from kvref.errors import TargetError
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_bench.peers.mysql_tables import MySQLTables
    from kvref_testbed.targets import Private

    Settings = Mapping[str, int]

COMMAND_SECONDS: Final = 300
# Settings of the memcached side, in addition to `innodb_lock_wait_timeout` and `item_size_max`.
OF_THE_PLUGIN: Final = ("daemon_memcached_", "innodb_api_")
ALSO_OF_KVREF: Final = ("innodb_lock_wait_timeout", "item_size_max")
BINLOG: Final = "innodb_api_enable_binlog"
SWITCH: Final = {"ON": 1, "OFF": 0, "YES": 1, "NO": 0}


class Starter:
    """One way; by itself a server that cannot be started again, for a reason."""

    settable = False

    def __init__(self, reason: str = "") -> None:
        self._reason = reason

    def start(self, settings: Settings) -> None:
        """Let the server run with these settings and no others.

        Raises:
            BenchError: it does not know one, or refuses it; the server runs without settings then.
        """
        if settings:
            raise BenchError(f"{', '.join(settings)}: {self._reason}")


class OfTarget(Starter):
    """A target that was booted for the run.

    database: queried before and after whether it has the variables, if it is the server itself; an option of the
        plugin that does not exist, or is out of range, is only a warning in its log.
    """

    settable = True

    def __init__(self, private: Private, database: MySQLTables | None) -> None:
        super().__init__()
        self._private = private
        self._database = database
        self._is_default = True

    def start(self, settings: Settings) -> None:
        """See `Starter`."""
        if not settings and self._is_default:
            return
        if self._database is not None:
            for name in settings:
                variable(self._database, name)
        words = " ".join(f"{name}={value}" for name, value in settings.items()) or "no settings"
        try:
            self._private.restart(settings)
            self._is_default = not settings
            if self._database is not None:
                taken(self._database, settings)
        except (TargetError, BenchError) as error:
            if settings and not self._restore_defaults():
                raise BenchError(f"{words}: {error}; and it does not start without them either") from error
            # The line of its last output that explains why it did not start.
            lines = [line.strip() for line in str(error).splitlines()]
            reason = next((line for line in lines[1:] if "error" in line.lower()), lines[0])
            raise BenchError(f"{words}: {reason}") from error

    def _restore_defaults(self) -> bool:
        try:
            self._private.restart({})
        except TargetError:
            return False
        self._is_default = True
        return True


class Globals(Starter):
    """SET GLOBAL of a SQL server that goes on running; what was set before is put back first."""

    settable = True

    def __init__(self, tables: MySQLTables) -> None:
        super().__init__()
        self._tables = tables
        self._before: dict[str, str] = {}

    def start(self, settings: Settings) -> None:
        """See `Starter`."""
        for name in settings:
            if name.startswith(OF_THE_PLUGIN):
                raise BenchError(f"{name}: the server at {self._tables.login.where} has no plugin")
        before = {name: variable(self._tables, name) for name in settings}
        self._put_back()
        for name, value in settings.items():
            try:
                self._tables.query(f"SET GLOBAL {name} = {value}")
            except BenchError as error:
                self._put_back()
                raise BenchError(f"{name}={value} cannot be set while the server runs: {error}") from error
            self._before[name] = before[name]
        taken(self._tables, settings)

    def _put_back(self) -> None:
        while self._before:
            name, value = self._before.popitem()
            self._tables.query(f"SET GLOBAL {name} = {value if _number(value) is not None else repr(value)}")


class Both(Starter):
    """kvref and the SQL server that it serves from: each gets its own settings."""

    settable = True

    def __init__(self, front: Starter, database: MySQLTables) -> None:
        super().__init__()
        self._front = front
        self._database = database
        self._globals = Globals(database)

    def start(self, settings: Settings) -> None:
        """See `Starter`."""
        front = {name for name in settings if name.startswith(OF_THE_PLUGIN) or name in ALSO_OF_KVREF}
        if settings.get(BINLOG) and _number(variable(self._database, "log_bin")) != 1:
            raise BenchError(f"{BINLOG}={settings[BINLOG]}: the SQL server behind was started without a binary log")
        self._globals.start({name: value for name, value in settings.items() if name not in front})
        self._front.start({name: settings[name] for name in front})


def variable(tables: MySQLTables, name: str) -> str:
    """Return a server's variable. Raises BenchError where it has none of that name."""
    rows = tables.query("SHOW GLOBAL VARIABLES WHERE variable_name = %s", (name,))
    if not rows:
        raise BenchError(f"the server at {tables.login.where} has no setting {name!r}; see SHOW GLOBAL VARIABLES")
    return str(rows[0][1])


def taken(tables: MySQLTables, settings: Settings) -> None:
    """Look whether the settings are in force: a server cuts a number that is too large. Raises BenchError."""
    for name, value in settings.items():
        now = variable(tables, name)
        if _number(now) != value:
            raise BenchError(f"{name}={value}: the server at {tables.login.where} took {now}; choose a value it takes")


def run_reload(command: str) -> None:
    """Run the command line of --reload. Raises BenchError if it fails."""
    try:
        done = subprocess.run(  # noqa: S602
            command, shell=True, check=False, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"--reload: {command!r} did not end within {COMMAND_SECONDS} s") from error
    if done.returncode:
        raise BenchError(f"--reload: {command!r} ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")


def _number(value: str) -> int | None:
    if value.upper() in SWITCH:
        return SWITCH[value.upper()]
    return int(value) if value.lstrip("-").isdigit() else None
