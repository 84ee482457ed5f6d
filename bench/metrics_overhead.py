# /// script
# requires-python = ">=3.11"
# dependencies = ["kvref[bench,metrics]"]
# ///
"""What `--metrics` costs, scraped once a second: processor time of the server for a get, with it and without, in pairs.

    python bench/metrics_overhead.py                                  # ten pairs
    python bench/metrics_overhead.py --pairs 3 --gets 20000 --workers 2 --json overhead.json

Both servers run all the time and one is measured at a time; every second pair in reverse order. A measurement is a
number of gets over many connections; the CPU time of all processes of the servers is read from the kernel. Scrapes,
and the work that is done once a second, are included.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
import urllib.request
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from socket import create_connection
from typing import TYPE_CHECKING, Final

import click

from kvref_bench.pairs import cpus
from kvref_testbed import targets
from kvref_testbed.targets.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socket import socket

CONNECTIONS: Final = 64
GET: Final = b"get AA\r\n"
HIT: Final = b"VALUE AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"


@click.command()
@click.option("--pairs", default=10, show_default=True, type=click.IntRange(1))
@click.option("--gets", default=200_000, show_default=True, type=click.IntRange(CONNECTIONS), help="Of a measurement.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1))
@click.option("--every", default=1.0, show_default=True, type=click.FloatRange(0.01), help="Seconds between scrapes.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures there.")
def main(pairs: int, gets: int, workers: int, every: float, file: Path | None) -> None:
    """Measure pairs."""
    port = free_port()
    options = ["--workers", str(workers)]
    where = cpus.split("0", "1")
    with ExitStack() as stack:
        with cpus.on(where.servers):
            off = stack.enter_context(targets.running("kvref-sqlite", options))
            on = stack.enter_context(targets.running("kvref-sqlite", [*options, "--metrics", f"127.0.0.1:{port}"]))
        with cpus.on(where.clients):
            scrapes = stack.enter_context(scraped(f"http://127.0.0.1:{port}/metrics", every))
            sides = {"off": (off.pid, connected(stack, off)), "on": (on.pid, connected(stack, on))}
            for pid, clients in sides.values():
                microseconds(pid, clients, CONNECTIONS * 20)
            found: dict[str, list[float]] = {"off": [], "on": []}
            for number in range(pairs):
                for name in ("off", "on") if number % 2 else ("on", "off"):
                    found[name].append(microseconds(*sides[name], gets))
                click.echo(f"pair {number + 1}: off {found['off'][-1]:.2f} us, on {found['on'][-1]:.2f} us a get")
    ratios = [on / off for on, off in zip(found["on"], found["off"], strict=True)]
    middle = {name: statistics.median(each) for name, each in found.items()}
    click.echo(
        f"off {middle['off']:.2f} us, on {middle['on']:.2f} us a get; on/off {statistics.median(ratios):.3f}"
        f" ({min(ratios):.3f} to {max(ratios):.3f}), {len(scrapes)} scrapes of {max(scrapes, default=0)} bytes"
    )
    if file is not None:
        file.write_text(
            json.dumps({"gets": gets, "workers": workers, **found, "scrapes": len(scrapes)}, indent=1) + "\n"
        )


@contextmanager
def scraped(address: str, every: float) -> Iterator[list[int]]:
    """Scrape for the block; gives the bytes of each scrape so far."""
    sizes: list[int] = []
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(every):
            with urllib.request.urlopen(address, timeout=5) as reply:  # noqa: S310 - its own server
                sizes.append(len(reply.read()))

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    try:
        yield sizes
    finally:
        over.set()
        thread.join()


def connected(stack: ExitStack, target: targets.Target) -> list[socket]:
    """Open the connections of one side."""
    place = target.host, target.port
    return [stack.enter_context(closing(create_connection(place, timeout=10))) for _ in range(CONNECTIONS)]


def microseconds(pid: int, clients: list[socket], gets: int) -> float:
    """Get a row, one get at a time on each connection; return the server's CPU time in microseconds per get."""
    before, begun = used(pid), time.monotonic()
    rounds = gets // len(clients)
    for _ in range(rounds):
        for each in clients:
            each.sendall(GET)
        for each in clients:
            came = b""
            while len(came) < len(HIT):
                came += each.recv(4096)
            if came != HIT:
                raise click.ClickException(f"wanted {HIT!r}, found {came!r} after {time.monotonic() - begun:.1f} s")
    return (used(pid) - before) * 1e6 / (rounds * len(clients))


def used(pid: int) -> float:
    """Return the seconds of processor time of a server with all its processes."""
    return sum(sum(process.cpu_times()[:2]) for process in cpus.tree([pid]))


if __name__ == "__main__":
    main()
