"""A proxy that passes bytes on unchanged, in both directions, and records what they are."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.traffic.dialogue import Dialogue, Exchange, NotRecordableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref.addresses import SocketAddress
    from kvref_conformance.traffic.recorder import Recorder

CHUNK: Final = 1 << 16
# Limit of the bytes of all unfinished commands and replies together.
MAX_BYTES: Final = 256 << 20
FLUSH_SECONDS: Final = 1.0
# On the end of the proxy, connections have so long to end.
END_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """What the proxy did.

    Args:
        connections: accepted.
        unrecorded: of these, recorded in part or not at all.
        unreachable: of these, closed because the server could not be reached.
        buffered: bytes of unfinished commands and replies now.
    """

    connections: int = 0
    unrecorded: int = 0
    unreachable: int = 0
    buffered: int = 0


class Proxy:
    """Accepts clients, connects each to the server, and records.

    Args:
        server: address of the server.
        recorder: where to record.
        clock: seconds.
    """

    def __init__(self, server: SocketAddress, recorder: Recorder, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts = Counts()
        self._server = server
        self._recorder = recorder
        self._clock = clock
        self._began = clock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, listen: SocketAddress, started: Callable[[str], None], stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then write what is recorded.

        Args:
            listen: address to listen on; port 0 is any free one.
            started: called with the address that clients connect to.
            stop: ends the proxy.

        Raises:
            OSError: the address is not available.
        """
        if isinstance(listen, str):
            listener = await asyncio.start_unix_server(self._accept, listen, limit=CHUNK)
            where = f"unix:{listen}"
        else:
            listener = await asyncio.start_server(self._accept, *listen, limit=CHUNK)
            host, port = listener.sockets[0].getsockname()[:2]
            where = f"{host}:{port}"
        flusher = asyncio.create_task(self._flush_often())
        try:
            started(where)
            await stop.wait()
        finally:
            listener.close()
            flusher.cancel()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=END_SECONDS)
            self._recorder.flush()

    async def _flush_often(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self._recorder.flush()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.counts.connections += 1
        name = f"c{self.counts.connections}"
        try:
            await self._connect(name, reader, writer)
        except asyncio.CancelledError:
            pass  # the proxy ends; what is recorded is written
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _connect(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if isinstance(self._server, str):
                from_server, to_server = await asyncio.open_unix_connection(self._server, limit=CHUNK)
            else:
                from_server, to_server = await asyncio.open_connection(*self._server, limit=CHUNK)
        except OSError as error:
            self.counts.unreachable += 1
            log.warning("%s: the server cannot be reached: %s", name, error.strerror or error)
            return
        connection = _Connection(name, self._recorder, self.counts, lambda: self._clock() - self._began)
        up = asyncio.create_task(_pump(reader, to_server, connection.sent))
        down = asyncio.create_task(_pump(from_server, writer, connection.received))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            by_server = down.done()
            if not by_server:
                # The client closed, or its sending side only: the server ends the connection when it has answered.
                with contextlib.suppress(OSError):
                    to_server.write_eof()
                await down
            connection.ended(by_server=by_server)
        finally:
            up.cancel()
            down.cancel()
            connection.forget()
            to_server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Callable[[bytes], None]) -> None:
    """Pass bytes on until one side ends; a full buffer of the receiver stops reading from the sender."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            seen(data)
            writer.write(data)
            await writer.drain()


class _Connection:
    """One connection as it is recorded."""

    def __init__(self, name: str, recorder: Recorder, counts: Counts, now: Callable[[], float]) -> None:
        self._name = name
        self._recorder = recorder
        self._counts = counts
        self._now = now
        self._dialogue: Dialogue | None = Dialogue()
        self._size = 0

    def sent(self, data: bytes) -> None:
        self._take(lambda dialogue: dialogue.sent(data, self._now()))

    def received(self, data: bytes) -> None:
        self._take(lambda dialogue: dialogue.received(data))

    def ended(self, *, by_server: bool) -> None:
        """Record the end of the connection and what has no complete reply."""
        if self._dialogue is None:
            return
        rest = self._dialogue.closed()
        if by_server and not rest:
            rest = [Exchange(None, b"", self._dialogue.binary)]
        for number, exchange in enumerate(rest):
            self._record(exchange, ended=by_server and number == 0)
        if not by_server:
            self._recorder.closed(self._name, self._now())

    def forget(self) -> None:
        """Give back the memory of what is unfinished."""
        self._dialogue = None
        self._counts.buffered -= self._size
        self._size = 0

    def _take(self, feed: Callable[[Dialogue], list[Exchange]]) -> None:
        if self._dialogue is None:
            return
        try:
            for exchange in feed(self._dialogue):
                self._record(exchange)
            self._reserve(self._dialogue.size)
        except NotRecordableError as error:
            self._counts.unrecorded += 1
            log.warning("%s is passed on and no longer recorded: %s", self._name, error)
            self.forget()

    def _reserve(self, size: int) -> None:
        self._counts.buffered += size - self._size
        self._size = size
        if self._counts.buffered > MAX_BYTES:
            raise NotRecordableError(f"unfinished commands of all connections have more than {MAX_BYTES} bytes")

    def _record(self, exchange: Exchange, *, ended: bool = False) -> None:
        now = self._now()
        at = now if exchange.command is None else exchange.command.at
        self._recorder.exchange(self._name, exchange, at, now - at if exchange.reply else 0.0, ended=ended)


def run(proxy: Proxy, listen: SocketAddress, started: Callable[[str], None]) -> None:
    """Run a proxy until SIGINT or SIGTERM. Raises as `Proxy.run`."""

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await proxy.run(listen, started, stop)

    asyncio.run(serve())
