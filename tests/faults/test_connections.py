"""Clients that open connections and do nothing with them, until there is no descriptor left."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from faults.description import Fault, of
from faults.other_client import other_client
from faults.processes import assert_rests, children, descriptors, memory
from faults.stores import Store
from helpers.serving import ask, serving
from helpers.waiting import until, until_risen

pytestmark = pytest.mark.live
SPARE = 200  # descriptors of this process and of the server other than connections
KIB_OF_ONE = 16
FEW = 64  # descriptors of a server that shall run out of them
SOME = [b"", b"get some", b"set some 0 0 1000\r\n" + b"x" * 500, b"\x80\x01\x00\x04", b"mg some"]


@contextmanager
def allowed(count: int) -> Iterator[None]:
    """Let this process, and those that it starts, have so many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else count
    if most < count:
        pytest.fail(f"{count} descriptors are needed and {most} allowed: raise `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@of("half-open")
def test_thousands_of_connections_that_say_nothing_or_half_of_something(fault: Fault, store: Store) -> None:
    with ExitStack() as stack:
        stack.enter_context(allowed(fault.size + SPARE))
        served = stack.enter_context(serving(store.dsn))
        pid = served.process.pid
        other = stack.enter_context(other_client(served, fault))
        until_risen(lambda: [other.rounds], 20)
        before, open_before = memory(pid), descriptors(pid)
        after_first = 0
        for _ in range(2):
            with ExitStack() as many:
                for number in range(fault.size):
                    many.enter_context(served.connect()).sendall(SOME[number % len(SOME)])
                until(lambda: descriptors(pid) >= open_before + fault.size)
                until_risen(lambda: [other.rounds], 20)
                each = (memory(pid) - before) / fault.size
                fault.most("memory_of_each_kib", each)
                assert each < KIB_OF_ONE
            until(lambda: descriptors(pid) <= open_before)
            after_first = after_first or memory(pid)
            fault.cycles += 1
        fault.figures["connections"] = fault.size
        # What the first thousands left behind serves those after them.
        assert memory(pid) - after_first < 1024 + fault.size, "memory grows from round to round"
        with served.connect() as client:
            assert b"STAT curr_connections 3\r\n" in ask(client, b"stats\r\n")


@of("descriptors", "descriptors-workers")
def test_no_descriptor_is_left(fault: Fault, store: Store) -> None:
    workers = 2 if fault.id == "descriptors-workers" else 1
    with serving(store.dsn, "--workers", str(workers)) as served, other_client(served, fault):
        begun = time.monotonic()
        pids = [served.process.pid, *children(served.process.pid)]
        for pid in pids[-workers:]:
            # Behind the server's back, which would hold connections below such a limit from the start.
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (FEW, FEW))
        for _ in range(fault.size):
            with ExitStack() as stack:
                many = [stack.enter_context(served.connect()) for _ in range(2 * FEW * workers)]
                states = [is_served(client) for client in many]
                # The rest is for files and for the event loop.
                assert workers * FEW // 2 < states.count(True) < workers * FEW
                fault.add("rejected", states.count(False))
                old = many[states.index(True)]
                assert ask(old, b"set old 0 0 1\r\n1\r\nget old\r\n") == b"STORED\r\nVALUE old 0 1\r\n1\r\nEND\r\n"
                assert_rests(*pids)
            until(lambda: can_connect(served.port))
            fault.cycles += 1
        reported = sum("ulimit -n" in line for line in served.log)
        assert 1 <= reported <= workers * 2 + (time.monotonic() - begun) / 10, "".join(served.log)


def is_served(client: socket.socket) -> bool:
    """Return whether a connection is served; else it must be closed, before or behind a word on why."""
    try:
        client.sendall(b"version\r\n")
        reply = client.recv(100)
        if reply.startswith(b"VERSION"):
            return True
        while reply:
            assert b"VERSION" not in reply
            reply = client.recv(100)
    except (ConnectionResetError, BrokenPipeError):
        pass
    return False


def can_connect(port: int) -> bool:
    """Return whether a new connection is served."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        return is_served(client)
