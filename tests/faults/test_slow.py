"""Clients that take or send their bytes slowly, and other clients."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

import pytest
from faults.description import Fault, of
from faults.other_client import other_client
from faults.processes import memory
from faults.stores import Store, in_file
from helpers.serving import ask, serving

pytestmark = pytest.mark.live
VALUE = bytes(range(256)) * 3000  # 750 KiB: no line end of it may count
REQUESTED = 64 << 20  # bytes
MIB_OF_ONE = 4
SECONDS = 2.0  # of reading a byte now and then
HEAD = b"VALUE @@big.k 0 %d\r\n" % len(VALUE)
REPLY = HEAD + VALUE + b"\r\nEND\r\n"
TIMES = REQUESTED // len(REPLY)


@pytest.fixture
def big(store: Store) -> Store:
    """Map a table of large values in addition to the demo table."""
    assert store.file is not None
    in_file(
        store.file,
        "CREATE TABLE big (k VARCHAR(32) PRIMARY KEY, v LONGBLOB)",
        "INSERT INTO containers VALUES ('big', 'test', 'big', 'k', 'v', '0', '0', '0', 'PRIMARY')",
    )
    return store


@of("slow-readers")
def test_clients_that_read_nothing_or_a_byte_now_and_then(fault: Fault, big: Store) -> None:
    with serving(big.dsn) as served, ExitStack() as stack:
        pid = served.process.pid
        with served.connect() as client:
            assert (
                ask(client, b"set @@big.k 0 0 %d\r\n%b\r\nget @@big.k\r\n" % (len(VALUE), VALUE))
                == b"STORED\r\n" + REPLY
            )
        before = memory(pid)
        slow = [stack.enter_context(served.connect()) for _ in range(fault.size)]
        with other_client(served, fault):
            for client in slow:
                client.sendall(b"get @@big.k\r\n" * TIMES)
            received = [bytearray() for _ in slow]
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                for number in range(0, fault.size, 2):
                    received[number] += slow[number].recv(1)
                time.sleep(0.1)  # ten bytes a second are the load
            each = (memory(pid) - before) / 1024 / fault.size
            fault.most("memory_of_each_mib", each)
            assert each < MIB_OF_ONE
            for client, got in zip(slow, received, strict=True):
                assert drained(client, bytes(got)) == TIMES
                fault.cycles += 1
    fault.figures["connections"] = fault.size


def drained(client: socket.socket, first: bytes) -> int:
    """Read all replies; returns how many there were, each whole and right."""
    with client.makefile("rb") as replies:
        rest = REPLY[len(first) :]
        assert REPLY.startswith(first)
        assert replies.read(len(rest)) == rest
        for _ in range(TIMES - 1):
            assert replies.read(len(REPLY)) == REPLY
    assert ask(client, b"") == b""
    return TIMES


@of("slow-writers")
def test_clients_that_send_a_byte_each_hundredth_of_a_second(fault: Fault, store: Store) -> None:
    with serving(store.dsn) as served, ExitStack() as stack:
        pid = served.process.pid
        slow = [stack.enter_context(served.connect()) for _ in range(fault.size)]
        before = memory(pid)
        with other_client(served, fault):
            texts = [reply(number) for number in range(fault.size)]
            for column in range(max(map(len, texts))):
                for client, text in zip(slow, texts, strict=True):
                    client.sendall(text[column : column + 1])
                time.sleep(0.01)  # a hundred bytes a second are the load
            for number, client in enumerate(slow):
                value = b"%d" % number
                expected = b"STORED\r\nVALUE slow.%b 7 %d\r\n%b\r\nEND\r\n" % (value, len(value), value)
                assert ask(client, b"") == expected
                fault.cycles += 1
        fault.most("memory_of_each_kib", (memory(pid) - before) / fault.size)
        assert fault.figures["memory_of_each_kib"] < 64
    found = [number for number in range(fault.size) if store.rows().get(f"slow.{number}") != str(number)]
    fault.lost += len(found)
    assert found == []
    fault.acknowledged += fault.size


def reply(number: int) -> bytes:
    value = b"%d" % number
    return b"set slow.%b 7 0 %d\r\n%b\r\nget slow.%b\r\n" % (value, len(value), value, value)
