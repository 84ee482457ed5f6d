"""One mysqld at a time on one data folder, its life in its caller's hands: start, stop, kill, start again.

What it is good for: `plugin_server.py` and `sql_server.py`. What is booted once and left alone: `lifecycle.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref_testbed.targets import mysqld
from kvref_testbed.targets.restartable import Restartable
from kvref_testbed.targets.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_testbed.targets.mysqld import Build
    from kvref_testbed.targets.progress import Progress

# MySQL takes 3 to 6 s from SIGTERM to its end, longer on a busy machine.
_PATIENCE = 60.0


class Instance(Restartable):
    """A server on a fresh data folder, not yet started.

    name: of its target, for errors.
    options: of mysqld.
    port: of TCP on loopback; None: it listens on its socket only.
    Raises MissingError for a program, an artifact or a library.
    """

    def __init__(
        self, name: str, build: Build, options: Sequence[str], progress: Progress, port: int | None = None
    ) -> None:
        self._name = name
        self._build = build
        self._options = tuple(options)
        super().__init__(Run.create(), _PATIENCE)
        try:
            self.server = mysqld.lay_out(self._run.folder, build, progress, port)
        except BaseException:
            self._run.stop(0)
            raise

    def start(self) -> None:
        """Start on the data folder that is there, with the same port and options. Raises TargetError."""
        if self._process is not None:
            if self._process.alive():
                raise TargetError(f"{self._name} runs already, pid {self._process.pid}: stop or kill it first")
            self._end(0)
        try:
            mysqld.start(self._run, self._build, self.server, self._options)
        finally:
            # One that ended at once is remembered too, so that the next start puts it away.
            self._process = next(iter(self._run.processes), None)

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection as root with autocommit; raises pymysql's errors.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        return self.server.connect(patience)

    def close(self) -> None:
        """Kill it and remove its folder."""
        self._run.stop(0)
        self._process = None
