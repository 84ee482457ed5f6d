"""One server process that outlives the command that started it: start, recognise, stop.

A process is known by its number *and* its start time, since the kernel uses numbers again. Each is started by a small
shell, its keeper, which waits for it and writes down how it ended, so that a crash can be explained later.
Who groups processes into a target: `run.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# The subshell in the background has no parent that waits for it, so no zombie stays with the caller. It prints the
# number of the server and then lets go of the pipe. The leash is a pipe whose other end the caller holds: at its end
# (the caller died, however) the server is killed and its folder removed; the word `keep` takes the leash off.
# A background list reads /dev/null unless redirected (POSIX 2.9.3), hence the copy of standard input in descriptor 3.
# The leash ignores TERM once it pulls, because the keeper sends it TERM when the server ends by itself.
_KEEPER = """
log=$1 ended=$2 folder=$3; shift 3
exec 3<&0
(
  "$@" </dev/null >>"$log" 2>&1 3<&- &
  server=$!
  echo $server
  exec >/dev/null 2>&1
  (
    read -r word
    [ "$word" = keep ] && exit
    trap '' TERM
    PATH=/usr/bin:/bin
    kill -KILL $server
    while kill -0 $server; do sleep 0.1; done
    sleep 0.1
    rm -rf "$folder"
  ) <&3 &
  leash=$!
  exec 3<&-
  wait $server
  status=$?
  kill $leash
  echo $status >"$ended"
) &
"""
_SIGNAL_BASE = 128  # a shell reports death by signal N as 128 + N
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """One server process.

    name: names its files in the folder: `NAME.log`, `NAME.ended`.
    started: clock ticks since boot, field 22 of /proc/PID/stat (proc(5)); 0 when it ended before it could be read.
    """

    name: str
    pid: int
    started: int

    def alive(self) -> bool:
        """Return whether this very process, not a later one with its number, still runs."""
        return self.started != 0 and _start_time(self.pid) == self.started

    def exit_status(self, folder: Path, patience: float = 0.0) -> int | None:
        """Read how it ended: an exit code, or the negative number of the signal; None when not recorded.

        patience: seconds to wait for the record of a server that ended just now.
        """
        if not folder.is_dir():
            return None
        record = folder / f"{self.name}.ended"
        # The keeper writes one line; until its newline is there the record is not.
        _wait(lambda: record.exists() and record.read_bytes().endswith(b"\n"), patience)
        if not record.exists():
            return None
        text = record.read_text().strip()
        if not text:
            return None
        status = int(text)
        return _SIGNAL_BASE - status if status > _SIGNAL_BASE else status


def start(name: str, argv: Sequence[str], folder: Path, env: Mapping[str, str] | None) -> tuple[Process, int]:
    """Start a server in its own session, its output going to `NAME.log` in the folder.

    argv: the program's path and its arguments.
    env: the whole environment; None for the caller's.
    Returns the process and the leash: a file descriptor; closing it kills the server and removes the folder,
    `release` lets the server live on.
    """
    theirs, ours = os.pipe()
    try:
        keeper = subprocess.run(
            [
                "/bin/sh",
                "-c",
                _KEEPER,
                "keeper",
                str(folder / f"{name}.log"),
                str(folder / f"{name}.ended"),
                str(folder),
                *argv,
            ],
            stdin=theirs,
            stdout=subprocess.PIPE,
            env=env,
            start_new_session=True,
            check=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    pid = int(keeper.stdout)
    return Process(name, pid, _start_time(pid) or 0), ours


def release(leash: int) -> None:
    """Let the server outlive this process; the descriptor is closed."""
    # A keeper whose server has already ended no longer reads.
    with suppress(BrokenPipeError):
        os.write(leash, b"keep\n")
    os.close(leash)


def stop(process: Process, folder: Path, patience: float) -> None:
    """End a process and wait until it is gone; one that is gone already is left alone.

    patience: seconds between SIGTERM and SIGKILL; 0 kills at once.
    """
    if patience:
        _send(process, signal.SIGTERM)
        _wait(lambda: not process.alive(), patience)
    _send(process, signal.SIGKILL)
    _wait(lambda: not process.alive(), 10.0)
    # The keeper writes its last file after the server is gone; a folder removed before would come back.
    process.exit_status(folder, patience=1.0)


def describe(exit_status: int | None) -> str:
    """Put an exit status into words."""
    if exit_status is None:
        return "ended with an unknown status"
    if exit_status < 0:
        return f"was killed by {signal.Signals(-exit_status).name}"
    return f"exited with status {exit_status}"


def _send(process: Process, number: signal.Signals) -> None:
    if process.alive():
        # It may end between the question and the signal, which is what the signal is for.
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _start_time(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    state, started = fields[0], int(fields[19])
    return None if state in {"Z", "X"} else started


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(_POLL)
