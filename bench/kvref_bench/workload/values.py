"""Values: of a key always the same, so that every reply can be compared with what was stored.

Sizes of Facebook's ETC pool are those of mutilate's `fb_value` (the generalized Pareto distribution and the table of
small sizes of Atikoglu et al., Workload Analysis of a Large-Scale Key-Value Store, 2012).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from kvref_bench.workload.trace import read_trace

if TYPE_CHECKING:
    from kvref_bench.load.work import Values

BLOCK: Final = "".join(
    random.Random(1).choices("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", k=1 << 16)  # noqa: S311 - filler
)
# Probability of each size from 0 to 14 bytes; larger ones follow GPareto(15, 214.476, 0.348238).
SMALL: Final = tuple(
    accumulate((
        0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837, 0.08989,
        0.00092, 0.00326, 0.01980,
    ))
)  # fmt: skip
PLACE, SCALE, FORM = 15.0, 214.476, 0.348238
NUMBER_DIGITS: Final = 18


def value(values: Values, key: bytes) -> bytes:
    """Return the value of a key: printable ASCII without spaces, or a number of at most 18 digits."""
    digest = blake2b(key, digest_size=16).digest()
    traced = None if values.trace is None else read_trace(values.trace).sizes.get(key)
    wanted = size(values, int.from_bytes(digest[:8], "big") / 2.0**64) if traced is None else traced
    if values.form == "number":
        return b"%d" % (int.from_bytes(digest[8:], "big") % 10 ** min(wanted, NUMBER_DIGITS))
    head = digest[8:].hex()
    if wanted <= len(head):
        return head[:wanted].encode()
    rest = wanted - len(head)
    start = int.from_bytes(digest[6:8], "big")
    text = BLOCK[start : start + rest]
    while len(text) < rest:
        text += BLOCK[: rest - len(text)]
    return (head + text).encode()


def size(values: Values, place: float) -> int:
    """Return the size, bytes, at a place of the distribution, 0 to 1."""
    if values.sizes is not None:
        low, high = values.sizes
        return min(low + int(place * (high - low + 1)), high)
    small = bisect_right(SMALL, place)
    if small < len(SMALL):
        return small
    beyond = (place - SMALL[-1]) / (1 - SMALL[-1])
    if beyond >= 1:
        return values.limit
    return min(int(PLACE + SCALE * ((1 - beyond) ** -FORM - 1) / FORM), values.limit)


def longest(values: Values) -> int:
    """Return the size, bytes, that no value exceeds."""
    return values.limit if values.sizes is None else values.sizes[1]
