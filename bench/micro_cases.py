"""The exchanges that `micro.py` measures: one request of a client and what it is answered with, in both protocols."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import sha256
from itertools import cycle
from typing import TYPE_CHECKING, Final

from kvref_bench.load.work import Keys, Values
from kvref_bench.scenario.records import Table
from kvref_bench.workload.keys import key
from kvref_bench.workload.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY: Final = 100  # keys of a multi-get
VALUE: Final = 100  # bytes
LENGTH: Final = 17  # bytes of a key
VALUES: Final = Values((VALUE, VALUE))
FRAME: Final = struct.Struct(">BBHBBHIIQ")
GET, SET, NOOP, GETKQ, SETQ = 0x00, 0x01, 0x0A, 0x0D, 0x11
HEADER: Final = FRAME.size
FLAGS: Final = 4


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of exchange.

    keys, commands: in one request. reply_size: bytes of its whole answer. make: gives requests without end.
    """

    name: str
    keys: int
    commands: int
    reply_size: int
    make: Callable[[], Iterator[bytes]]


def table(keys: int) -> Table:
    """Return the table of the requests; its mapping is the default one."""
    return Table("demo", "default", Keys(keys, length=LENGTH), VALUES)


def cases(keys: int) -> tuple[Case, ...]:
    """Return all cases for a table with this number of rows, at least MANY."""
    there = [key(table(keys).keys, number) for number in range(keys)]
    odd = [_any_bytes(each) for each in there]
    missing = [key(table(2 * keys).keys, number) for number in range(keys, 2 * keys)]
    item = len(b"VALUE  0 100\r\n") + LENGTH + VALUE + 2
    found = HEADER + FLAGS + VALUE
    return (
        _case("get hit, text", 1, 1, item + 5, [b"get %b\r\n" % each for each in there]),
        _case("get hit, binary", 1, 1, found, [_frame(GET, each) for each in there]),
        _case("get miss, text", 1, 1, 5, [b"get %b\r\n" % each for each in missing]),
        _case("get miss, binary", 1, 1, HEADER + len("Not found"), [_frame(GET, each) for each in missing]),
        _case(
            f"get of {MANY}, text", MANY, 1, MANY * item + 5,
            [b"get %b\r\n" % b" ".join(some) for some in _many(there)],
        ),
        _case(
            f"get of {MANY}, binary", MANY, MANY + 1, MANY * (found + LENGTH) + HEADER,
            [b"".join([_frame(GETKQ, each) for each in some]) + _frame(NOOP) for some in _many(there)],
        ),
        _case(
            "set, text", 1, 1, len("STORED\r\n"),
            [b"set %b 0 0 %d\r\n%b\r\n" % (each, VALUE, value(VALUES, each)) for each in there],
        ),
        _case("set, binary", 1, 1, HEADER, [_frame(SET, each, bytes(8), value(VALUES, each)) for each in there]),
        _case(f"set of {MANY}, quiet binary", MANY, MANY + 1, HEADER, _quiet_sets(there)),
        _case(f"set of {MANY}, quiet binary, any bytes", MANY, MANY + 1, HEADER, _quiet_sets(odd)),
    )  # fmt: skip


def _case(name: str, keys: int, commands: int, size: int, requests: list[bytes]) -> Case:
    return Case(name, keys, commands, size, lambda: cycle(requests))


def _many(names: list[bytes]) -> list[list[bytes]]:
    return [names[first : first + MANY] for first in range(0, len(names) - MANY + 1, MANY)]


def _quiet_sets(names: list[bytes]) -> list[bytes]:
    return [
        b"".join([_frame(SETQ, each, bytes(8), value(VALUES, each)) for each in some]) + _frame(NOOP)
        for some in _many(names)
    ]


def _any_bytes(name: bytes) -> bytes:
    """Return a key that no line of text has; the rest is pseudo-random ASCII, which every column takes."""
    return b"\0 \n" + bytes([byte & 0x7F for byte in sha256(name).digest()[: LENGTH - 3]])


def _frame(opcode: int, name: bytes = b"", extras: bytes = b"", data: bytes = b"") -> bytes:
    body = extras + name + data
    return FRAME.pack(0x80, opcode, len(name), len(extras), 0, 0, len(body), 0, 0) + body
