# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""Bytes for each idle connection of a server, after one get on each connection, in text or binary.

    python bench/memory.py                                        # boots kvref over SQLite
    python bench/memory.py --target kvref-sqlite --target kvref-sqlite-workers --json memory.json
    python bench/memory.py --connections 0,100,1000

The measure is the resident memory of the server's process and of its children; shared pages count once for each
process. A figure is the growth from the first row that has connections, so that the memory of the first get
(statements, pages of SQLite's) is excluded. The kernel's own memory of a socket, some kilobytes, is not included.
"""

from __future__ import annotations

import json
import resource
import socket
import struct
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click
import psutil
from rich.console import Console
from rich.table import Table

from kvref_testbed import targets

KEY: Final = b"AA"
REQUESTS: Final = {
    "text": b"get %b\r\n" % KEY,
    "binary": struct.pack(">BBHBBHIIQ", 0x80, 0, len(KEY), 0, 0, 0, len(KEY), 0, 0) + KEY,
}
ANSWERS: Final = (b"VALUE ", b"END\r\n", b"\x81\x00")
SETTLED: Final = 0.3  # seconds
TIMEOUT: Final = 10.0  # seconds
SPARE: Final = 100  # descriptors of this process that are no connections


@dataclass(frozen=True, slots=True)
class Point:
    """What a server took with so many connections.

    Args:
        target: its name.
        protocol: text or binary.
        connections: how many were open.
        resident: bytes.
        each: bytes for each connection beyond those of the first point that has any; None there and before.
    """

    target: str
    protocol: str
    connections: int
    resident: int
    each: float | None


def resident(pid: int) -> int:
    """Return the bytes of a process and its children."""
    process = psutil.Process(pid)
    total: int = sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))
    return total


def measured(name: str, protocol: str, counts: list[int]) -> list[Point]:
    """Boot a target and open connections, so many after each other.

    Args:
        name: of the target.
        protocol: of REQUESTS.
        counts: ascending.

    Raises:
        ClickException: it refuses a connection.
        OSError: it does not answer.
        KvrefError: it cannot be booted.
    """
    points: list[Point] = []
    with targets.running(name) as target, ExitStack() as stack:
        for count in counts:
            opened = points[-1].connections if points else 0
            for _ in range(count - opened):
                stack.enter_context(_asked(target, REQUESTS[protocol]))
            time.sleep(SETTLED)
            now = resident(target.pid)
            first = next((point for point in points if point.connections), None)
            each = None if first is None else (now - first.resident) / (count - first.connections)
            points.append(Point(name, protocol, count, now, each))
    return points


def _asked(target: targets.Target, request: bytes) -> socket.socket:
    client = socket.create_connection((target.host, target.port), TIMEOUT)
    client.sendall(request)
    answer = client.recv(4096)
    if not answer.startswith(ANSWERS):
        said = answer.decode(errors="replace").strip() or "it closed the connection"
        raise click.ClickException(f"{target.name} refuses so many connections: {said}")
    return client


def _counts(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: write numbers with commas between them") from error
    if counts != sorted(set(counts)) or counts[0] < 0 or sum(count > 0 for count in counts) < 2:
        raise click.BadParameter(f"{text!r}: write two or more numbers above 0, ascending")
    return counts


@click.command(help=__doc__ and __doc__.partition("\n")[0])
@click.option("--target", "names", multiple=True, default=("kvref-sqlite",), show_default=True)
@click.option("--protocol", "protocols", multiple=True, type=click.Choice(list(REQUESTS)), default=tuple(REQUESTS))
@click.option("--connections", "counts", default="0,100,1000,4000", show_default=True, callback=_counts)
@click.option("--json", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write the points there too.")
def main(names: tuple[str, ...], protocols: tuple[str, ...], counts: list[int], file: Path | None) -> None:
    """Measure and show."""
    needed = counts[-1] + SPARE
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < needed:
        raise click.ClickException(f"{needed} descriptors are needed and `ulimit -Hn` is {most}: raise it")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))  # the server inherits it
    points = [point for name in names for protocol in protocols for point in measured(name, protocol, counts)]
    table = Table("server", "protocol", "connections", "resident, MiB", "bytes for each connection")
    for point in points:
        each = "" if point.each is None else f"{point.each:,.0f}"
        shown = (point.target, point.protocol, f"{point.connections:,}", f"{point.resident / (1 << 20):.1f}", each)
        table.add_row(*shown)
    Console().print(table)
    if file is not None:
        file.write_text(json.dumps([asdict(point) for point in points], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
