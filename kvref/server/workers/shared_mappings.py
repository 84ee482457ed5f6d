"""Mappings that one worker has read, for all workers."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from threading import Lock as ThreadLock
from typing import Any

from kvref.engine.mapping import OPTIONS, Column, Kind, Mapping
from kvref.storage.config.containers import Container


class SharedMappings:
    """Mappings of one store by name, in an anonymous file; every thread of every worker can use it.

    A row of `containers`, or its table, may change between two readings; then the later reader has to see what the
    earlier one made of it, faults included.
    """

    def __init__(self) -> None:
        self._file = os.memfd_create("kvref-containers")
        self._threads = ThreadLock()  # a lock of the file is one for all threads of a process

    def find(self, name: str) -> Mapping | None:
        """Return the stored mapping of a name, as it was read; of its columns it has only the names."""
        with self._locked():
            return self._read(name)

    def add(self, name: str, mapping: Mapping) -> Mapping | None:
        """Store a mapping, unless one of its name is stored: then return that one, as `find` does."""
        with self._locked():
            found = self._read(name)
            if found is None:
                line = json.dumps([name, _written(mapping)]).encode() + b"\n"
                os.pwrite(self._file, line, os.fstat(self._file).st_size)
            return found

    def clear(self) -> None:
        """Forget all of them: the configuration is read again."""
        with self._locked():
            os.ftruncate(self._file, 0)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _read(self, name: str) -> Mapping | None:
        text = os.pread(self._file, os.fstat(self._file).st_size, 0)
        known = (json.loads(line) for line in text.splitlines())
        return next((_mapping(written) for stored, written in known if stored == name), None)


def _written(mapping: Mapping) -> dict[str, Any]:
    assert isinstance(mapping.row, Container)
    return {
        "row": astuple(mapping.row),
        "names": (mapping.name, mapping.schema, mapping.table, mapping.source, mapping.key.name),
        "values": [column.name for column in mapping.values],
        **{what: column and column.name for what, column in mapping.options.items()},
    }


def _mapping(written: dict[str, Any]) -> Mapping:
    name, schema, table, source, key = written["names"]
    values = tuple(_column(each) for each in written["values"])
    options: dict[str, Any] = {what: written[what] and _column(written[what]) for what in OPTIONS}
    row = Container(*written["row"])
    return Mapping(name, schema, table, source, _column(key), values, **options, row=row)


def _column(name: str) -> Column:
    return Column(name, Kind.TEXT)
