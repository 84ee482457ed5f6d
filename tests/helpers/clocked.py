"""A server in this process whose clock a test moves: what waits for seconds is due at once.

Its event loop runs in a thread, so clients are ordinary sockets. What the loop schedules and what the server measures
with the loop's time moves along (idle commit, timeouts, lock waits over SQLite); the time of a database server does not.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from kvref import profiles
from kvref.addresses import Address
from kvref.profiles import Profile
from kvref.server.connection import protocol_factory
from kvref.server.listeners.listener import Listener
from kvref.server.listeners.tls_handshakes import accept
from kvref.server.server import Server, lock_wait
from kvref.server.settings import parse
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.stores import open_store

START_SECONDS = 20.0
STEP = 0.25  # seconds by which the clock moves at once: timers that are set again meanwhile are due again


class MovableLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is ahead of the system's."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def time(self) -> float:
        """Return the time in seconds."""
        return super().time() + self.ahead


class Clocked:
    """A running server, its port, its clock and what it logged so far."""

    def __init__(self, loop: MovableLoop) -> None:
        self.port = 0
        self.log: list[str] = []
        self._loop = loop

    def connect(self) -> socket.socket:
        """Open a connection with a time limit."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def advance(self, seconds: float) -> None:
        """Move the clock; what clients have sent before is read first, and everything due by then has run."""
        asyncio.run_coroutine_threadsafe(self._advance(seconds), self._loop).result(START_SECONDS)

    def wait_for(self, text: str) -> None:
        """Fail where no line of the log has that text: what was logged by now is in it."""
        assert text in "\n".join(self.log)

    async def _advance(self, seconds: float) -> None:
        await _turn()
        while seconds > 0:
            self._loop.ahead += min(STEP, seconds)
            seconds -= STEP
            await _turn()


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@contextmanager
def clocked(store: Path | str, *pairs: str, profile: str = "kvref") -> Iterator[Clocked]:
    """Serve a SQLite file, or what a DSN names, for the block.

    pairs: settings, NAME=VALUE.
    """
    dsn = store if isinstance(store, str) else f"sqlite:///{store}"
    loop, stop, port = MovableLoop(), asyncio.Event(), Future[int]()
    served = Clocked(loop)
    handler = _Lines(served.log)
    logging.getLogger("kvref").addHandler(handler)
    serve = _serve(dsn, profiles.load(profile), [*pairs], stop, port)
    thread = threading.Thread(target=loop.run_until_complete, args=(serve,))
    thread.start()
    try:
        served.port = port.result(START_SECONDS)
        yield served
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(START_SECONDS)
        loop.close()
        logging.getLogger("kvref").removeHandler(handler)


async def _serve(dsn: str, profile: Profile, pairs: list[str], stop: asyncio.Event, port: Future[int]) -> None:
    settings = parse(pairs, None, profile)
    store = open_store(dsn, profile, lock_wait(profile, settings))
    try:
        if isinstance(store, SQLiteStore):
            store.initialise()
        listener = Listener(Address("127.0.0.1", 0))
        (place,) = listener.listen()
        server = Server(store, profile, lambda: settings, [listener])
        server.open()
        entrance = await accept(place, listener, server, protocol_factory(server, listener))
        port.set_result(place.getsockname()[1])
        await server.until(stop)
        entrance.close()
        await server.drain()
    except BaseException as error:
        if not port.done():
            port.set_exception(error)
        raise
    finally:
        store.close()


class _Lines(logging.Handler):
    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.append(record.getMessage())
