"""Messages of both protocols: made after their grammars, with sizes and words at their limits, and then broken."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable
from typing import Final

Rng = random.Random

POOL: Final = 4096  # messages that are sent again in other company
NUMBERS: Final = (
    b"0", b"1", b"-1", b"7", b"007", b"+5", b"2147483647", b"2147483648", b"-2147483649", b"4294967295", b"4294967296",
    b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809", b"99999999999999999999999", b"1e3", b"x",
)  # fmt: skip
TIMES: Final = (b"0",) * 6 + (b"-1", b"1", b"100", b"2592001", b"4294967295", b"x")
NAMES: Final = (
    b"fuzz",
    b"wide",
    b"ints",
    b"none",
    b"",
    b"fuz",
    b"FUZZ",
    b"f" * 60,
    b"fuzz'",
    b"`x`",
    b"\xf0\x9f\x98\x80",
)
STORING: Final = (b"set", b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas")
STATS: Final = (
    b"", b"settings", b"items", b"slabs", b"sizes", b"reset", b"detail on", b"detail off", b"detail dump", b"vbucket",
    b"cachedump 1 1", b"aggregate", b"scrub", b"none",
)  # fmt: skip
ADMINISTRATION: Final = (
    b"lru_crawler metadump all", b"lru_crawler metadump 1,64", b"lru_crawler metadump ,", b"lru_crawler crawl all",
    b"lru_crawler enable", b"lru_crawler enable", b"lru_crawler disable", b"lru_crawler sleep 1000001", b"lru_crawler tocrawl x",
    b"lru_crawler", b"cache_memlimit 64", b"cache_memlimit 1 noreply", b"cache_memlimit x", b"refresh_certs",
    b"shutdown", b"shutdown graceful", b"shutdown noreply",
)  # fmt: skip
META_FLAGS: Final = (
    b"b", b"c", b"f", b"h", b"k", b"l", b"q", b"s", b"t", b"v", b"I", b"N0", b"N30", b"R30", b"T0", b"T30", b"T-1", b"Oabc",
    b"O" + b"o" * 40, b"MA", b"MS", b"MI", b"MD", b"M", b"MZ", b"F5", b"F4294967296", b"C1", b"Cx", b"J5", b"D3", b"z", b"\x7f",
)  # fmt: skip


def word(rng: Rng) -> bytes:
    """Return a key, mostly one of a few, at times with a mapping, a range, an odd byte or a length at the limit."""
    kind = rng.random()
    key = b"k%d" % rng.randrange(300)
    if kind < 0.6:
        return key
    if kind < 0.75:
        return b"@@" + rng.choice(NAMES) + b"." + key
    if kind < 0.8:
        return b"@@" + rng.choice(NAMES)
    if kind < 0.86:
        return rng.choice((b"@>", b"@>=", b"@<", b"@<=")) + rng.choice((key, b"", b"5", b"k1@<k2"))
    if kind < 0.9:
        return b"%d" % rng.randrange(100)
    if kind < 0.95:
        return rng.choice((b"x", b"\xff", b"\0", b"'", b"`", b"%", b"\xf0\x9f\x98\x80", b"\t", b"@")) + key
    return b"l" * rng.choice((32, 33, 64, 249, 250, 251, 300))


def data(rng: Rng) -> bytes:
    """Return a value."""
    kind = rng.random()
    if kind < 0.3:
        return b"%d" % rng.randrange(1000)
    if kind < 0.8:
        return b"v" * rng.randrange(80)
    if kind < 0.9:
        return rng.randbytes(rng.randrange(40))
    if kind < 0.95:
        return rng.choice((b"a|b|c", b"\r\n", b"END\r\n", b"1\r\nget k1\r\n", b"18446744073709551615", b"-1", b" 5"))
    return b"w" * rng.choice((255, 256, 1023, 1024, 1025, 4000))


def number(rng: Rng) -> bytes:
    """Return a number, or what is none."""
    return rng.choice(NUMBERS) if rng.random() < 0.3 else b"%d" % rng.randrange(100)


def _end(rng: Rng) -> bytes:
    return b" noreply\r\n" if rng.random() < 0.15 else b"\r\n"


def _text_get(rng: Rng) -> bytes:
    count = 1 if rng.random() < 0.8 else rng.randrange(2, 30)
    return rng.choice((b"get ", b"get ", b"gets ", b"bget ")) + b" ".join(word(rng) for _ in range(count)) + b"\r\n"


def _text_store(rng: Rng) -> bytes:
    verb, value = rng.choice(STORING), data(rng)
    length = number(rng) if rng.random() < 0.02 else b"%d" % len(value)
    cas = b" " + number(rng) if verb == b"cas" else b""
    head = b"%b %b %b %b %b%b" % (verb, word(rng), number(rng), rng.choice(TIMES), length, cas)
    return head + _end(rng) + value + (b"\r\n" if rng.random() < 0.99 else b"")


def _text_count(rng: Rng) -> bytes:
    return b"%b %b %b%b" % (rng.choice((b"incr", b"decr")), word(rng), number(rng), _end(rng))


def _text_touch(rng: Rng) -> bytes:
    if rng.random() < 0.5:
        return b"touch %b %b%b" % (word(rng), rng.choice(TIMES), _end(rng))
    return b"%b %b %b\r\n" % (rng.choice((b"gat", b"gats")), rng.choice(TIMES), word(rng))


def _text_meta(rng: Rng) -> bytes:
    verb, key = rng.choice((b"mg", b"mg", b"ms", b"md", b"ma", b"me")), word(rng)
    flags = rng.sample(META_FLAGS, rng.randrange(5))
    if b"b" in flags:
        key = base64.b64encode(key)
    line = b" ".join(
        [verb, key, *([b"%d" % len(value)] if (value := _meta_data(rng, verb)) is not None else []), *flags]
    )
    return line + b"\r\n" + (b"" if value is None else value + b"\r\n")


def _meta_data(rng: Rng, verb: bytes) -> bytes | None:
    return data(rng) if verb == b"ms" else None


def _text_other(rng: Rng) -> bytes:
    kind = rng.random()
    if kind < 0.2:
        return b"stats %b\r\n" % rng.choice(STATS)
    if kind < 0.25:
        return rng.choice((b"flush_all", b"flush_all 0", b"flush_all -1", b"flush_all 1 noreply")) + b"\r\n"
    if kind < 0.5:
        return b"bind %b\r\n" % rng.choice(NAMES)
    if kind < 0.6:
        return rng.choice((b"verbosity 1\r\n", b"version x\r\n", b"mn\r\n", b"\r\n", b"\n", b"quit x\r\n", b"get\r\n"))
    if kind < 0.61:
        return b"quit\r\n"
    if kind < 0.63:
        return rng.choice(ADMINISTRATION) + b"\r\n"
    if kind < 0.8:
        return b"version\r\n"
    return b" ".join(rng.choice((b"get", b"set", word(rng), number(rng), b"noreply")) for _ in range(6)) + b"\r\n"


_TEXT: Final = (
    (_text_get, 30), (_text_store, 30), (_text_count, 8), (_text_touch, 4), (_text_meta, 10), (_text_other, 8),
    (lambda rng: b"delete %b%b" % (word(rng), _end(rng)), 6),
)  # fmt: skip


def text(rng: Rng) -> bytes:
    """Return a message of the text protocol."""
    make: Callable[[Rng], bytes] = rng.choices([each for each, _ in _TEXT], [weight for _, weight in _TEXT])[0]
    return make(rng)


# Extras that an opcode has; all others are sent without.
_EXTRAS: Final = {
    **dict.fromkeys((0x01, 0x02, 0x03, 0x11, 0x12, 0x13), 8),
    **dict.fromkeys((0x05, 0x06, 0x15, 0x16), 20),
    **dict.fromkeys((0x1C, 0x1D, 0x1E, 0x23, 0x24), 4),
}
_VALUES: Final = (0x01, 0x02, 0x03, 0x11, 0x12, 0x13, 0x0E, 0x0F, 0x19, 0x1A)
_KEYLESS: Final = (0x07, 0x08, 0x0A, 0x0B, 0x17, 0x18)
_COMMON: Final = (
    0x00,
    0x00,
    0x09,
    0x0C,
    0x0D,
    0x01,
    0x01,
    0x02,
    0x03,
    0x04,
    0x05,
    0x06,
    0x0A,
    0x0E,
    0x0F,
    0x11,
    0x14,
    0x15,
    0x1D,
)


def binary(rng: Rng) -> bytes:
    """Return a frame of the binary protocol."""
    opcode = rng.choice(_COMMON) if rng.random() < 0.997 else rng.randrange(256)
    if opcode in (0x08, 0x18) and rng.random() < 0.9:
        opcode = 0x0A  # a flush is dear
    # What is wrong with lengths ends the connection: seldom enough that the frames behind are answered.
    key = b"" if opcode in _KEYLESS else word(rng)
    if len(key) > 250 and rng.random() < 0.9:
        key = key[:250]
    extras = rng.randbytes(_EXTRAS.get(opcode, 0)) if rng.random() < 0.3 else bytes(_EXTRAS.get(opcode, 0))
    value = data(rng) if opcode in _VALUES else b""
    if rng.random() < 0.002:
        extras = rng.randbytes(rng.randrange(30))
    length = len(extras) + len(key) + len(value)
    if rng.random() < 0.002:
        length = rng.choice((0, 1, length + 1, length + 100, 1 << 20, 1 << 31, (1 << 32) - 1))
    cas = rng.choice((0, 0, 0, 0, 1, (1 << 64) - 1))
    magic = 0x80 if rng.random() < 0.9995 else rng.randrange(256)
    head = struct.pack(
        ">BBHBBHIIQ",
        magic,
        opcode,
        len(key),
        len(extras),
        0,
        rng.randrange(4) // 3,
        length,
        rng.randrange(1 << 32),
        cas,
    )
    return head + extras + key + value


def mutated(rng: Rng, block: bytes) -> bytes:
    """Return bytes with one or a few of them changed, doubled or gone."""
    broken = bytearray(block)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(broken) + 1)
        match rng.randrange(6):
            case 0:
                broken[at : at + 1] = rng.randbytes(1)
            case 1:
                broken[at:at] = rng.randbytes(rng.randrange(1, 8))
            case 2:
                del broken[at : at + rng.randrange(1, 40)]
            case 3:
                broken[at:at] = broken[at : at + rng.randrange(1, 60)]
            case 4:
                broken[at : at + 1] = rng.choice((b"\r", b"\n", b"\0", b" ", b"\xff", b"@", b"9"))
            case _:
                broken[at : at + 2] = b"\r\n"
    return bytes(broken)


class Source:
    """Blocks of messages: new ones, and old ones in other company, some of them broken.

    Args:
        rng: decides.
        make: gives one message.
        broken: share of blocks in which bytes are changed.
    """

    def __init__(self, rng: Rng, make: Callable[[Rng], bytes], broken: float = 0.25) -> None:
        self._rng = rng
        self._make = make
        self._broken = broken
        self._pool = [make(rng) for _ in range(256)]

    def block(self, messages: int) -> bytes:
        """Return so many messages as bytes."""
        rng, pool = self._rng, self._pool
        new = [self._make(rng) for _ in range(max(1, messages // 6))]
        if len(pool) < POOL:
            pool += new
        else:
            at = rng.randrange(POOL - len(new))
            pool[at : at + len(new)] = new
        block = b"".join(new + rng.choices(pool, k=messages - len(new)))
        return mutated(rng, block) if rng.random() < self._broken else block
