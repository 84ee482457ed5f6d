"""Traces of caches, plain or in gzip: requests in Twitter's format, or items or commands of memtier_benchmark.

    time, key, key size, value size, client, operation, TTL                                          one request a line
    dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, "key", "data"                  one item a row
    1764031576.604009 [0 127.0.0.1:51682] "SET" "key" "value"                                        one command a line

Keys and operations are replayed in the order of the trace. An item is a `set` and a `get`, as memtier_benchmark sends
them with `--data-import` and `--ratio=1:1`. A command is the request of memcached that does the same, one for each key.
Values are made, of the largest size that the trace has for their key, so that each reply can be verified; times,
clients, TTL and the data of items and commands are not used.

Sources: https://github.com/twitter/cache-trace; README.import, file_io.cpp and README.md (`--monitor-input`) of
https://github.com/RedisLabs/memtier_benchmark, whose `nbytes` counts the CR LF behind the data too;
https://redis.io/commands/monitor.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kvref_bench.errors import BenchError
from kvref_bench.workload.commands import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

# Requests that are read; a longer trace is cut off behind them.
MAX_REQUESTS: Final = 1_000_000
MAX_KEY: Final = 250
MAX_VALUE: Final = 1 << 20
FIELDS: Final = 7
_ITEMS: Final = b"dumpflags, time, exptime"  # how the header of a file of items begins
_ITEM: Final = ("dumpflags", "time", "exptime", "nbytes", "nsuffix", "it_flags", "clsid", "nkey", "key", "data")
_CR_LF: Final = 2
# A line of MONITOR: a proxy may name itself before the time, and a client of the server itself has a `+` first.
_COMMAND: Final = re.compile(rb'\+?(?:\[[^]]*\] *)?\d+\.\d+ \[[^"]*\]((?: "(?:[^"\\]|\\.)*")+)\s*')
_WORD: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)")
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}
# Commands of one key, and the position of their value if they have one.
_ONE_KEY: Final = {
    b"GET": ("get", 0), b"SET": ("set", 2), b"SETEX": ("set", 3), b"PSETEX": ("set", 3), b"SETNX": ("add", 2),
    b"APPEND": ("append", 2), b"INCR": ("incr", 0), b"INCRBY": ("incr", 0), b"DECR": ("decr", 0),
    b"DECRBY": ("decr", 0), b"EXPIRE": ("touch", 0), b"PEXPIRE": ("touch", 0),
}  # fmt: skip
_SEVERAL_KEYS: Final = {b"MGET": "get", b"DEL": "delete", b"UNLINK": "delete", b"TOUCH": "touch"}
_CONDITIONS: Final = {b"NX": "add", b"XX": "replace"}  # of SET

_FORMATS: Final = "in Twitter's format or one of memtier_benchmark's --data-import and --monitor-input"


class Trace(NamedTuple):
    """A trace.

    keys: each once, in the order of their first requests. sizes: of the values by key, bytes. numbers: of each request,
    the position of its key in `keys`. verbs: of each request.
    """

    keys: tuple[bytes, ...]
    sizes: dict[bytes, int]
    numbers: NDArray[np.int64]
    verbs: tuple[str, ...]

    def selected(self, verbs: frozenset[str]) -> NDArray[np.int64]:
        """Return the positions of the requests with some verbs."""
        return np.array([place for place, verb in enumerate(self.verbs) if verb in verbs], dtype=np.int64)


@lru_cache(maxsize=2)
def read_trace(name: str) -> Trace:
    """Read the first MAX_REQUESTS requests of a trace.

    Raises:
        BenchError: it cannot be read, has no request, or a line that is none; the text names file, line and fix.
    """
    path = Path(name)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            first = file.readline()
            if first.startswith(_ITEMS):
                with io.TextIOWrapper(file, "latin-1", newline="") as rows:
                    return _trace(name, _requests_of_items(name, rows))
            lines = enumerate(chain([first] if first else [], file), 1)
            if first.rstrip() in {b"OK", b"+OK"} or _COMMAND.fullmatch(first):
                return _trace(name, _requests_of_commands(name, lines))
            return _trace(name, (_request(line, f"trace {name}, line {number}") for number, line in lines))
    except (OSError, EOFError, zlib.error, csv.Error, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise BenchError(f"trace {name}: {said}; name a file {_FORMATS}, plain or .gz") from error


@lru_cache(maxsize=8)
def positions(name: str, verbs: frozenset[str]) -> NDArray[np.int64]:
    """Return the positions of the requests of a trace with some verbs; raises as `read_trace`."""
    return read_trace(name).selected(verbs)


def _trace(name: str, requests: Iterable[tuple[bytes, int, str]]) -> Trace:
    places: dict[bytes, int] = {}
    sizes: dict[bytes, int] = {}
    numbers: list[int] = []
    verbs: list[str] = []
    for key, size, verb in islice(requests, MAX_REQUESTS):
        numbers.append(places.setdefault(key, len(places)))
        sizes[key] = max(size, sizes.get(key, 0))
        verbs.append(verb)
    if not verbs:
        raise BenchError(f"trace {name}: it is empty; name a file {_FORMATS}")
    return Trace(tuple(places), sizes, np.array(numbers, dtype=np.int64), tuple(verbs))


def _request(line: bytes, where: str) -> tuple[bytes, int, str]:
    # A key may have commas.
    fields = line.rstrip(b"\r\n").rsplit(b",", FIELDS - 2)
    time, comma, key = fields[0].partition(b",")
    if len(fields) != FIELDS - 1 or not comma or not time.isdigit():
        raise BenchError(
            f"{where}: {line[:60]!r} is not a request; write time,key,key size,value size,client,operation,TTL"
        )
    size, operation = fields[2], fields[4].decode("latin-1")
    _check_key(key, where)
    if not size.isdigit() or len(size) > len(str(MAX_VALUE)) or int(size) > MAX_VALUE:
        raise BenchError(f"{where}: a value of {size[:20].decode('latin-1')} bytes; write 0 to {MAX_VALUE}")
    if operation not in OUTCOMES:
        raise BenchError(f"{where}: {operation[:20]!r} is not an operation; possible: {', '.join(OUTCOMES)}")
    return key, int(size), operation


def _requests_of_items(name: str, rows: Iterable[str]) -> Iterator[tuple[bytes, int, str]]:
    """Yield the requests that the rows behind the header stand for."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_VALUE))
    for number, row in enumerate(csv.reader(rows, skipinitialspace=True), 1):
        where = f"trace {name}, item {number}"
        if len(row) != len(_ITEM) or not all(each.isdigit() for each in row[:8]):
            raise BenchError(f"{where}: {str(row)[:60]} is not an item; write {', '.join(_ITEM)}")
        item = dict(zip(_ITEM, row, strict=True))
        key, size = item["key"].encode("latin-1"), len(item["data"])
        _check_key(key, where)
        if (int(item["nkey"]), int(item["nbytes"])) != (len(key), size + _CR_LF):
            raise BenchError(
                f"{where}: nkey {item['nkey']} and nbytes {item['nbytes']}; write the lengths of the key, {len(key)},"
                f" and of the data with CR LF, {size + _CR_LF}"
            )
        yield key, size, "set"
        yield key, size, "get"


def _requests_of_commands(name: str, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[bytes, int, str]]:
    """Yield the requests that lines of MONITOR stand for."""
    for number, line in lines:
        if line.strip() in {b"", b"OK", b"+OK"}:
            continue
        where = f"trace {name}, line {number}"
        found = _COMMAND.fullmatch(line)
        if found is None:
            raise BenchError(
                f'{where}: {line[:60]!r} is not a command; write TIME [DATABASE CLIENT] "COMMAND" "KEY" ...'
            )
        command, *words = (_ESCAPE.sub(_unescaped, word) for word in _WORD.findall(found[1]))
        verb, keys, size = _operation(command.upper(), words)
        if not keys or size > MAX_VALUE:
            known = ", ".join(sorted(each.decode() for each in (*_ONE_KEY, *_SEVERAL_KEYS)))
            raise BenchError(
                f"{where}: {line[:60]!r} is not a request that memcached has, of at most {MAX_VALUE} bytes; keep lines"
                f" of {known} with their arguments"
            )
        for key in keys:
            _check_key(key, where)
            yield key, size, verb


def _operation(command: bytes, words: list[bytes]) -> tuple[str, list[bytes], int]:
    """Return the verb of a command, its keys and the size of its value; no key if memcached has no such request."""
    if command in _SEVERAL_KEYS:
        return _SEVERAL_KEYS[command], words, 0
    verb, place = _ONE_KEY.get(command, ("", 0))
    if not verb or len(words) < max(place, 1):
        return verb, [], 0
    if command == b"SET":
        verb = next((_CONDITIONS[word.upper()] for word in words[2:] if word.upper() in _CONDITIONS), verb)
    return verb, words[:1], len(words[place - 1]) if place else 0


def _unescaped(found: re.Match[bytes]) -> bytes:
    sign = found[1]
    return bytes.fromhex(sign[1:].decode()) if len(sign) > 1 else _ESCAPED.get(sign, sign)


def _check_key(key: bytes, where: str) -> None:
    if not 0 < len(key) <= MAX_KEY or key.split() != [key]:
        raise BenchError(f"{where}: {key[:40]!r} is not a key; write 1 to {MAX_KEY} bytes without a space")
