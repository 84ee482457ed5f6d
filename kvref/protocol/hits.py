"""What a get shows of an item in the text protocol, made once and cached with the row."""

from __future__ import annotations

from typing import Final

END: Final = b"END\r\n"
SHOWN: Final = b"VALUE %b %d %d\r\n%b\r\n"  # one hit of a get: word, flags, length and data


def shown(word: bytes, flags: int, data: bytes) -> bytes:
    """Return one hit of a get, without END; flags are 0 to 2^32-1."""
    return SHOWN % (word, flags, len(data), data)


def numbered(hit: bytes, cas: int) -> bytes:
    """Return what `shown` returned as a gets shows it, with a cas number of 0 to 2^64-1."""
    end = hit.index(b"\r\n")
    return b"%b %d%b" % (hit[:end], cas, hit[end:])


def renamed(hit: bytes, key: bytes, word: bytes) -> bytes:
    """Return what `shown` returned for a key as it is shown for another word."""
    return b"VALUE %b%b" % (word, hit[len(b"VALUE ") + len(key) :])


def data_of(hit: bytes) -> bytes:
    """Return the value in what `shown` returned."""
    return hit[hit.index(b"\r\n") + 2 : -2]
