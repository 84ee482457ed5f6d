"""A SQL server without the plugin whose life is in its caller's hands, on one data folder and port.

    with sql_server("mariadb") as server:
        ...                                  # server.dsn or server.socket: root, no password; server.connect()
        server.kill()
        server.start()                       # what was committed is there again, at the same address

A target (`lifecycle.py`) is the plain case: booted once and left alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref_testbed.targets import catalogue
from kvref_testbed.targets.instance import Instance
from kvref_testbed.targets.ports import LOOPBACK, free_port
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.sql_only import SQLOnly

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kvref_testbed.targets.progress import Progress


class SQLServer(Instance):
    """One server at a time, filled at its first start; made by `sql_server`.

    host, port: where it answers TCP, started or not.
    version: what it says of itself, e.g. `10.11.14-MariaDB-0+deb12u2`.
    """

    def __init__(self, recipe: SQLOnly, options: Sequence[str], progress: Progress) -> None:
        self.host = LOOPBACK
        self.port = free_port()
        super().__init__(recipe.name, recipe.build, options, progress, self.port)
        try:
            self.start()
            recipe.fill(self.server)
            self.version = self.server.version()
        except BaseException:
            self.close()
            raise

    @property
    def dsn(self) -> str:
        """Return its DSN, `mysql://root@127.0.0.1:PORT/`."""
        return self.server.dsn

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
