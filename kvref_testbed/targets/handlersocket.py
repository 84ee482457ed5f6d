"""MariaDB's HandlerSocket: the options with which a server has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_testbed.targets import mariadb_plugins
from kvref_testbed.targets.ports import LOOPBACK

if TYPE_CHECKING:
    from kvref_testbed.targets.progress import Progress

# MariaDB's threads keep the level of their start: what is set afterwards is that of everybody else.
LEVEL: Final = "REPEATABLE-READ"
DIRTY: Final = "READ-UNCOMMITTED"
AS_USUAL: Final = "SET GLOBAL tx_isolation = 'REPEATABLE-READ'"


def options(port: int, secret: str, progress: Progress, level: str = LEVEL) -> list[str]:
    """Return the options of a mariadbd that answers HandlerSocket's questions on loopback.

    port: for reading; that for writing is left out.
    secret: which a client must show.
    level: of isolation, as all sessions have it until AS_USUAL is said.
    Raises MissingError.
    """
    return [
        *mariadb_plugins.options("mariadb-server", "handlersocket", progress),
        f"--handlersocket-address={LOOPBACK}",
        f"--handlersocket-port={port}",
        "--handlersocket-threads=2",
        # Without one, this build requires an unknown secret.
        f"--handlersocket-plain-secret={secret}",
        f"--transaction-isolation={level}",
    ]
