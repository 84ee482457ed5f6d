"""Runs of kvref against `conformance/faulty_server.py`, and what they say."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers.waiting import until_listening

SERVER = Path(__file__).parents[1] / "conformance" / "faulty_server.py"
# Runs a command of kvref in an empty directory, its report in `out`.
Kvref = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def serving(*faults: str, watched: bool = False) -> Iterator[tuple[str, str]]:
    """Serve with faults; give the address and the command that starts the server again.

    With `watched` a shell does so by itself.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, str(SERVER), str(port), *faults]
    again = f"sh -c {shlex.quote(f'{shlex.join(words)} >/dev/null 2>&1 & echo $! >> again.pids')}"
    command = ["sh", "-c", f"while :; do {shlex.join(words)}; done"] if watched else words
    with subprocess.Popen(command, start_new_session=True) as server:
        until_listening(("127.0.0.1", port)).close()
        try:
            yield f"127.0.0.1:{port}", again
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def judged(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of verdicts in the report, by case."""
    lines = map(json.loads, (folder / "out" / "report.jsonl").read_text().splitlines())
    return {line["case"]: line for line in lines if line["kind"] == "verdict"}


def words(folder: Path) -> dict[str, str]:
    """Return the verdicts in the report, by case."""
    return {case: line["verdict"] for case, line in judged(folder).items()}


def stop_restarted(folder: Path) -> None:
    """End the servers that a restart command has started."""
    for pid in (folder / "again.pids").read_text().split():
        subprocess.run(["kill", "-9", pid], check=False, capture_output=True)
