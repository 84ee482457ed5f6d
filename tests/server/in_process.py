"""The server in this process, over real sockets, with a disk that waits and fails on request."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path

import pytest

from kvref import collations, profiles
from kvref.addresses import Address
from kvref.errors import StoreError
from kvref.server.connection import Connection
from kvref.server.listeners.listener import Listener
from kvref.server.server import Server
from kvref.server.settings import parse
from kvref.storage.sqlite.store import SQLiteStore

SECONDS = 10.0  # that an answer may take
SILENCE = 0.2


async def turns_until(holds: Callable[[], object]) -> None:
    """Let the loop run until a condition is true.

    Raises:
        TimeoutError: it is still false after `SECONDS`.
    """
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0)


class Client:
    """One connection to it."""

    def __init__(self, port: int, stack: ExitStack, server: Server) -> None:
        self._counters = server.shared.counters
        self._socket = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        self._socket.settimeout(0)

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def deliver(self, data: bytes) -> None:
        """Send bytes while no other client does, and wait until the server has read them."""
        wanted = self._counters.bytes_read + len(data)
        await self.send(data)
        await turns_until(lambda: self._counters.bytes_read >= wanted)

    async def heard(self, lines: int) -> bytes:
        """Return so many lines of answer."""
        reply = b""
        async with asyncio.timeout(SECONDS):
            while reply.count(b"\r\n") < lines:
                reply += await asyncio.get_running_loop().sock_recv(self._socket, 1 << 16)
        return reply

    async def get(self, size: int) -> bytes:
        """Return as many bytes of replies."""
        received = b""
        while len(received) < size:
            received += await self.some()
        return received

    async def ask(self, data: bytes, lines: int = 1) -> bytes:
        """Send bytes and return so many lines of answer."""
        await self.send(data)
        return await self.heard(lines)

    async def some(self) -> bytes:
        """Return what has come, at least a byte."""
        return await asyncio.get_running_loop().sock_recv(self._socket, 1 << 20)

    def close(self) -> None:
        """Close it, whatever it has not read."""
        self._socket.close()

    async def nothing(self) -> None:
        """Fail where anything is answered soon."""
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SILENCE):
                raise AssertionError(await asyncio.get_running_loop().sock_recv(self._socket, 100))


HERE = Listener(Address("127.0.0.1", 0))


class InProcess:
    """A server on a SQLite file with the demo rows.

    Args:
        path: of the file.
        profile: its name.
        settings: as NAME=VALUE.
    """

    def __init__(self, path: Path, profile: str = "kvref", *settings: str) -> None:
        self.store = SQLiteStore(path, profiles.load(profile))
        self.store.initialise()
        self.settings = [*settings]  # read at the start, and by a reload
        self.server = Server(self.store, self.store.profile, self._read_settings, [HERE])
        self.disk = threading.Event()  # not set: it takes its time
        self.disk.set()
        self.failure = ""  # what it says instead
        self.syncs = 0  # that have begun
        self._really = self.store.sync
        self.store.sync = self._sync  # type: ignore[method-assign]

    @classmethod
    def over(cls, path: Path, profile: str, columns: str) -> InProcess:
        """Return a server whose default mapping is a new table `mapped`: `k` is its key and `v` its value."""
        store = cls(path, profile).store
        store.close()
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            collations.register(connection)
            connection.execute(f"CREATE TABLE mapped ({columns})")
            connection.execute(
                "UPDATE containers SET db_table = 'mapped', key_columns = 'k', value_columns = 'v', flags = '0',"
                " cas_column = '0', expire_time_column = '0'"
            )
        return cls(path, profile)

    def _read_settings(self) -> dict[str, int]:
        return parse(self.settings, None, self.store.profile)

    def _sync(self) -> None:
        self.syncs += 1
        assert self.disk.wait(SECONDS * 2)
        self._really()
        if self.failure:
            raise StoreError(self.failure)

    @asynccontextmanager
    async def clients(self, count: int) -> AsyncIterator[list[Client]]:
        """Listen, and give so many clients for the block."""
        self.server.open()
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(partial(Connection, self.server, HERE), "127.0.0.1", 0)
        with ExitStack() as stack:
            stack.callback(self.store.close)
            port = listener.sockets[0].getsockname()[1]
            yield [Client(port, stack, self.server) for _ in range(count)]
            self.disk.set()
            listener.close()
            for connection in list(self.server.connections):
                connection.end()
            await turns_until(lambda: not self.server.connections)
            await self.server.executor.close()
