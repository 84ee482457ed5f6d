"""A mapping `cache` that is sharded by key over several stores, and what its shards have."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from database import sql
from serving import Served, running

from kvref import profiles
from kvref.storage.several import shard_of
from kvref.storage.sqlite.store import SQLiteStore
from kvref_testbed.targets import SQLServer

NAMES = ("one", "two", "three", "four")
KEYS = [b"k%d" % n for n in range(300)]


def cache(path: Path, name: str = "cache") -> Path:
    """Make a SQLite file with a mapping."""
    store = SQLiteStore(path, profiles.load("kvref"))
    store.initialise(demo=False)
    store.add_cache(name)
    store.close()
    return path


def configuration(folder: Path, dsns: Sequence[str], shards: Sequence[str] = ()) -> Path:
    """Write a file whose mapping `cache` is sharded over all stores, or over some."""
    file = folder / "kvref.toml"
    stores = [f'[[store]]\nname = "{name}"\ndsn = "{dsn}"\n' for name, dsn in zip(NAMES, dsns, strict=False)]
    file.write_text("".join(stores) + f'[[mapping]]\nname = "cache"\nstores = {list(shards or NAMES[: len(dsns)])}\n')
    return file


def command(file: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "kvref", "serve", "--config", str(file), "--listen", "127.0.0.1:0", *options]


@contextmanager
def serving(files: Sequence[Path], *options: str, shards: Sequence[str] = ()) -> Iterator[Served]:
    file = configuration(files[0].parent, [f"sqlite:///{each}" for each in files], shards)
    with running(command(file, *options), str(file)) as served:
        yield served


def rows(path: Path, query: str = "SELECT cache_key FROM cache") -> list[bytes]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as file:
        return sorted(each for (each,) in file.execute(query).fetchall())


def of_shard(number: int, count: int) -> list[bytes]:
    return sorted(key for key in KEYS if shard_of(NAMES[:count], key) == number)


def put(keys: Sequence[bytes]) -> bytes:
    return b"".join(b"set %b 3 0 %d\r\n%b\r\n" % (key, len(key), key) for key in keys)


def shown(keys: Sequence[bytes], flags: int = 3) -> bytes:
    return b"".join(b"VALUE %b %d %d\r\n%b\r\n" % (key, flags, len(key), key) for key in keys) + b"END\r\n"


def statements(server: SQLServer, verb: str) -> int:
    """Return how many statements with a verb a database has run."""
    ((_, number),) = sql(server, f"SHOW GLOBAL STATUS LIKE 'Com_{verb}'")
    return int(number)
