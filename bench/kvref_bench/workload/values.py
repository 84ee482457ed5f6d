"""Values: of a key always the same, so that every reply can be compared with what was stored."""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from kvref_bench.workload.trace import read_trace

if TYPE_CHECKING:
    from kvref_bench.load.work import Values

BLOCK: Final = "".join(
    random.Random(1).choices("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", k=1 << 16)  # noqa: S311 - filler
)
NUMBER_DIGITS: Final = 18
SEPARATOR: Final = "|"


def value(values: Values, key: bytes) -> bytes:
    """Return the value of a key: printable ASCII without spaces, or a number of at most 18 digits."""
    digest = blake2b(key, digest_size=16).digest()
    traced = None if values.trace is None else read_trace(values.trace).sizes.get(key)
    low, high = values.sizes
    drawn = min(low + int(int.from_bytes(digest[:8], "big") / 2.0**64 * (high - low + 1)), high)
    wanted = drawn if traced is None else traced
    if values.form == "number":
        return b"%d" % (int.from_bytes(digest[8:], "big") % 10 ** min(wanted, NUMBER_DIGITS))
    text = _text(digest, wanted)
    for number in range(1, values.columns):
        place = wanted * number // values.columns
        text = f"{text[:place]}{SEPARATOR}{text[place + 1 :]}"
    return text.encode()


def _text(digest: bytes, wanted: int) -> str:
    head = digest[8:].hex()
    if wanted <= len(head):
        return head[:wanted]
    rest = wanted - len(head)
    start = int.from_bytes(digest[6:8], "big")
    text = BLOCK[start : start + rest]
    while len(text) < rest:
        text += BLOCK[: rest - len(text)]
    return head + text
