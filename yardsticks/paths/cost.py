"""CPU of planned commands, and of the same ones by steps, in interleaved pairs in one process.

    python -m yardsticks.paths.cost [--pairs N] [--connections N] [CASE]...

Prints microseconds a command on both paths, and the median of the ratios of the pairs. No sockets and no disk: what is
measured is everything between `data_received` and `write`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvloop

from yardsticks.paths.inside import PLAN, STEPS, Side, Transport
from yardsticks.paths.tables import TABLES

DEMO: Final = next(table for table in TABLES if table.title == "demo")
ROUNDS: Final = 40  # of all connections in one measurement
Cases = Callable[[int, int], dict[str, bytes]]
VALUE: Final = b"v" * 100


def cases(connection: int, turn: int) -> dict[str, bytes]:
    """Return what a connection sends in one turn, by case."""
    key = b"key%d" % connection
    fresh = b"%d-%d" % (connection, turn)
    line = b"%d\r\n%b\r\n" % (len(VALUE), VALUE)
    several = [b"set p%d-%d 0 0 %b" % (connection, number, line) for number in range(16)]
    return {
        "get cached": b"get %b\r\n" % key,
        "get not cached": b"get cold%b\r\n" % fresh,
        "get of 10, cached": b"get" + b" %b" % key * 10 + b"\r\n",
        "get of 10, not cached": b"get" + b"".join(b" cold%b-%d" % (fresh, n) for n in range(10)) + b"\r\n",
        "16 gets": b"get %b\r\n" % key * 16,
        "16 sets": b"".join(several),
        "16 mixed": (b"get %b\r\n" % key * 15) + several[0],
        "set of a known row": b"set %b 0 0 %b" % (key, line),
        "set of a new row": b"set new%b 0 0 %b" % (fresh, line),
        "set with expiry": b"set %b 0 900 %b" % (key, line),
        "add": b"add added%b 0 0 %b" % (fresh, line),
        "replace": b"replace %b 0 0 %b" % (key, line),
        "incr": b"incr number%d 1\r\n" % connection,
        "append": b"append short%d 0 0 1\r\nx\r\n" % connection,
        "touch": b"touch %b %d\r\n" % (key, 1000 + turn),
        "cas that fails": b"cas %b 0 0 1 1\r\nx\r\n" % key,
        "delete": b"delete %b\r\n" % key,
        "mg, cached": b"mg %b v\r\n" % key,
        "mg, not cached": b"mg cold%b v\r\n" % fresh,
        "ms": b"ms %b %d\r\n%b\r\n" % (key, len(VALUE), VALUE),
        "md": b"md %b\r\n" % key,
        "ma": b"ma number%d v\r\n" % connection,
        "gat of 5": b"gat 0" + b" %b" % key * 5 + b"\r\n",
    }


def frame(opcode: int, key: bytes, value: bytes = b"", extras: bytes = b"") -> bytes:
    """Return a binary request."""
    body = extras + key + value
    return struct.pack(">BBHBxHI4xQ", 0x80, opcode, len(key), len(extras), 0, len(body), 0) + body


def binary_cases(connection: int, turn: int) -> dict[str, bytes]:
    """Return what a connection of the binary protocol sends in one turn, by case."""
    key, fresh = b"key%d" % connection, b"%d-%d" % (connection, turn)
    quiet = [frame(0x09, b"key%d" % connection) for _ in range(15)]
    return {
        "binary get, cached": frame(0x00, key),
        "binary get, not cached": frame(0x00, b"cold" + fresh),
        "16 binary gets": b"".join([*quiet, frame(0x00, key)]),
        "binary set": frame(0x01, key, VALUE, bytes(8)),
        "binary add": frame(0x02, b"added" + fresh, VALUE, bytes(8)),
        "binary incr": frame(0x05, b"number%d" % connection, b"", struct.pack(">QQI", 1, 0, 0)),
        "binary append": frame(0x0E, b"short%d" % connection, b"x"),
        "binary delete": frame(0x04, key),
        "binary touch": frame(0x1C, key, b"", struct.pack(">I", 1000 + turn)),
    }


SETUP: Final = (
    "set key{0} 0 0 3\r\nabc\r\n",
    "set number{0} 0 0 1\r\n1\r\n",
    "set short{0} 0 0 1\r\nx\r\n",
    "get key{0}\r\n",
)


class Counted:
    """A transport that keeps nothing.

    Args:
        inner: answers what a connection asks besides.
        waiting: of how many transports nothing was written yet, in its only item.
    """

    closed = False

    def __init__(self, inner: Transport, waiting: list[int]) -> None:
        self._waiting = waiting
        self.fresh = True
        self.get_extra_info, self.is_closing = inner.get_extra_info, inner.is_closing
        self.pause_reading = self.resume_reading = inner.pause_reading

    def write(self, _data: bytes) -> None:
        """Note that a reply is there."""
        if self.fresh:
            self.fresh = False
            self._waiting[0] -= 1


async def once(side: Side, inputs: list[list[bytes]]) -> float:
    """Return the CPU seconds that a side takes for some rounds of input, each sent once the last one is answered."""
    waiting = [0]
    transports = [Counted(transport, waiting) for _, transport in side.connections]
    for (connection, _), counted in zip(side.connections, transports, strict=True):
        connection._transport = counted  # type: ignore[assignment]
    began = time.process_time()
    for turn in inputs:
        waiting[0] = len(transports)
        for counted in transports:
            counted.fresh = True
        for (connection, _), data in zip(side.connections, turn, strict=True):
            connection.data_received(data)
        while waiting[0]:
            await asyncio.sleep(0)
    spent = time.process_time() - began
    await side.settle()
    for connection, transport in side.connections:
        connection._transport = transport  # type: ignore[assignment]
    return spent


def setup_of(number: int, *, binary: bool) -> list[bytes]:
    """Return what a connection sends before it is measured."""
    if not binary:
        return [line.format(number).encode() for line in SETUP]
    sets = {b"key%d" % number: b"abc", b"number%d" % number: b"1", b"short%d" % number: b"x"}
    return [frame(0x01, key, value, bytes(8)) for key, value in sets.items()] + [frame(0x00, b"key%d" % number)]


async def measure(cases: Cases, names: list[str], pairs: int, connections: int) -> None:
    """Measure and print cases of one protocol."""
    binary = cases is binary_cases
    folder = Path(tempfile.mkdtemp(prefix="kvref-cost-"))
    sides = Side(STEPS, "kvref", DEMO, folder), Side(PLAN, "kvref", DEMO, folder)
    turn = 0
    for side in sides:
        side.clear()
        side.connect(connections)
    for name in names:
        ratios, spent, commands = [], [0.0, 0.0], 0
        for pair in range(pairs):
            for side in sides:
                for number in range(connections):
                    for data in setup_of(number, binary=binary):
                        side.feed(number, data)
                await side.settle()
                for _, transport in side.connections:
                    transport.written = b""
            inputs = [[cases(number, turn + r)[name] for number in range(connections)] for r in range(ROUNDS)]
            turn += ROUNDS
            order = (0, 1) if pair % 2 else (1, 0)
            times = [0.0, 0.0]
            for place in order:
                times[place] = await once(sides[place], inputs)
            ratios.append(times[1] / times[0])
            spent = [a + b for a, b in zip(spent, times, strict=True)]
            commands += ROUNDS * connections * (16 if name.startswith("16") else 1)
        steps, plan = (each / commands * 1e6 for each in spent)
        print(f"{name:24} steps {steps:7.1f} plan {plan:7.1f} µs, ratio {statistics.median(ratios):.2f}", flush=True)
    for side in sides:
        await side.close()
    shutil.rmtree(folder)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("case", nargs="*")
    given = parser.parse_args()
    logging.getLogger("kvref").setLevel(logging.CRITICAL)
    for of_protocol in (cases, binary_cases):
        names = [each for each in of_protocol(0, 0) if each in given.case or not given.case]
        if names:
            uvloop.run(measure(of_protocol, names, given.pairs, given.connections))


if __name__ == "__main__":
    main()
