"""How the row cache is checked: steps and races, with crashes or without, and what it holds."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from helpers.row_cache_checker import FILL, SERVE, Servers, Stepper, race, statistics
from helpers.serving import Served, ask
from helpers.waiting import until_equal

from kvref_testbed.targets import SQLServer


def check(database: SQLServer, served: Served, seed: int, steps: int, seconds: float) -> dict[str, int]:
    """Take steps and race, and return what `stats` says of the row cache then."""
    with ExitStack() as stack:
        Stepper(database, lambda _: stack.enter_context(served.connect()), seed, stack).run(steps)
        race(database, served, seconds)
        return statistics(stack.enter_context(served.connect()))


# A process, several workers, and a process whose reads have another isolation level: each has its own cache.
PROCESSES = (
    SERVE,
    (*SERVE, "--workers", "2"),
    ("--set", "row_cache_binlog=1", "--set", "innodb_api_trx_level=2", "--set", "row_cache_bytes=4000"),
)


def crashing(database: SQLServer, dsn: str, seed: int, steps: int, rounds: int) -> int:
    """Take steps on several processes, kill one of them or the database after each round; return the compared keys."""
    with Servers(PROCESSES, dsn) as servers, ExitStack() as stack:
        stepper = Stepper(database, servers.connect, seed, stack, len(servers), servers.kill)
        for _ in range(rounds):
            stepper.run(steps)
            stepper.crash()
        stepper.run(steps)
    return stepper.compared


def hits(client: socket.socket, *keys: str) -> int:
    """Return how many of some gets were answered with cached rows."""
    before = statistics(client)["hits"]
    for key in keys:
        ask(client, f"get {key}\r\n".encode())
    return statistics(client)["hits"] - before


def fill(client: socket.socket, *keys: str) -> None:
    """Read rows until they are cached."""
    until_equal(lambda: hits(client, *keys), len(keys), pause=FILL)


def logs_cascades(database: SQLServer) -> bool:
    """Return whether the log has the rows that foreign keys change, which MySQL writes from 9.6 on."""
    return database.version.startswith("9.")
