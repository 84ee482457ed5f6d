"""Start a program of a target, wait until it is ready, and restart it.

Recipes boot their servers through it; `lifecycle.py` decides whether it is kept (up) or private (running).
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kvref.errors import TargetError
from kvref_testbed.targets import needs, process
from kvref_testbed.targets.ports import NotYetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kvref_testbed.targets.process import Process

_POLL = 0.02
_TAIL = 10  # lines: a server's last words without its whole start-up
T = TypeVar("T")


class Run:
    """One throw-away folder and the processes started in it, the main one last.

    Until `keep` is called the processes die with this one and the folder goes with them, even after SIGKILL.
    """

    def __init__(self, folder: Path, processes: Sequence[Process] = ()) -> None:
        self.folder = folder
        self.processes = list(processes)
        self._leashes: list[int] = []

    @classmethod
    def create(cls) -> Run:
        """Make an empty folder, readable by its owner only.

        In the system's temporary folder and short, because a unix socket in it must fit in 107 bytes (unix(7)).
        """
        return cls(Path(tempfile.mkdtemp(prefix="kvref-")))

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        """Start a server; see `process.start`. Its output goes to `log(name)`."""
        started, leash = process.start(name, argv, self.folder, env)
        self.processes.append(started)
        self._leashes.append(leash)
        return started

    def log(self, name: str) -> Path:
        """Return the path of what the process of that name prints."""
        return self.folder / f"{name}.log"

    def wait_for(self, what: str, question: Callable[[], T], seconds: float) -> T:
        """Poll until there is a result.

        what: completes "waited for ...".
        question: raises NotYetError while there is no answer.
        Raises TargetError when a process of this run ends meanwhile or the time is over, with the log's last lines.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                return question()
            except NotYetError as error:
                cause = str(error)
            self._raise_if_ended(what)
            if time.monotonic() > deadline:
                last = self.processes[-1]
                raise TargetError(f"waited {seconds:g} s for {what}; {cause}\n{self.last_words(last)}")
            time.sleep(_POLL)

    def ended(self) -> Process | None:
        """Return the first process that no longer runs, or None."""
        return next((each for each in self.processes if not each.alive()), None)

    def last_words(self, each: Process) -> str:
        """Return the last lines a process printed, under the name of its log."""
        return "\n".join([f"last lines of {each.name}.log:", *(f"  {line}" for line in tail(self.log(each.name)))])

    def end(self, each: Process, patience: float) -> None:
        """End one process, or see it ended, and forget it, so that its like can be started in the same folder.

        patience: seconds between SIGTERM and SIGKILL; 0 kills at once.
        """
        process.stop(each, self.folder, patience)
        self.processes.remove(each)
        # The record of this end must not be read as the next one's.
        (self.folder / f"{each.name}.ended").unlink(missing_ok=True)

    def keep(self) -> None:
        """Let the processes outlive this one."""
        while self._leashes:
            process.release(self._leashes.pop())

    def stop(self, patience: float) -> None:
        """End every process, last started first, and remove the folder.

        patience: seconds between SIGTERM and SIGKILL for each; 0 kills at once.
        """
        for each in reversed(self.processes):
            process.stop(each, self.folder, patience)
        while self._leashes:
            os.close(self._leashes.pop())
        # A server may hold no file of it any more, so what refuses to go is worth a word.
        while self.folder.exists():
            # On a busy machine a keeper removes the folder at the same time.
            with suppress(FileNotFoundError):
                shutil.rmtree(self.folder)

    def _raise_if_ended(self, what: str) -> None:
        gone = self.ended()
        if gone is None:
            return
        missing = needs.missing_library(self.last_words(gone))
        if missing is not None:
            raise missing
        how = process.describe(gone.exit_status(self.folder, patience=0.5))
        raise TargetError(f"{gone.name} {how} while kvref waited for {what}\n{self.last_words(gone)}")


def tail(log: Path) -> tuple[str, ...]:
    """Read the last lines of a log; none when the log is gone."""
    try:
        with log.open(errors="replace") as lines:
            return tuple(line.rstrip() for line in deque(lines, maxlen=_TAIL))
    except FileNotFoundError:
        return ()


class Restartable:
    """What restartable servers have in common: they know their process, stop it for a while, and end it.

    run: the folder of its data and logs.
    name: for errors.
    patience: seconds that it has to end after SIGTERM.
    """

    def __init__(self, run: Run, name: str, patience: float) -> None:
        self.name = name
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

    def pause(self) -> None:
        """Stop it with SIGSTOP: it keeps its connections and answers nothing."""
        os.kill(self._running().pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on with SIGCONT."""
        os.kill(self._running().pid, signal.SIGCONT)

    def exit_status(self) -> int | None:
        """Return how it ended by itself: an exit code, or the negative number of the signal; None while it runs."""
        if self._process is None or self._process.alive():
            return None
        return self._process.exit_status(self._run.folder, patience=1.0)

    def _running(self) -> Process:
        """Return its process; raises TargetError if it does not run."""
        if self._process is None or not self.running():
            raise TargetError(f"{self.name} does not run: start it first")
        return self._process

    def _end(self, patience: float) -> None:
        if self._process is not None:
            self._run.end(self._process, patience)
            self._process = None
