"""One frame of the binary protocol to one command: what each opcode must and may carry.

The checks of lengths follow the daemon's dispatch_bin_command (memcached.c).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvref.protocol import commands as c
from kvref.protocol.numbers import low_32_signed
from kvref.protocol.rules import WireRules

REQUEST: Final = 0x80
_HEADER: Final = struct.Struct(">BBHBxHI4sQ")
HEADER_SIZE: Final = _HEADER.size
_UINT32: Final = struct.Struct(">I")
_FLAGS_AND_TIME: Final = struct.Struct(">II")
_SUM: Final = struct.Struct(">QQI")
NOOP: Final = 0x0A
NEVER_CREATE: Final = 0xFFFFFFFF


class Header(NamedTuple):
    """The fields of a request's header that mean something; the data type does not."""

    magic: int
    opcode: int
    key_length: int
    extras_length: int
    vbucket: int
    body_length: int
    opaque: bytes
    cas: int

    @property
    def value_length(self) -> int:
        """Return how many bytes follow extras and key; negative where the body is too short for them."""
        return self.body_length - self.extras_length - self.key_length


def header_at(buffer: bytearray | bytes, position: int) -> Header:
    """Read the 24 bytes of a header."""
    return Header._make(_HEADER.unpack_from(buffer, position))


@dataclass(slots=True)
class Body:
    """What a frame carries behind its header."""

    extras: bytes
    word: bytes
    data: bytes


Build = Callable[[Header, Body, WireRules], c.Command]


@dataclass(frozen=True, slots=True)
class Opcode:
    """Layout of requests with an opcode.

    Args:
        extras: allowed lengths of the extras.
        key: required (True), forbidden (False), or optional (None).
        value: allowed.
        quiet: a success gets no reply.
        with_key: the reply contains the key.
        leaves_value: the length of the body is ignored: the next frame begins after the key (bin-stat-006, bin-208).
        own_engine: the daemon's own engine answers it without the tables, and any lengths are right: its body is the
            key and what follows (binary:bin-op-009, binary:bin-op-010, more:bin-211).
    """

    build: Build
    extras: tuple[int, ...] = (0,)
    key: bool | None = False
    value: bool = False
    quiet: bool = False
    with_key: bool = False
    leaves_value: bool = False
    own_engine: bool = False

    def accepts(self, header: Header) -> bool:
        """Return whether the lengths of a request are right."""
        if self.own_engine:
            return True
        if header.extras_length not in self.extras or (header.value_length < 0 and not self.leaves_value):
            return False
        if self.key is not None and self.key != (header.key_length > 0):
            return False
        return self.value or self.leaves_value or not header.value_length


def get(header: Header, body: Body, _rules: WireRules) -> c.Command:
    # process_bin_get hands the vbucket to an engine that reads there whether more words follow (more:bin-201).
    return c.Get([body.word], with_cas=True, more=header.vbucket != 0)


def get_and_touch(_header: Header, body: Body, rules: WireRules) -> c.Command:
    """Build a gat; touch is one whose value is not returned."""
    return c.GetAndTouch([body.word], _time(_UINT32.unpack(body.extras)[0], rules), with_cas=True)


def store(verb: str, header: Header, body: Body, rules: WireRules) -> c.Command:
    """Build a set, add or replace."""
    flags, time = _FLAGS_AND_TIME.unpack(body.extras)
    # process_bin_update: with a cas number each of the three is a check-and-set (binary:bin-set-009).
    return c.Store("cas" if header.cas else verb, body.word, flags, _time(time, rules), body.data, header.cas)


def join(verb: str, header: Header, body: Body, _rules: WireRules) -> c.Command:
    """Build an append or prepend."""
    return c.Store(verb, body.word, 0, 0, body.data, header.cas)


def add(header: Header, body: Body, rules: WireRules, *, increment: bool) -> c.Command:
    """Build an increment or decrement."""
    delta, initial, time = _SUM.unpack(body.extras)
    created = None if time == NEVER_CREATE else initial
    return c.Arithmetic(increment, body.word, delta, initial=created, exptime=_time(time, rules), cas=header.cas)


def _time(time: int, rules: WireRules) -> int:
    return low_32_signed(time) if rules.signed_times else time


def delete(header: Header, body: Body, _rules: WireRules) -> c.Command:
    return c.Delete(body.word, cas=header.cas)


def flush(_header: Header, body: Body, _rules: WireRules) -> c.Command:
    return c.FlushAll(_UINT32.unpack(body.extras)[0] if body.extras else 0)


def verbosity(_header: Header, body: Body, _rules: WireRules) -> c.Command:
    return c.Verbosity(_UINT32.unpack(body.extras)[0])


# Names of `stat` that match by prefix, also the word that follows `detail` and a blank (process_bin_stat).
_STATS: Final = (b"reset", b"settings", b"aggregate", b"detail dump", b"detail on", b"detail off")


def stat(_header: Header, body: Body, _rules: WireRules) -> c.Command:
    if not body.word:
        return c.Stats([])
    known = next((name for name in _STATS if body.word.startswith(name)), None)
    return c.Stats([body.word] if known is None else known.split())


def vbucket(verb: str, _header: Header, body: Body, _rules: WireRules) -> c.Command:
    return c.VBucket(verb, body.word, body.data)


TOUCH: Final = 0x1C
SETS: Final = (0x01, 0x11)
# TAP: answered before the body has arrived, as get_tap_iterator and tap_notify are missing (binary:bin-tap-001).
UNSUPPORTED: Final = range(0x40, 0x48)
