"""The runs of the fuzz over live servers: which server, which share of the messages, and what must hold at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from helpers.serving import Served

from fuzz.live import FaultError, Figures, Fuzz
from fuzz.record import record
from fuzz.worlds import over_mysql, over_sqlite
from kvref_testbed import targets
from kvref_testbed.targets import SQLServer

EXPECTED: Final = "no bytes of either protocol end a process, leak memory or change a reply to another connection"
# Caches of a fixed size fill within so many messages; what a process gains later is a leak.
WARM_MESSAGES: Final = 1_500_000
FILLING_MIB: Final = 64.0
LEAK_MIB: Final = 24.0
POOL: Final = 16  # connections to a database, opened as they are needed and kept


@dataclass(frozen=True)
class Run:
    """One server to fuzz.

    Args:
        name: in the table of faults.
        share: of all messages, 0 to 1.
        options: of `kvref serve`.
        database: the SQL target behind it; None: a SQLite file.
    """

    name: str
    share: float
    options: tuple[str, ...] = ()
    database: str | None = None

    @contextmanager
    def serving(self, database: SQLServer | None = None) -> Iterator[Served]:
        """Serve for the block; `database`: a running one."""
        with tempfile.TemporaryDirectory(prefix="kvref-fuzz-") as folder:
            if self.database is None:
                with over_sqlite(Path(folder), *self.options) as served:
                    yield served
            elif database is not None:
                with over_mysql(database, *self.options) as served:
                    yield served
            else:
                with targets.sql_server(self.database) as started, self.serving(started) as served:
                    yield served


RUNS: Final = (
    Run("fuzz-text-binary", 0.7),
    Run("fuzz-mysql-8.0-profile", 0.1, ("--profile", "mysql-8.0")),
    Run("fuzz-mysql-5.6-profile", 0.1, ("--profile", "mysql-5.6")),
    Run(
        "fuzz-batches", 0.05, ("--set", "daemon_memcached_w_batch_size=20", "--set", "daemon_memcached_r_batch_size=20")
    ),
    Run("fuzz-workers", 0.04, ("--workers", "2")),
    Run("fuzz-innodb", 0.01, (), "mysql-8.0"),
)


def _check_growth(run: Run, figures: Figures) -> None:
    most = LEAK_MIB if figures.messages >= WARM_MESSAGES * 5 else FILLING_MIB
    if figures.rss_growth_mib > most:
        raise FaultError(f"memory grew by {figures.rss_growth_mib:.1f} MiB, more than {most:g}")
    if figures.descriptors_left:
        raise FaultError(f"{figures.descriptors_left} descriptors are left behind")


def held(run: Run, served: Served, messages: int, seed: int, progress: Callable[[Figures], None]) -> Figures:
    """Fuzz a server and record it.

    Args:
        run: the configuration.
        served: the server.
        messages: number of messages.
        seed: seed of everything random.
        progress: called regularly with the figures so far.

    Raises:
        AssertionError: a rule does not hold; the text names it and the seed.
    """
    fuzz = Fuzz(served, seed, plugin="--profile" in run.options, pool=POOL if run.database else 0)
    try:
        figures = fuzz.run(messages, progress=progress)
        _check_growth(run, figures)
    except Exception as error:
        raise AssertionError(
            f"{run.name}, seed {seed}, after {fuzz.figures.messages} messages: {type(error).__name__}: {error}\n"
            f"{''.join(served.log)[-2000:]}"
        ) from error
    row = figures.as_row()
    record(run.name, EXPECTED, int(row.pop("messages")), row.pop("seconds"), **row)
    return figures
