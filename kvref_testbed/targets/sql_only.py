"""A MySQL or MariaDB server without the plugin: it answers SQL, and no memcached command.

What kvref serves from, not what is judged. One that is stopped, started and killed: `sql_server.py`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref_testbed.targets import mysqld
from kvref_testbed.targets.ports import free_port
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kvref_testbed.targets.mysqld import Build, Server
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run


def no_schema(_server: Server) -> Iterable[str]:
    """Return no statements."""
    return ()


@dataclass(frozen=True, slots=True)
class SQLOnly:
    """A build started for its SQL alone, on a port of loopback and a socket; see `recipe.Recipe` for the fields.

    schema: gives the statements that fill a fresh data folder.
    """

    name: str
    summary: str
    build: Build
    schema: Callable[[Server], Iterable[str]] = no_schema
    profile: None = None

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start the server on a fresh data folder and fill it.

        options: of mysqld or mariadbd. Raises TargetError.
        """
        server = mysqld.boot(run, self.build, options, progress, free_port())
        self.fill(server)
        return Endpoint(address=None, version=server.version(), sql=server.dsn, socket=server.socket)

    def fill(self, server: Server) -> None:
        """Run the statements of the schema."""
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            for statement in self.schema(server):
                cursor.execute(statement)
