"""Traces of caches in Twitter's format, plain or in gzip, one request a line:

    time, key, key size, value size, client, operation, TTL

Keys and operations are replayed in the order of the trace. Values are made, of the largest size that the trace has for
their key, so that each reply can be verified; times, clients and TTL are not used.

Source: https://github.com/twitter/cache-trace.
"""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kvref_bench.errors import BenchError
from kvref_bench.workload.commands import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

# Requests that are read; a longer trace is cut off behind them.
MAX_REQUESTS: Final = 1_000_000
MAX_KEY: Final = 250
MAX_VALUE: Final = 1 << 20
FIELDS: Final = 7
OPERATIONS: Final = (*OUTCOMES, "cas")


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
            requests = (_request(line, f"trace {name}, line {number}") for number, line in enumerate(file, 1))
            return _trace(name, requests)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BenchError(f"trace {name}: {reason}; name a file in Twitter's format, plain or .gz") from error


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
        raise BenchError(f"trace {name}: it is empty; name a file in Twitter's format")
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
    if operation not in OPERATIONS:
        raise BenchError(f"{where}: {operation[:20]!r} is not an operation; possible: {', '.join(OPERATIONS)}")
    return key, int(size), operation


def _check_key(key: bytes, where: str) -> None:
    if not 0 < len(key) <= MAX_KEY or key.split() != [key]:
        raise BenchError(f"{where}: {key[:40]!r} is not a key; write 1 to {MAX_KEY} bytes without a space")
