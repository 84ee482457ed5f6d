"""Instructions that processes execute, counted by `perf stat` of Linux; virtual machines often have no counters."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from functools import cache
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EVENT: Final = "instructions"
IDLE: Final = "<not counted>"  # the processes did not run
LIMIT: Final = 10.0  # seconds in which perf ends


@cache
def available(event: str = EVENT) -> bool:
    """Return whether `perf stat` is installed and counts an event on this machine."""
    if shutil.which("perf") is None:
        return False
    done = subprocess.run([*_command(event), "--", "true"], capture_output=True, text=True, check=False)
    return done.returncode == 0 and _count(done.stderr) is not None


class Counter:
    """Counts an event in processes and in the threads and processes that they start, from its creation until `stop`.

    running: process numbers by role. event: a name that `perf list` has.

    Raises OSError if perf cannot be started.
    """

    def __init__(self, running: Mapping[str, Sequence[int]], event: str = EVENT) -> None:
        self._started = time.monotonic()
        self._perf = {
            role: subprocess.Popen(
                [*_command(event), "-p", ",".join(map(str, pids))],
                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for role, pids in running.items()
        }  # fmt: skip

    def stop(self) -> dict[str, float]:
        """End the count, and return the events of each second by role.

        Raises:
            BenchError: perf counted nothing, for example because a process ended.
        """
        seconds = time.monotonic() - self._started
        for perf in self._perf.values():
            perf.send_signal(signal.SIGINT)
        counted = {}
        for role, perf in self._perf.items():
            _, reported = perf.communicate(timeout=LIMIT)
            count = _count(reported)
            if count is None:
                raise BenchError(f"perf counted nothing of {role}: {reported.strip()}")
            counted[role] = count / seconds
        return counted

    def kill(self) -> None:
        """End the count without a result."""
        for perf in self._perf.values():
            perf.kill()
            perf.communicate()


def _command(event: str) -> list[str]:
    return ["perf", "stat", "-x,", "-e", event]


def _count(reported: str) -> float | None:
    """Return the count in what `perf stat -x,` reports; None if it has none."""
    for line in reported.splitlines():
        first = line.partition(",")[0]
        if first == IDLE:
            return 0.0
        if first.replace(".", "", 1).isdigit():
            return float(first)
    return None
