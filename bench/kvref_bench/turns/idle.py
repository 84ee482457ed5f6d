"""What a server costs apart from its load: memory of idle connections, the first reply of a newcomer, its start.

`memory`: resident memory of the server's process and of its children; shared pages count once for each process. A
figure is the growth from the first point that has connections, so that the memory of the first get (statements, pages
of SQLite's) is excluded. The kernel's own memory of a socket, some kilobytes, is not included.

`newcomer`: a client connects, sends one get and reads its reply, while greedy clients write bursts of 10,000 gets to
each connection and read what comes, so that each always has work for the server.

`start`: from the start of `kvref serve` with a new file to its first reply, and `kvref --help`.
"""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError
from kvref_bench.peers.processes import tree
from kvref_bench.turns.report import Column, Point
from kvref_bench.workload.binary import GET, REQUEST, frame
from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT_GET: Final = b"get AA\r\n"
REQUESTS: Final = {"text": TEXT_GET, "binary": frame(REQUEST, GET, b"AA")}
ANSWERS: Final = (b"VALUE ", b"END\r\n", b"\x81\x00")
END: Final = b"END\r\n"
BURST: Final = memoryview(TEXT_GET * 10_000)
SETTLED: Final = 0.3  # seconds until memory is read
TIMEOUT: Final = 60.0  # seconds
PAUSE: Final = 0.02  # seconds between two newcomers
KVREF: Final = (sys.executable, "-m", "kvref")

MEMORY: Final = (
    Column("target", "server"), Column("protocol", "protocol"), Column("connections", "connections", ","),
    Column("resident", "resident, bytes", ",.0f", statistics.median),
    Column("each", "bytes for each connection", ",.0f", statistics.median),
)  # fmt: skip
NEWCOMER: Final = (
    Column("target", "server"), Column("clients", "greedy clients"), Column("samples", "newcomers", of=sum),
    *(Column(name, title, ".1f", max) for name, title in (("median", "median, ms"), ("p99", "p99, ms"))),
    Column("largest", "slowest, ms", ".1f", max),
)  # fmt: skip
START: Final = (
    Column("what", "what"), Column("seconds", "median, s", ".3f", statistics.median),
    Column("seconds", "shortest", ".3f", min), Column("seconds", "longest", ".3f", max),
)  # fmt: skip


def memory(name: str, protocol: str, counts: Sequence[int]) -> list[Point]:
    """Boot a target and open connections, so many after each other.

    Args:
        name: of the target.
        protocol: of REQUESTS.
        counts: ascending.

    Raises:
        BenchError: it refuses a connection.
        OSError: it does not answer.
        KvrefError: it cannot be booted.
    """
    points: list[Point] = []
    first: tuple[int, int] | None = None
    with targets.running(name) as target, ExitStack() as stack:
        opened = 0
        for count in counts:
            for _ in range(count - opened):
                client = stack.enter_context(socket.create_connection((target.host, target.port), TIMEOUT))
                _exchange(client, target.name, REQUESTS[protocol])
            opened = count
            time.sleep(SETTLED)
            resident = sum(each.memory_info().rss for each in tree([target.pid]))
            each = None if first is None else (resident - first[1]) / (count - first[0])
            first = first or ((count, resident) if count else None)
            place: Point = {"target": name, "protocol": protocol, "connections": count}
            points.append(place | {"resident": resident, "each": each})
    return points


def _exchange(client: socket.socket, name: str, request: bytes) -> None:
    client.sendall(request)
    answer = client.recv(4096)
    if not answer.startswith(ANSWERS):
        refusal = answer.decode(errors="replace").strip() or "it closed the connection"
        raise BenchError(f"{name} refuses so many connections: {refusal}")


def newcomer(name: str, clients: int, seconds: float) -> Point:
    """Boot a target, keep it busy by so many greedy clients, and connect again and again.

    Raises:
        KvrefError: the target cannot be booted, or closes a connection.
        OSError: it does not answer.
    """
    with targets.running(name) as target:
        place = (target.host, target.port)
        busy = multiprocessing.get_context("spawn").Process(target=run_bursts, args=(*place, clients), daemon=True)
        busy.start()
        try:
            time.sleep(1 + clients / 200)
            until = time.monotonic() + seconds
            taken: list[float] = []
            while time.monotonic() < until or not taken:
                taken.append(_first_get(socket.AF_INET, place) * 1000)
                time.sleep(PAUSE)
        finally:
            busy.terminate()
            busy.join()
    taken.sort()
    figures = {"samples": len(taken), "median": statistics.median(taken), "p99": taken[len(taken) * 99 // 100]}
    return {"target": name, "clients": clients, **figures, "largest": taken[-1]}


def run_bursts(host: str, port: int, clients: int) -> None:
    """Send gets without end on many connections and drop the replies; runs until its process is ended."""
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        connection = socket.create_connection((host, port), TIMEOUT)
        connection.settimeout(0)
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, [0])
    while True:
        for key, events in selector.select():
            busy, sent = key.fileobj, key.data
            assert isinstance(busy, socket.socket)
            with suppress(BlockingIOError):  # the kernel has no room, or nothing, after all
                if events & selectors.EVENT_READ:
                    busy.recv(1 << 20)
                if events & selectors.EVENT_WRITE:
                    sent[0] = (sent[0] + busy.send(BURST[sent[0] :])) % len(BURST)


def start(times: int) -> list[Point]:
    """Measure starts of a server over a new file, and `kvref --help`, in turns. Raises BenchError."""
    points: list[Point] = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            points.append({"what": "kvref serve, first answer", "seconds": _first_answer(Path(folder))})
        begun = time.perf_counter()
        subprocess.run([*KVREF, "--help"], check=True, stdout=subprocess.DEVNULL)
        points.append({"what": "kvref --help", "seconds": time.perf_counter() - begun})
    return points


def _first_answer(folder: Path) -> float:
    place, begun = folder / "socket", time.perf_counter()
    command = [*KVREF, "serve", "--store", f"sqlite:///{folder}/file.sqlite", "--create", "--listen", f"unix:{place}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            while time.perf_counter() - begun < TIMEOUT:
                with suppress(ConnectionError, FileNotFoundError):
                    _first_get(socket.AF_UNIX, str(place))
                    return time.perf_counter() - begun
                time.sleep(0.001)
            raise BenchError(f"kvref serve has not answered within {TIMEOUT:g} s")
        finally:
            server.terminate()


def _first_get(family: socket.AddressFamily, place: tuple[str, int] | str) -> float:
    """Return the seconds from the connection's first packet to the end of its first reply."""
    started = time.monotonic()
    with socket.socket(family) as client:
        client.settimeout(TIMEOUT)
        client.connect(place)
        client.sendall(TEXT_GET)
        reply = b""
        while not reply.endswith(END):
            more = client.recv(4096)
            if not more:
                raise BenchError("the server closed a newcomer's connection")
            reply += more
    return time.monotonic() - started
