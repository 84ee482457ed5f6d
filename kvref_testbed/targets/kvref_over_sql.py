"""`kvref serve` over a SQL server of its own, the lives of both in their caller's hands.

with kvref_over_sql("kvref-mariadb", "mysql-8.0") as (server, database):
    ...                                  # fill it: database.connect()
    server.start()
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kvref.errors import TargetError
from kvref_testbed.targets import catalogue
from kvref_testbed.targets.kvref_serve import KvrefInnoDB
from kvref_testbed.targets.kvref_server import kvref_server
from kvref_testbed.targets.progress import QUIET
from kvref_testbed.targets.sql_server import sql_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref_testbed.targets.kvref_server import KvrefServer
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.sql_server import SQLServer

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


def over_sql() -> list[str]:
    """Return the names of the targets that are kvref over a SQL server."""
    return [each.name for each in catalogue.recipes() if isinstance(each, KvrefInnoDB)]
