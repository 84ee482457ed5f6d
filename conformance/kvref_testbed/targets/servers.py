"""Database servers, plugins and kvref over SQL for tests, which can be killed and restarted.

    with sql_server("mariadb") as server:
        ...                                  # server.dsn or server.socket: root, no password; server.connect()
        server.kill()
        server.start()                       # what was committed is there again, at the same address

    with plugin_server("mysql-8.0-plugin") as server:
        server.boot(["--daemon_memcached_w_batch_size=10"])      # without the plugin
        ...                                                      # server.connect(): SQL; INSTALL PLUGIN
        server.kill()
        server.start()                                           # the same data folder, port and options

    with kvref_over_sql("kvref-mariadb", "mysql-8.0") as (server, database):
        ...                                  # fill it: database.connect()
        server.start()

An installed plugin is loaded again at each start. A target (`lifecycle.py`) is booted once, with the plugin's own
configuration.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kvref.errors import TargetError
from kvref_testbed.targets import catalogue, mysqld
from kvref_testbed.targets.kvref_server import KvrefInnoDB, kvref_server
from kvref_testbed.targets.mysqld import SQLOnly
from kvref_testbed.targets.plugin import MySQLPlugin, config_script, mysqld_options, with_port
from kvref_testbed.targets.ports import LOOPBACK, free_port
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.run import Run
from kvref_testbed.targets.vitess import vitess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_testbed.targets.kvref_server import KvrefServer
    from kvref_testbed.targets.mysqld import Build
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.vitess import Cluster


class Instance(mysqld.RestartableServer):
    """A server on a fresh data folder, not yet started.

    name: of its target, for errors.
    options: of mysqld.
    port: of TCP on loopback; None: it listens on its socket only.
    Raises MissingError for a program, an artifact or a library.
    """

    def __init__(
        self, name: str, build: Build, options: Sequence[str], progress: Progress, port: int | None = None
    ) -> None:
        run = Run.create()
        try:
            server = mysqld.lay_out(run.folder, build, progress, port)
        except BaseException:
            run.stop(0)
            raise
        super().__init__(run, build, name, server, options)

    def start(self) -> None:
        """Start on the data folder that is there, with the same port and options. Raises TargetError."""
        self._free()
        self._launch()

    def close(self) -> None:
        """Kill it and remove its folder."""
        self._run.stop(0)
        self._process = None


class SQLServer(Instance):
    """One server at a time, filled at its first start; made by `sql_server`.

    version: what it says of itself, e.g. `10.11.14-MariaDB-0+deb12u2`.
    """

    def __init__(self, recipe: SQLOnly, options: Sequence[str], progress: Progress) -> None:
        super().__init__(recipe.name, recipe.build, options, progress, free_port())
        try:
            self.start()
            recipe.fill(self.server)
            self.version = self.server.version()
        except BaseException:
            self.close()
            raise

    @property
    def socket(self) -> Path:
        """Return the path of its unix socket."""
        return self.server.socket


@contextmanager
def sql_server(name: str, options: Sequence[str] = (), progress: Progress = QUIET) -> Iterator[SQLServer]:
    """Start a private server of a target that serves only SQL; it is killed at the end of the block.

    options: of mysqld or mariadbd, at every start. Raises TargetError, also for another target.
    """
    recipe = catalogue.recipe(name)
    if not isinstance(recipe, SQLOnly):
        known = ", ".join(each.name for each in catalogue.recipes() if isinstance(each, SQLOnly))
        raise TargetError(f"{name!r} is more than a SQL server: choose {known}")
    server = SQLServer(recipe, options, progress)
    try:
        yield server
    finally:
        server.close()


class PluginServer:
    """One mysqld at a time; made by `plugin_server`.

    recipe: which build.
    """

    def __init__(self, recipe: MySQLPlugin, progress: Progress) -> None:
        self._recipe = recipe
        self._progress = progress
        self._instance: Instance | None = None
        self._port = 0

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port where the plugin listens once it is installed."""
        return LOOPBACK, self._port

    def boot(self, options: Sequence[str]) -> None:
        """Start on a fresh data folder without the plugin; a server that ran before is killed, its data are lost.

        options: as of `targets.running`. Raises TargetError, also for an option mysqld does not know.
        """
        self.close()
        self._port = free_port()
        theirs = mysqld_options(with_port(options, self._port), self._port)
        self._instance = Instance(self._recipe.name, self._recipe.build, theirs, self._progress)
        self._instance.start()

    def start(self) -> None:
        """Start on the data folder that is there, with the same port and options. Raises TargetError."""
        self._booted().start()

    def stop(self) -> None:
        """Shut the server down and wait until it has ended; its data stay."""
        self._booted().stop()

    def kill(self) -> None:
        """Kill it with SIGKILL; its data stay as they are."""
        self._booted().kill()

    def exit_status(self) -> int | None:
        """Return how it ended by itself: an exit code, or the negative number of the signal; None while it runs."""
        return self._booted().exit_status()

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection as root with autocommit; raises pymysql's errors.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        return self._booted().connect(patience)

    def config_script(self) -> list[str]:
        """Return the statements of the plugin's own schema."""
        return list(config_script(self._booted().server))

    def close(self) -> None:
        """Kill it and remove its folder."""
        if self._instance is not None:
            self._instance.close()
        self._instance = None

    def _booted(self) -> Instance:
        if self._instance is None:
            raise TargetError(f"{self._recipe.name} was never booted: boot it first")
        return self._instance


@contextmanager
def plugin_server(name: str, progress: Progress = QUIET) -> Iterator[PluginServer]:
    """Yield a server of a plugin target, not yet booted; it is killed with the block.

    name: of a target that is MySQL with the plugin. Raises TargetError for another.
    """
    recipe = catalogue.recipe(name)
    if not isinstance(recipe, MySQLPlugin):
        raise TargetError(f"{name!r} is not a MySQL with the plugin: choose {', '.join(_names())}")
    server = PluginServer(recipe, progress)
    try:
        yield server
    finally:
        server.close()


def _names() -> list[str]:
    return [each.name for each in catalogue.recipes() if isinstance(each, MySQLPlugin)]


CONNECTIONS_OF_VITESS: Final = 50  # it has 100 transactions at most
CONNECTIONS: Final = 300  # opened when needed: as many open batches as a recorded conversation has


@contextmanager
def kvref_over_sql(
    name: str, profile: str, options: Sequence[str] = (), progress: Progress = QUIET
) -> Iterator[tuple[KvrefServer, SQLServer]]:
    """Start the SQL server of a target, and give it with a `kvref serve` over it, not yet started.

    name: of a target that is kvref over a SQL server; raises TargetError for another.
    profile: of kvref. options: of mysqld or mariadbd. Both are killed with the block.
    """
    recipe = catalogue.recipe(name)
    if not isinstance(recipe, KvrefInnoDB):
        raise TargetError(f"{name!r} is not kvref over a SQL server: choose {', '.join(over_sql())}")
    with (
        sql_server(recipe.database.name, options, progress) as database,
        kvref_server(profile, store=f"{database.dsn}?connections={CONNECTIONS}") as server,
    ):
        yield server, database


@contextmanager
def kvref_over_vitess(
    profile: str, options: Sequence[str] = (), progress: Progress = QUIET
) -> Iterator[tuple[KvrefServer, Cluster]]:
    """Start Vitess, and give it with a `kvref serve` over it, not yet started.

    profile: of kvref. options: of mysqld. All are killed with the block. Raises TargetError.
    """
    with (
        vitess((), options, progress) as cluster,
        kvref_server(profile, store=f"{cluster.dsn}?connections={CONNECTIONS_OF_VITESS}") as server,
    ):
        yield server, cluster


def over_sql() -> list[str]:
    """Return the names of the targets that are kvref over a SQL server."""
    return [each.name for each in catalogue.recipes() if isinstance(each, KvrefInnoDB)]
