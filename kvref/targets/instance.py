"""One mysqld at a time on one data folder, its life in its caller's hands: start, stop, kill, start again.

What it is good for: `plugin_server.py` and `sql_server.py`. What is booted once and left alone: `lifecycle.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvref.errors import TargetError
from kvref.targets import mysqld
from kvref.targets.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref.targets.mysqld import Build
    from kvref.targets.process import Process
    from kvref.targets.progress import Progress

# MySQL takes 3 to 6 s from SIGTERM to its end, longer on a busy machine.
_PATIENCE = 60.0


class Instance:
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
        self._process: Process | None = None
        self._run = Run.create()
        try:
            self.server = mysqld.lay_out(self._run, build, progress, port)
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

    def running(self) -> bool:
        """Tell whether it runs."""
        return self._process is not None and self._process.alive()

    def stop(self) -> None:
        """Ask it to end and wait until it has; its data stay."""
        self._end(_PATIENCE)

    def kill(self) -> None:
        """Kill it with SIGKILL; its data stay as they are."""
        self._end(0)

    def exit_status(self) -> int | None:
        """Give how it ended by itself: an exit code, or the negative number of the signal; None while it runs."""
        if self._process is None or self._process.alive():
            return None
        return self._process.exit_status(self._run.folder, patience=1.0)

    def connect(self, patience: float | None = None) -> Connection[Cursor]:
        """Open a SQL connection as root with autocommit; raises pymysql's errors.

        patience: seconds after which a statement without an answer is given up; None: never.
        """
        return self.server.connect(patience)

    def close(self) -> None:
        """Kill it and remove its folder."""
        self._run.stop(0)
        self._process = None

    def _end(self, patience: float) -> None:
        if self._process is not None:
            self._run.end(self._process, patience)
            self._process = None
