"""A plugin server whose life is in its caller's hands: boot, stop, start, kill, on one data folder and port.

    with plugin_server("mysql-8.0-plugin") as server:
        server.boot(["--daemon_memcached_w_batch_size=10"])      # without the plugin
        ...                                                      # server.connect(): SQL; INSTALL PLUGIN
        server.kill()
        server.start()                                           # the same data folder, port and options

An installed plugin is loaded again at each start. A target (`lifecycle.py`) is the plain case: booted once, with the
plugin's own configuration.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref_testbed.targets import catalogue
from kvref_testbed.targets.instance import Instance
from kvref_testbed.targets.plugin import MySQLPlugin, config_script, mysqld_options, with_port
from kvref_testbed.targets.ports import LOOPBACK, free_port
from kvref_testbed.targets.progress import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_testbed.targets.progress import Progress


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
        raise TargetError(f"{name!r} is no MySQL with the plugin: choose {', '.join(_names())}")
    server = PluginServer(recipe, progress)
    try:
        yield server
    finally:
        server.close()


def _names() -> list[str]:
    return [each.name for each in catalogue.recipes() if isinstance(each, MySQLPlugin)]
