"""Keys: the names of numbers, and how a session draws the numbers.

The numbers 0 to count - 1 are in the table when a point begins, those from count on are not. The name of a number never
depends on the seed of a run, so that a loaded table serves every point; the draws do.

    numbers = draws(work.keys, work, worker=0, session=0, amount=65536)
    names = [key(work.keys, number) for number in numbers.tolist()]
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_128
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kvref_bench.errors import BenchError
from kvref_bench.workload.trace import positions, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from kvref_bench.load.work import Keys, Work

    Numbers = NDArray[np.int64]

SHORTEST: Final = 8
LONGEST: Final = 250
# Eight letters and digits name 36**8 numbers, a little more than 2**41. No capitals: a column's collation may hold `a`
# and `A` for equal.
DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
PAIRS: Final = tuple(high + low for high in DIGITS for low in DIGITS)
LIMIT: Final = 1 << 41
MIX: Final = 0x9E3779B97F5 | 1

PARAMETERS: Final[dict[str, dict[str, float]]] = {"zipf": {"theta": 0.99}}
"""A distribution's parameters with what they are when a scenario does not say.

theta: of zipf, more than 0, 0.99 as in YCSB.
"""


def key(keys: Keys, number: int) -> bytes:
    """Return the name of a number, always the same and never that of another number.

    number: 0 to 2**41 - 1.
    """
    if keys.file is not None:
        lines = listed(keys)
        return lines[number] if number < len(lines) else b"missing-%d" % number
    if keys.shape == "int":
        return b"%d" % (number + 1)
    # An odd factor permutes the numbers below a power of two.
    left = number * MIX % LIMIT
    left, fourth = divmod(left ^ left >> 20, 1296)
    left, third = divmod(left, 1296)
    first, second = divmod(left, 1296)
    name = PAIRS[first] + PAIRS[second] + PAIRS[third] + PAIRS[fourth]
    rest = keys.length - len(name)
    if rest > 0:
        name += shake_128(name.encode()).hexdigest((rest + 1) // 2)[:rest]
    return name.encode()


def table_keys(keys: Keys) -> Iterator[bytes]:
    """Yield each key that is in the table when a point begins, once."""
    if keys.file is not None:
        yield from dict.fromkeys(listed(keys)[: keys.count])
        return
    for number in range(keys.count):
        yield key(keys, number)


def draws(keys: Keys, work: Work, worker: int, session: int, amount: int, first: int = 0) -> Numbers:
    """Draw the numbers of the keys that a session names, in order.

    worker: its number; a worker whose sessions share their draws draws for session 0. session: its number among those
        of all workers. amount: how many. first: how many were drawn before.

    Returns: `missing` of them are not in the table, with the distribution `own` none is.
    """
    if keys.distribution == "own":
        steps = np.arange(first, first + amount, dtype=np.int64)
        return keys.count + session + work.sessions * steps
    if keys.distribution == "trace" and keys.file is not None:
        return read_trace(keys.file).numbers[_of_trace(keys.file, work, worker, amount, first)]
    generator = np.random.default_rng([work.seed, worker, session, first])
    # Apart: the session has every so many-th key, and draws among these.
    every, mine = (work.sessions, session) if keys.apart else (1, 0)
    count = len(range(mine, keys.count, every))
    if keys.distribution in ("sequential", "file"):
        start = worker * amount + first
        places = (start + np.arange(amount, dtype=np.int64)) % count
    elif keys.distribution == "zipf":
        places = zipf(generator, count, (PARAMETERS["zipf"] | keys.parameters)["theta"], amount)
    else:
        places = generator.integers(0, count, amount, dtype=np.int64)
    if keys.missing:
        beyond = -(-keys.count // every)
        places = np.where(generator.random(amount) < keys.missing, places + beyond, places)
    numbers: Numbers = places * every + mine
    return numbers


def traced_verbs(keys: Keys, work: Work, worker: int, amount: int, first: int = 0) -> list[str]:
    """Return the verbs of the requests whose keys `draws` returns for a trace; arguments as there."""
    assert keys.file is not None
    verbs = read_trace(keys.file).verbs
    return [verbs[place] for place in _of_trace(keys.file, work, worker, amount, first).tolist()]


def _of_trace(file: str, work: Work, worker: int, amount: int, first: int) -> Numbers:
    """Return positions of requests in a trace: each worker goes on where the one before it ends."""
    chosen = positions(file, frozenset(work.verbs))
    return chosen[(worker * amount + first + np.arange(amount, dtype=np.int64)) % len(chosen)]


def listed(keys: Keys) -> tuple[bytes, ...]:
    """Return the keys of a file: lines, or the different keys of a trace. Raises as `read_file` and `read_trace`."""
    assert keys.file is not None
    return read_trace(keys.file).keys if keys.distribution == "trace" else read_file(keys.file)


def zipf(generator: Generator, count: int, theta: float, amount: int) -> Numbers:
    """Draw few keys often, and scatter these over all numbers: neighbours share a page of the table."""
    step = int(count * 0.6180339887) | 1
    while gcd(step, count) > 1:
        step += 2
    scattered: Numbers = ranks(generator, count, theta, amount) * step % count
    return scattered


def ranks(generator: Generator, count: int, theta: float, amount: int) -> Numbers:
    """Draw ranks, 0 the most frequent: rank r with a weight of 1 / (r + 1) ** theta."""
    reached = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -theta)
    places = np.searchsorted(reached, generator.random(amount) * reached[-1], side="right")
    # The product may round up to the last sum.
    drawn: Numbers = np.minimum(places, count - 1).astype(np.int64)
    return drawn


@lru_cache(maxsize=4)
def read_file(name: str) -> tuple[bytes, ...]:
    """Read the keys of a file, one in each line.

    Raises:
        BenchError: it cannot be read, has no key, or one that memcached does not take.
    """
    try:
        lines = Path(name).read_bytes().splitlines()
    except ValueError as error:
        raise BenchError(f"keys from the file {name!r}: {error}; name a file with one key in each line") from error
    except OSError as error:
        raise BenchError(
            f"keys from the file {name}: {error.strerror}; name a file with one key in each line"
        ) from error
    if not lines:
        raise BenchError(f"keys from the file {name}: it is empty; write one key in each line")
    for number, line in enumerate(lines, 1):
        if not 0 < len(line) <= LONGEST or line.split() != [line]:
            raise BenchError(f"{name}, line {number}: {line[:40]!r} is not a key; write 1 to 250 bytes without a space")
    return tuple(lines)
