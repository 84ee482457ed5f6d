"""The processes of a server: which they are, and what they used."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from kvref.addresses import parse_address
from kvref_bench.load.result import Usage
from kvref_bench.runs.records import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVER: Final = "server"
DATABASE: Final = "database"
ANY: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
PEER_CREDENTIALS: Final = struct.Struct("3i")

Switches = tuple[int, int]


def listener(address: str) -> int | None:
    """Return the process that listens at HOST:PORT or unix:PATH; None if it is elsewhere, or is not shown to us."""
    place = parse_address(address)
    if place.path:
        return owner(place.path)
    theirs = {str(found[4][0]) for found in socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)}
    ours = {each.address for several in psutil.net_if_addrs().values() for each in several}
    if not theirs & ours:
        return None
    for each in psutil.net_connections("tcp"):
        # A closed one has no address.
        ip, port = each.laddr or ("", 0)
        if each.status == psutil.CONN_LISTEN and port == place.port and ip in (*theirs, *ANY):
            return each.pid
    return None


def database(server: int) -> int | None:
    """Return the process of this machine that a server is a client of over TCP; None if there is none, or it is hidden.

    Args:
        server: its process.
    """
    known = psutil.net_connections("tcp")
    ours = {each.address for several in psutil.net_if_addrs().values() for each in several}
    listening = {each.laddr.port: each.pid for each in known if each.status == psutil.CONN_LISTEN and each.laddr}
    for each in known:
        if each.pid == server and each.status == psutil.CONN_ESTABLISHED and each.raddr and each.raddr.ip in ours:
            behind = listening.get(each.raddr.port)
            if behind not in (None, server):
                return behind
    return None


def process_at(address: str) -> int:
    """Return the process that listens at HOST:PORT or unix:PATH of this machine."""
    found = listener(address)
    assert found is not None, f"it listens at {address}"
    return found


def owner(path: str) -> int:
    """Return the process that listens at a UNIX socket."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size)
    return int(PEER_CREDENTIALS.unpack(told)[0])


def readings(processes: Mapping[str, int]) -> Iterator[Resource]:
    """Read each process now.

    processes: by role. One that has ended gives no reading.
    """
    for role, pid in processes.items():
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                times, memory = process.cpu_times(), process.memory_info()
        except psutil.NoSuchProcess:
            continue
        yield Resource(time.time_ns(), role, pid, times.user, times.system, memory.rss)


def switches(pid: int) -> dict[int, Switches]:
    """Return the voluntary and the other switches of each thread that a process has now, by its number.

    The numbers of the process itself are those of its first thread, which sleeps in most servers.
    """
    counted = {}
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that ended since
        told = dict(line.split(":\t", 1) for line in lines)
        counted[int(status.parent.name)] = (
            int(told["voluntary_ctxt_switches"]),
            int(told["nonvoluntary_ctxt_switches"]),
        )
    return counted


def used(before: list[Resource], after: list[Resource], peak: int) -> Usage:
    """Return what all processes together used between two readings, without switches.

    peak: resident bytes of all.
    """
    first = {each.pid: each for each in before}
    both = [(first[each.pid], each) for each in after if each.pid in first]
    return Usage(
        user=sum(late.user - early.user for early, late in both),
        system=sum(late.system - early.system for early, late in both),
        rss=peak,
    )
