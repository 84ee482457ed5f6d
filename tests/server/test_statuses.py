"""Statuses of binary replies over a SQLite table that refuses writes with its own words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from helpers.serving import serving
from server.listeners.talk import frame, held

pytestmark = pytest.mark.live

SET, INCR, DELETE = 0x01, 0x05, 0x04
INTERNAL = 0x84
# What kvref itself says of failures that have statuses of their own.
MESSAGES = (
    "object too large for cache",
    "failed to store item",
    "out of memory storing object",
    "cannot increment or decrement non-numeric value",
    "temporary failure",
    "lock wait timeout",
    "deadlock",
)


def test_a_message_of_a_trigger_chooses_no_status(tmp_path: Path) -> None:
    with serving(tmp_path / "x.sqlite") as served:
        held(served.port, [b"set n 0 0 1\r\n1\r\n"])
        for text in MESSAGES:
            with closing(sqlite3.connect(served.store)) as file:
                for event in ("INSERT", "UPDATE", "DELETE"):
                    file.execute(f"DROP TRIGGER IF EXISTS no_{event}")
                    file.execute(
                        f"CREATE TRIGGER no_{event} BEFORE {event} ON demo_test BEGIN SELECT RAISE(ABORT, '{text}'); END"
                    )
                file.commit()
            requests = [
                frame(SET, b"new", b"x", bytes(8)),
                frame(INCR, b"n", extras=bytes(7) + b"\1" + bytes(12)),
                frame(DELETE, b"n"),
            ]
            for request in requests:
                reply = b"".join(held(served.port, [request]))
                assert (int.from_bytes(reply[6:8], "big"), reply[24:].decode()) == (INTERNAL, text)
