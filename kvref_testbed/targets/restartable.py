"""One process at a time whose life is in its caller's hands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvref_testbed.targets.process import Process
    from kvref_testbed.targets.run import Run


class Restartable:
    """What `Instance` and `KvrefServer` have in common: they know their process and end it.

    run: the folder of its data and logs.
    patience: seconds that it has to end after SIGTERM.
    """

    def __init__(self, run: Run, patience: float) -> None:
        self._run = run
        self._patience = patience
        self._process: Process | None = None

    def running(self) -> bool:
        """Return whether it runs."""
        return self._process is not None and self._process.alive()

    def stop(self) -> None:
        """Shut the server down and wait until it has ended; its data stay."""
        self._end(self._patience)

    def kill(self) -> None:
        """Kill it with SIGKILL; its data stay as they are."""
        self._end(0)

    def exit_status(self) -> int | None:
        """Return how it ended by itself: an exit code, or the negative number of the signal; None while it runs."""
        if self._process is None or self._process.alive():
            return None
        return self._process.exit_status(self._run.folder, patience=1.0)

    def _end(self, patience: float) -> None:
        if self._process is not None:
            self._run.end(self._process, patience)
            self._process = None
