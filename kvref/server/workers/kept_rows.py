"""Rows of `containers` as the worker that first needed them read them: until the next reload they count for all."""

from __future__ import annotations

import json
import os
from dataclasses import astuple
from threading import Lock as ThreadLock

from kvref.server.workers.memory import Lock, Memory
from kvref.storage.containers import Container


class KeptRows:
    """Rows by name, in a file without a name; any thread of any worker may ask.

    Args:
        memory: has the lock.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._file = os.memfd_create("kvref-containers")
        self._threads = ThreadLock()  # a lock of the file is one for all threads of a process

    def row(self, key: str) -> Container | None:
        """Return the row that is kept under a name."""
        with self._threads, self._memory.locked(Lock.ROWS):
            return self._read().get(key)

    def keep(self, key: str, row: Container) -> Container:
        """Keep a row, unless one is kept already; returns the one that is."""
        with self._threads, self._memory.locked(Lock.ROWS):
            found = self._read().get(key)
            if found is None:
                line = json.dumps([key, *astuple(row)]).encode() + b"\n"
                os.pwrite(self._file, line, os.fstat(self._file).st_size)
            return found or row

    def clear(self) -> None:
        """Forget all of them: the configuration is read again."""
        with self._threads, self._memory.locked(Lock.ROWS):
            os.ftruncate(self._file, 0)

    def _read(self) -> dict[str, Container]:
        text = os.pread(self._file, os.fstat(self._file).st_size, 0)
        rows = (json.loads(line) for line in text.splitlines())
        return {key: Container(*cells) for key, *cells in rows}
