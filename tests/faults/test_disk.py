"""A SQLite file on a disk that is full, that may not grow, or that is moved away; all pass by without a restart."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from faults.description import Fault, of
from faults.load import fetch
from faults.processes import assert_rests, children
from faults.small_disk import small_disk
from faults.steady import Steady, all_fail, all_go_on, writing
from faults.stores import Store
from helpers.live import missing_skips
from helpers.serving import Served, ask, serving

pytestmark = pytest.mark.live
GOES_ON = 10.0  # seconds in which every connection writes again
TRIES = 10
KEPT = b"VALUE kept 0 4\r\nhere\r\nEND\r\n"


SHORTEN = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=60)
while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() != (0, 0, 0):
    pass
"""


class Tried:
    """One fault of the disk, again and again under load.

    Args:
        fault: which.
        served: on that disk.
        cause: what each refused write answers.
        logged: the log says it too.
    """

    def __init__(self, fault: Fault, served: Served, cause: str, *, logged: bool = True) -> None:
        self._fault = fault
        self._served = served
        self._cause = cause
        self._logged = logged
        self.writers: list[Steady] = []

    @property
    def _pids(self) -> list[int]:
        return [self._served.process.pid, *children(self._served.process.pid)]

    def play(self, begins: Callable[[], None], ends: Callable[[], None], reads: bytes = KEPT) -> None:
        """Let the fault come and pass.

        Args:
            begins: makes the fault.
            ends: takes it away.
            reads: what a get of a row answers meanwhile.
        """
        begun = time.monotonic()
        with self._served.connect() as client:
            assert ask(client, b"set kept 0 0 4\r\nhere\r\n") == b"STORED\r\n"
            with writing(self._served, self._fault) as self.writers:
                for _ in range(self._fault.size):
                    all_go_on(self.writers, GOES_ON)
                    # What is written while the fault is made would make room for what follows.
                    for writer in self.writers:
                        writer.pause()
                    begins()
                    for writer in self.writers:
                        writer.go_on()
                    all_fail(self.writers, 60)
                    self._reads(client, reads)
                    for writer in self.writers:
                        writer.pause()
                    assert_rests(*self._pids)
                    ends()
                    for writer in self.writers:
                        writer.go_on()
                    self._fault.most("back_after_s", all_go_on(self.writers, GOES_ON))
                    self._fault.cycles += 1
        received = {text for writer in self.writers for text in writer.errors}
        assert received
        assert not [text for text in received if self._cause not in text], received
        reported = sum(self._cause in line for line in self._served.log)
        # Of each process one line in ten seconds.
        assert (1 if self._logged else 0) <= reported <= len(self._pids) * (2 + (time.monotonic() - begun) / 10), (
            "".join(self._served.log)
        )

    def _reads(self, client: socket.socket, reads: bytes) -> None:
        """Get until the reply is right: a get concurrent with a write receives that write's error."""
        for _ in range(TRIES):
            client.sendall(b"get kept\r\n")
            received = client.recv(1000)
            if received == reads:
                return
            assert received.startswith(b"SERVER_ERROR ")
            assert self._cause in received.decode()
            self._fault.add("gets_refused", 1)
        raise AssertionError(f"{received!r}, {TRIES} times")

    def check(self, rows: dict[str, str]) -> None:
        """Hold rows against what was acknowledged."""
        found = [text for writer in self.writers for text in writer.wrong_rows(rows)]
        self._fault.lost += len(found)
        assert found == []


def shorten(file: Path, through: Sequence[str] = ()) -> None:
    """Leave nothing of the log of a file: a long one is written again from its start, for which no room is needed.

    file: as it is called there where `through` leads, since SQLite looks behind links.
    """
    subprocess.run([*through, sys.executable, "-c", SHORTEN, str(file)], check=True, timeout=60)


@of("disk-full", "disk-full-workers")
def test_the_disk_is_full(fault: Fault, tmp_path: Path) -> None:
    options = ("--workers", "2") if fault.id == "disk-full-workers" else ()
    folder = tmp_path / "disk"
    folder.mkdir()
    dsn = f"sqlite:///{folder / 'kvref.sqlite'}"
    with ExitStack() as stack:
        with missing_skips():
            disk = stack.enter_context(small_disk(folder, "64m"))
        with serving(dsn, *options, first=disk.through) as served:
            tried = Tried(fault, served, "database or disk is full")

            def fill() -> None:
                shorten(disk.folder / "kvref.sqlite", disk.through)
                disk.fill()

            tried.play(fill, disk.free)
            served.process.kill()
        with serving(dsn, *options, first=disk.through) as served, served.connect() as client:
            tried.check(fetch(client, [key for writer in tried.writers for key in writer.keys]))


@of("file-size-limit")
def test_a_file_may_not_grow(fault: Fault, store: Store) -> None:
    assert store.file is not None
    log = store.file.with_name(f"{store.file.name}-wal")
    endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with serving(store.dsn) as served:
        pid = served.process.pid
        tried = Tried(fault, served, "raise `ulimit -f`")

        def limit() -> None:
            assert store.file is not None
            shorten(store.file)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (log.stat().st_size + 5000, endless[1]))

        tried.play(limit, lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, endless) and None)
        assert served.process.poll() is None
        served.process.kill()
    tried.check(store.rows())


@of("file-moved")
def test_the_file_is_moved_away_and_back(fault: Fault, store: Store) -> None:
    assert store.file is not None
    file, away = store.file, store.file.with_name("moved")
    reported = f"SERVER_ERROR store {file} was deleted or replaced: restart the server\r\n".encode()
    with serving(store.dsn) as served:
        tried = Tried(fault, served, "was deleted or replaced: restart the server", logged=False)
        tried.play(lambda: os.rename(file, away), lambda: os.rename(away, file), reported)  # noqa: PTH104 - returns nothing
        served.process.kill()
    tried.check(store.rows())
