"""The memory of a connection between its commands."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

from server.in_process import HERE, InProcess, turns_until

import kvref
from kvref.server.connection import Connection

COUNT = 200
BYTES = 900  # of Python's objects, without those of the transport; with its own transaction it is 930
SERVER = str(Path(kvref.__file__).parent / "*")


def behind(connection: Connection) -> bool:
    """Return whether a connection has work to do."""
    found = connection.waited_for()
    return found is not None and found[2]


def test_an_idle_connection_takes_little_memory(tmp_path: Path) -> None:
    async def play() -> float:
        process = InProcess(tmp_path / "file")
        server = process.server
        server.open()
        transport = Mock(is_closing=lambda: False, write=written.append, get_extra_info=lambda _: None)
        idle: list[Connection] = []

        def connect() -> None:
            connection = Connection(server, HERE)
            connection.connection_made(transport)
            connection.data_received(b"get a\r\n")
            idle.append(connection)

        async def answered(count: int) -> None:
            # On a busy machine a connection may have to wait for its turn, also once it has replied.
            await turns_until(lambda: len(written) == count and not any(map(behind, idle)))

        connect()
        await answered(1)  # what is made once is there
        gc.collect()
        tracemalloc.start()
        for _ in range(COUNT):
            connect()
        await answered(COUNT + 1)
        gc.collect()
        allocated = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(inclusive=True, filename_pattern=SERVER)]
        )
        tracemalloc.stop()
        taken = sum(each.size for each in allocated.traces)
        process.store.close()
        assert len(idle) == COUNT + 1
        return taken / COUNT

    written: list[bytes] = []
    taken = asyncio.run(play())
    assert written == [b"END\r\n"] * (COUNT + 1)
    assert 500 < taken < BYTES, taken
