"""`kvref serve` over a filled table: started, and its metrics read while it is measured."""

from __future__ import annotations

import os
import threading
import urllib.request
from typing import TYPE_CHECKING

from kvref_bench.errors import BenchError
from kvref_bench.peers.sqlite_tables import SCHEME, SQLiteTables

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from kvref_bench.scenario.records import Table
    from kvref_testbed.targets.kvref_server import KvrefServer
    from kvref_testbed.targets.progress import Progress


def start(kvref: KvrefServer, table: Table | None, progress: Progress, config: Path | None = None) -> None:
    """Start a server.

    table: made in its SQLite file; None: it is over a database that has its table. config: see `KvrefServer.start`.

    Raises:
        BenchError: it refuses its options or its table. TargetError: it does not start.
    """
    if not kvref.start(config=config):
        raise BenchError("kvref serve refuses its options or its tables: see its log")
    if table is not None:
        SQLiteTables(f"{SCHEME}{kvref.file}").make(table, progress)
        if not kvref.reload():
            raise BenchError("kvref serve refuses its table: see its log")


def scrape(stack: ExitStack, metrics: str) -> None:
    """Read the metrics of a server each second until the stack ends, on the processors that this thread does not have.

    metrics: address of its `--metrics`.
    """
    over = threading.Event()
    elsewhere = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
    scraper = threading.Thread(target=_scrape, args=(metrics, elsewhere, over))
    scraper.start()
    stack.callback(scraper.join)
    stack.callback(over.set)


def _scrape(metrics: str, processors: set[int], over: threading.Event) -> None:
    """Read the metrics each second until it is over."""
    os.sched_setaffinity(0, processors)
    while not over.wait(1.0):
        with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=5) as reply:
            reply.read()
