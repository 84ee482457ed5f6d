"""Histories of concurrent commands, and their check by a program that shares nothing with kvref or its suite.

A history is a file with one line of JSON for each command. `checker/main.go` reads it: Porcupine decides for each key whether
there is an order of its commands that keeps real time and in which every reply is right. Gets that secondaries may answer are
checked by a rule of their own, `checker/session.go`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Self

from kvref_testbed.targets import MissingError

CHECKER = Path(__file__).with_name("checker")


@dataclass(frozen=True)
class Operation:
    """One command for one key.

    Args:
        client: who sends it.
        connection: which one of the client's, one after the other.
        key: of the item.
        kind: the command.
        argument: the value, or what is added.
        expected: the value that a cas command was based on.
        reply: what the checker knows the reply as; empty where none came.
        called: when it was sent, in nanoseconds of a monotonic clock.
        returned: when the reply was there; None: its outcome is unknown, it may take effect later, or never.
    """

    client: int
    connection: int
    key: str
    kind: str
    argument: str = ""
    expected: str = ""
    reply: str = ""
    called: int = 0
    returned: int | None = None


class History:
    """A file that threads add to.

    Args:
        file: overwritten.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lines = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()

    def add(self, operation: Operation) -> None:
        """Write down a command."""
        line = json.dumps(asdict(operation))
        with self._lock:
            self._lines.write(f"{line}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()


@dataclass(frozen=True)
class Verdict:
    """What the checker found.

    Args:
        keys, operations: how many there are.
        unknown: operations whose outcome is unknown.
        wrong: keys whose replies are not as promised; one that has no such order has a page next to the history.
        undecided: keys that took too long.
        stale: gets that missed an acknowledged write of another connection, where that is allowed.
    """

    keys: int
    operations: int
    unknown: int
    wrong: list[str]
    undecided: list[str]
    stale: int = 0


@cache
def _checker() -> Path:
    go = shutil.which("go")
    if go is None:
        raise MissingError("no go: apt-get install golang-go")
    program = Path(mkdtemp(prefix="kvref-checker-")) / "checker"
    subprocess.run([go, "build", "-o", str(program), "."], cwd=CHECKER, check=True, timeout=250)
    return program


def check(file: Path, *, session: bool = False) -> Verdict:
    """Return whether a history is linearizable, key by key.

    Args:
        file: the history.
        session: a plain get need only show what its own connection has written.

    Raises:
        MissingError: Go is not installed.
    """
    done = subprocess.run(
        [str(_checker()), *(["session"] if session else []), str(file)], stdout=subprocess.PIPE, check=True, text=True
    )
    return Verdict(**json.loads(done.stdout))
