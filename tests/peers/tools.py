"""The libmemcached tools, and servers whose default table keeps every byte they send."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from helpers.live import missing_skips

from kvref import collations
from kvref_testbed import targets
from kvref_testbed.targets import Target

BYTES = (
    # What the tools send is bytes, no text; a key column is text, and any byte is a character of latin1.
    "CREATE TABLE anything (k VARCHAR(250) COLLATE latin1_bin NOT NULL PRIMARY KEY, v MEDIUMBLOB, f INT, c BIGINT UNSIGNED, e INT)",
    "UPDATE containers SET db_table = 'anything', key_columns = 'k', value_columns = 'v', flags = 'f', cas_column = 'c', expire_time_column = 'e'",
)


@contextmanager
def keeps_bytes(*options: str) -> Iterator[Target]:
    """Boot kvref over SQLite with a default table of bytes."""
    with targets.private("kvref-sqlite", options) as instance:
        assert instance.target.store is not None
        with closing(sqlite3.connect(instance.target.store.removeprefix("sqlite:///"), isolation_level=None)) as file:
            collations.register(file)
            for statement in BYTES:
                file.execute(statement)
        instance.restart({})
        yield instance.target


@contextmanager
def server(name: str) -> Iterator[Target]:
    """Boot what a row of `memccapable.toml` calls so."""
    kind, _, rest = name.partition(" ")
    if rest == "of bytes":
        with keeps_bytes() as target:
            yield target
        return
    with missing_skips():
        block = targets.running(kind, ["--profile", rest] if rest else [])
        target = block.__enter__()
    try:
        yield target
    finally:
        block.__exit__(None, None, None)


def tool(name: str) -> str:
    """Return the path of a tool, or skip; fail where CI is set."""
    path = shutil.which(name)
    if path is None:
        lacking = f"{name} is missing: apt-get install libmemcached-tools"
        pytest.fail(lacking) if os.environ.get("CI") else pytest.skip(lacking)
    return path
