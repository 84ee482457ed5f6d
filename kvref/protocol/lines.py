"""What the parsers of lines share: limits, words of refusal, what a line is parsed to, and how its numbers are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref.protocol import commands as c
from kvref.protocol import numbers
from kvref.protocol.rules import WireRules

ERROR: Final = b"ERROR"
BAD_FORMAT: Final = b"CLIENT_ERROR bad command line format"
BAD_EXPTIME: Final = b"CLIENT_ERROR Invalid expire time"
TOO_LARGE: Final = b"SERVER_ERROR object too large for cache"


@dataclass(slots=True)
class Block:
    """A storage line that waits for `length` bytes of data."""

    store: c.Store | c.MetaSet
    length: int


@dataclass(slots=True)
class Discard:
    """A refused storage line whose data, `length` bytes with its end, is thrown away."""

    command: c.Refused
    length: int


Parsed = c.Command | Block | Discard


def refused(command: c.Refused, length: int | None, rules: WireRules) -> Parsed:
    """Return a refused storage line, with its data where the profile throws that away and the length could be read."""
    return Discard(command, length + 2) if rules.swallows_refused and length is not None and length >= 0 else command


def sized(store: c.Store | c.MetaSet, length: int, rules: WireRules) -> Parsed:
    """Return a storage line that waits for its data, or a rejected one if the data is too large.

    Args:
        store: the storage command of the line.
        length: 0 or more.
        rules: grammar facts of the profile.
    """
    if fits(length, store.word, rules):
        return Block(store, length)
    removes = store.word if store.verb == "set" and rules.too_large_set_removes else b""
    command = c.Refused(TOO_LARGE, store.noreply, removes)
    # more:tail-006, out_string of memcached.c: with noreply the plugin goes to the next command at once.
    return command if store.noreply and not rules.swallows_too_large_noreply else Discard(command, length + 2)


def fits(length: int, word: bytes, rules: WireRules) -> bool:
    """Return whether a value is within the size limit.

    Args:
        length: of the value in bytes.
        word: the key.
        rules: grammar facts of the profile.
    """
    return rules.value_limit is None or length + (len(word) if rules.limit_counts_key else 0) <= rules.value_limit


def time_read(exptime: int, rules: WireRules) -> tuple[int, bytes]:
    """Return a time as the profile reads it, and why it is refused, empty where it is not."""
    if rules.wide_exptime == "error" and exptime >= 1 << 31:
        return exptime, BAD_FORMAT
    exptime = numbers.low_32_signed(exptime)
    return exptime, BAD_EXPTIME if exptime < 0 and rules.negative_exptime == "error" else b""


def length_read(word: bytes, rules: WireRules) -> int | None:
    """Return the length of a data block in bytes, or None if it is no number or out of the profile's range.

    Args:
        word: of the line.
        rules: grammar facts of the profile.
    """
    length = numbers.signed(word)
    if length is None:
        return None
    if rules.wide_length != "low-32-bits" and length >= 1 << 31:
        return None
    if rules.wide_length == "error" and length < -(1 << 31):
        return None
    length = numbers.low_32_signed(length)
    return length if length <= rules.longest_length else None
