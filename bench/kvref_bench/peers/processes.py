"""The processes of a server: which they are, and on which processors they run."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from kvref.addresses import parse_address
from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterable

SERVER: Final = "server"
DATABASE: Final = "database"
ANY: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
PEER_CREDENTIALS: Final = struct.Struct("3i")


def listener(address: str) -> int | None:
    """Return the process that listens at HOST:PORT or unix:PATH; None if it is elsewhere, or is not shown to us.

    Of several that were forked off another, that one.
    """
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
            return None if each.pid is None else root(each.pid)
    return None


def listening(**addresses: str) -> dict[str, int]:
    """Return the processes that listen at HOST:PORT or unix:PATH of this machine. Raises BenchError if one is none."""
    found = {name: listener(address) for name, address in addresses.items()}
    missing = [addresses[name] for name, pid in found.items() if pid is None]
    if missing:
        raise BenchError(f"no process listens at {', '.join(missing)}")
    return {name: pid for name, pid in found.items() if pid is not None}


def database(server: int) -> int | None:
    """Return the process of this machine that a server is a client of over TCP; None if there is none, or it is hidden.

    Args:
        server: its process.
    """
    known = psutil.net_connections("tcp")
    ours = {each.address for several in psutil.net_if_addrs().values() for each in several}
    there = {each.laddr.port: each.pid for each in known if each.status == psutil.CONN_LISTEN and each.laddr}
    for each in known:
        if each.pid == server and each.status == psutil.CONN_ESTABLISHED and each.raddr and each.raddr.ip in ours:
            behind = there.get(each.raddr.port)
            if behind not in (None, server):
                return behind
    return None


def owner(path: str) -> int:
    """Return the process that listens at a UNIX socket."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size)
    return int(PEER_CREDENTIALS.unpack(told)[0])


def root(pid: int) -> int:
    """Return the process that others were forked off: several of them may listen at one port."""
    process = psutil.Process(pid)
    while (parent := process.parent()) is not None and parent.cmdline() == process.cmdline():
        process = parent
    return process.pid


def tree(pids: Iterable[int]) -> list[psutil.Process]:
    """Return processes with all their children."""
    roots = [psutil.Process(pid) for pid in pids]
    return [*roots, *(child for root in roots for child in root.children(recursive=True))]


def check_processors(pids: Iterable[int], cpus: frozenset[int]) -> None:
    """Look whether all threads of processes and of their children run on these processors only. Raises BenchError."""
    for process in tree(pids):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            try:
                allowed = os.sched_getaffinity(int(task.name))
            except ProcessLookupError:
                continue  # a thread that ended since
            if not allowed <= cpus:
                where, limit = (", ".join(map(str, sorted(each))) for each in (allowed, cpus))
                raise BenchError(f"a thread of {process.name()} may run on {where}, beyond {limit}")
