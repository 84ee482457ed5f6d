"""What clients note of a fault."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

from consistency.clients import Client
from consistency.cycles import Times, late
from consistency.histories import History


def test_commands_that_are_refused_or_have_no_reply_are_noted(tmp_path: Path) -> None:
    began = time.monotonic()
    opened: list[socket.socket] = []

    def connect() -> socket.socket:
        client, server = socket.socketpair()
        opened.append(server)
        server.sendall(b"SERVER_ERROR no answer\r\n" if len(opened) == 1 else b"STORED\r\n")
        if len(opened) == 1:
            server.shutdown(socket.SHUT_WR)
        return client

    with History(tmp_path / "history") as history:
        client = Client(3, connect, ["r1"], history)
        assert [client.do("r1", "set") for _ in range(3)] == [False, False, True]
        client.close()
    for each in opened:
        each.close()
    assert (client.acknowledged, client.refused) == (1, 1)
    lines = late([client], Times(began, began + 4.5, began + 12.3)).splitlines()
    assert lines[:2] == ["    4.50 s: the fault ended", "   12.30 s: each client was served again"]
    assert re.fullmatch(r" +0\.\d\d s: client 3: set r1 0 0 4: 0\.\d\d s: SERVER_ERROR no answer", lines[2]), lines
    assert re.fullmatch(r" +0\.\d\d s: client 3: set r1 0 0 4: 0\.\d\d s: EOFError\(\)", lines[3]), lines
    assert len(lines) == 4
