# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench]"]
# ///
"""Latency of a newcomer's first get while greedy clients pipeline gets without end.

    python bench/newcomer.py                                         # boots kvref over SQLite, 200 greedy clients
    python bench/newcomer.py --target memcached --clients 20 --seconds 10 --json newcomer.json

A newcomer connects, sends one get and reads its reply: the time of all three is one sample. The greedy clients are one
process, which writes bursts of 10,000 gets to each connection and reads what comes, so that each always has work for
the server. Aim: at most 50 ms in the 99th percentile under 200 greedy clients.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import selectors
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from kvref_testbed import targets

GET: Final = b"get AA\r\n"
BURST: Final = memoryview(GET * 10_000)
END: Final = b"END\r\n"
TIMEOUT: Final = 60.0  # seconds
PAUSE: Final = 0.02  # seconds between two newcomers
SPARE: Final = 100  # descriptors of a process that are no connections


@dataclass(frozen=True, slots=True)
class Row:
    """What newcomers saw of a server.

    Args:
        target: its name.
        clients: how many greedy clients.
        samples: how many newcomers.
        median: milliseconds up to the reply.
        p99: the same, 99th percentile.
        largest: the same, of the slowest.
    """

    target: str
    clients: int
    samples: int
    median: float
    p99: float
    largest: float


def be_greedy(host: str, port: int, clients: int) -> None:
    """Send gets without end on many connections and drop the replies; runs until its process is ended."""
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        connection = socket.create_connection((host, port), TIMEOUT)
        connection.settimeout(0)
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [0])
    while True:
        for key, events in selector.select():
            connection, sent = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            try:
                if events & selectors.EVENT_READ:
                    connection.recv(1 << 20)
                if events & selectors.EVENT_WRITE:
                    sent[0] = (sent[0] + connection.send(BURST[sent[0] :])) % len(BURST)
            except BlockingIOError:
                pass  # the kernel has no room, or nothing, after all


def first_get(host: str, port: int) -> float:
    """Return the seconds from the connection's first packet to the end of its first reply.

    Raises:
        ClickException: the server closes the connection.
        OSError: it does not answer.
    """
    started = time.monotonic()
    with socket.create_connection((host, port), TIMEOUT) as newcomer:
        newcomer.sendall(GET)
        reply = b""
        while not reply.endswith(END):
            more = newcomer.recv(4096)
            if not more:
                raise click.ClickException("the server closed a newcomer's connection")
            reply += more
    return time.monotonic() - started


def measured(name: str, clients: int, seconds: float) -> Row:
    """Boot a target, keep it busy and connect again and again.

    Args:
        name: of the target.
        clients: how many are greedy.
        seconds: how long newcomers come.

    Raises:
        KvrefError: the target cannot be booted.
        OSError: it does not answer.
    """
    with targets.running(name) as target:
        greedy = multiprocessing.get_context("spawn").Process(
            target=be_greedy, args=(target.host, target.port, clients), daemon=True
        )
        greedy.start()
        try:
            time.sleep(1 + clients / 200)
            until = time.monotonic() + seconds
            taken = []
            while time.monotonic() < until or not taken:
                taken.append(first_get(target.host, target.port) * 1000)
                time.sleep(PAUSE)
        finally:
            greedy.terminate()
            greedy.join()
    taken.sort()
    return Row(name, clients, len(taken), taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1])


@click.command(help=__doc__ and __doc__.partition("\n")[0])
@click.option("--target", "names", multiple=True, default=("kvref-sqlite",), show_default=True)
@click.option("--clients", default=200, show_default=True, type=click.IntRange(1), help="Number of greedy clients.")
@click.option("--seconds", default=10.0, show_default=True, help="Seconds of measurement.")
@click.option("--json", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write the rows there too.")
def main(names: tuple[str, ...], clients: int, seconds: float, file: Path | None) -> None:
    """Measure and show."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < clients + SPARE:
        raise click.ClickException(f"{clients + SPARE} descriptors are needed and `ulimit -Hn` is {most}: raise it")
    resource.setrlimit(resource.RLIMIT_NOFILE, (clients + SPARE, most))  # the server inherits it
    rows = [measured(name, clients, seconds) for name in names]
    table = Table("server", "greedy clients", "newcomers", "median, ms", "p99, ms", "slowest, ms")
    for row in rows:
        figures = (f"{each:.1f}" for each in (row.median, row.p99, row.largest))
        table.add_row(row.target, str(row.clients), str(row.samples), *figures)
    Console().print(table)
    if file is not None:
        file.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
