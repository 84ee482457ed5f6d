"""The memory of a connection between its commands."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

from server.in_process import HERE, InProcess

from kvref.server.connection import Connection
from kvref.server.executors import executor_for

COUNT = 200
BYTES = 1200  # of Python's objects, without those of the transport


def test_an_idle_connection_takes_little_memory(tmp_path: Path) -> None:
    async def play() -> float:
        process = InProcess(tmp_path / "file")
        server = process.server
        server.executor = executor_for(process.store, server.isolation, 1)
        transport = Mock(is_closing=lambda: False, write=written.append, get_extra_info=lambda _: None)
        idle: list[Connection] = []

        def connect() -> None:
            connection = Connection(server, HERE)
            connection.connection_made(transport)
            connection.data_received(b"get a\r\n")
            idle.append(connection)

        connect()  # what is made once
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(COUNT):
            connect()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        process.store.close()
        return taken / COUNT

    written: list[bytes] = []
    taken = asyncio.run(play())
    assert written == [b"END\r\n"] * (COUNT + 1)
    assert taken < BYTES


def test_connections_share_a_transaction_where_none_outlives_a_command(tmp_path: Path) -> None:
    async def play(*, direct: bool) -> bool:
        process = InProcess(tmp_path / f"file-{direct}")
        process.server.isolation.direct = direct
        executor = executor_for(process.store, process.server.isolation, 1)
        same = executor.begin() is executor.begin()
        process.store.close()
        return same

    assert asyncio.run(play(direct=True))
    assert not asyncio.run(play(direct=False))
