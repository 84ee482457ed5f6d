"""The clock is set, forward and back, while kvref serves."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from faults.clock import HOUR, YEAR, Clock, a_clock
from faults.description import Fault, of
from faults.load import Client, Mix, Numbers, differences
from faults.steady import all_go_on, writing
from faults.stores import Store, in_file
from helpers.live import missing_skips
from helpers.serving import Served, ask, serving
from helpers.waiting import until, until_equal

pytestmark = pytest.mark.live
STEPS = (HOUR, 0, -HOUR, YEAR, -YEAR, 0)  # from the real time
BATCHES = ("--set", "daemon_memcached_w_batch_size=32", "--set", "daemon_memcached_r_batch_size=100000")
SLACK = 2  # seconds that two clocks may differ by, read one after the other


@pytest.fixture
def clock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clock]:
    folder = tmp_path_factory.mktemp("clock")
    with missing_skips():
        made = a_clock(folder)
        clock = made.__enter__()
    yield clock
    made.__exit__(None, None, None)


def put(key: str, seconds: int) -> bytes:
    return f"set {key} 0 {seconds} 1\r\n1\r\n".encode()


def has(client: socket.socket, key: str) -> bool:
    return ask(client, f"get {key}\r\n".encode()).startswith(b"VALUE ")


def row(client: socket.socket, name: str) -> int:
    found = re.search(rf"STAT {name} (-?\d+)\r\n".encode(), ask(client, b"stats\r\n"))
    assert found is not None
    return int(found[1])


@of("clock-expiry", "clock-workers")
def test_rows_expire_by_the_clock_as_it_is_set(fault: Fault, store: Store, clock: Clock) -> None:
    options = ("--workers", "2") if fault.id == "clock-workers" else ()
    numbers = Numbers()
    checkers: list[Client] = []
    with serving(store.dsn, *options, first=clock.through) as served, served.connect() as client:
        with writing(served, fault) as writers:
            before = 0  # seconds from the real time
            for number in range(fault.size * len(STEPS)):
                ahead = STEPS[number % len(STEPS)]
                begun = time.monotonic()
                assert ask(client, put("short", 100) + put("long", 2 * HOUR) + put("ever", 0)) == b"STORED\r\n" * 3
                clock.set(ahead)
                moved, before = ahead - before, ahead
                assert abs(row(client, "time") - (time.time() + ahead)) < SLACK
                assert 0 <= row(client, "uptime") < 1000
                assert [has(client, key) for key in ("short", "long", "ever")] == [moved < 100, moved < 2 * HOUR, True]
                # A new time counts from where the clock is now.
                assert ask(client, put("new", 100)) == b"STORED\r\n"
                assert has(client, "new")
                all_go_on(writers, 5)
                checkers.append(numbered(served, numbers, number))
                assert time.monotonic() - begun < 20
                fault.cycles += 1
            clock.set(0)
        found = [text for writer in writers for text in writer.wrong_rows(store.rows())]
        found += differences(checkers, store.rows())
        fault.lost += len(found)
        assert found == []


def numbered(served: Served, numbers: Numbers, number: int) -> Client:
    """Write and look at cas numbers for a moment; those of all such moments differ."""
    client = Client(served.connect(), f"cas.{number}", number, numbers, Mix(counts=False))
    client.start()
    until(lambda: client.acknowledged > 50 or not client.is_alive(), pause=0.005)
    client.stop()
    client.join(20)
    assert not client.is_alive()
    return client


@of("clock-batches")
def test_idle_commit_and_lock_waits_take_no_note_of_the_clock(fault: Fault, store: Store, clock: Clock) -> None:
    assert store.file is not None
    times = ("--set", "innodb_api_bk_commit_interval=1", "--set", "innodb_lock_wait_timeout=2")
    with ExitStack() as stack:
        served = stack.enter_context(serving(store.dsn, *BATCHES, *times, first=clock.through))
        holder, waiter = stack.enter_context(served.connect()), stack.enter_context(served.connect())
        for number in range(fault.size):
            ahead = (-YEAR, YEAR)[number % 2]
            # One connection never gets idle, so that it keeps its row; the other waits for it.
            assert ask(holder, b"set held 0 0 1\r\n1\r\n") == b"STORED\r\n"
            waiter.sendall(b"set held 0 0 1\r\n2\r\n")
            begun = time.monotonic()
            served.until_state("conn_io_queue")
            clock.set(ahead)
            waiter.settimeout(0.2)
            reply = b""
            while not reply:
                assert time.monotonic() - begun < 8, "the wait for the lock does not end"
                assert ask(holder, b"get held\r\n").startswith(b"VALUE held")
                try:
                    reply = waiter.recv(100)
                except TimeoutError:
                    continue
            assert reply == b"SERVER_ERROR lock wait timeout\r\n"
            assert time.monotonic() - begun > 1.5
            fault.most("lock_wait_s", time.monotonic() - begun)
            # And then the batch is idle.
            fault.most("idle_commit_s", committed(store.file, [("1",)]))
            assert ask(holder, b"delete held\r\n") == b"DELETED\r\n"
            clock.set(0)
            fault.most("idle_commit_s", committed(store.file, []))
            fault.acknowledged += 2
            fault.cycles += 1


def committed(file: Path, rows: list[tuple[str, str]]) -> float:
    """Wait until a batch is committed; returns how long that took, in seconds."""
    begun = time.monotonic()
    until_equal(lambda: in_file(file, "SELECT c2 FROM demo_test WHERE c1 = 'held'"), rows)
    return time.monotonic() - begun


@of("clock-cache")
def test_items_of_the_memory_cache_expire_by_the_clock_as_it_is_set(fault: Fault, store: Store, clock: Clock) -> None:
    assert store.file is not None
    policies = "UPDATE cache_policies SET get_policy = {0}, set_policy = {0}, delete_policy = {0}, flush_policy = {0}"
    in_file(store.file, policies.format("'cache_only'"))
    with serving(store.dsn, first=clock.through) as served, served.connect() as client:
        for number in range(fault.size * len(STEPS)):
            assert ask(client, put("short", 100) + put("ever", 0) + put("flushed", 0)) == b"STORED\r\n" * 3
            written_at = row(client, "time")
            clock.set(STEPS[number % len(STEPS)])
            gone = row(client, "time") - written_at >= 100
            assert [has(client, key) for key in ("short", "ever")] == [not gone, True]
            assert ask(client, b"incr ever 1\r\nappend ever 0 0 1\r\n5\r\n") == b"2\r\nSTORED\r\n"
            assert ask(client, put("new", 100)) == b"STORED\r\n"
            assert has(client, "new")
            assert ask(client, b"touch new 200\r\ndelete new\r\n") == b"TOUCHED\r\nDELETED\r\n"
            assert ask(client, b"flush_all\r\n") == b"OK\r\n"
            assert not has(client, "flushed")
            fault.acknowledged += 7
            fault.cycles += 1
