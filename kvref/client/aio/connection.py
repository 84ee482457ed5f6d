"""One TCP connection with many requests in flight."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple, cast

from kvref.client.errors import InvalidReplyError, LinkError, MappedError
from kvref.client.replies import LINE, MAX_ANSWER_BYTES, Answer, GarbledError, Replies, Shape


class _Asked(NamedTuple):
    future: asyncio.Future[Answer] | None
    shape: Shape


class Connection(asyncio.Protocol):
    """Send requests at once, give each its answer in order.

    A request keeps its place in the order even if its caller ends: the reply to a request that was canceled, timed
    out or did not want any is read and dropped. So nothing but unreadable bytes can bring answers and requests apart,
    and those end the connection.

    Args:
        name: HOST:PORT or unix:PATH, for errors.
        max_answer: limit of one answer with all its rows, in bytes.
    """

    def __init__(self, name: str, max_answer: int = MAX_ANSWER_BYTES) -> None:
        self.error: MappedError | None = None
        self.heard = 0.0
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._asked: deque[_Asked] = deque()
        self._replies = Replies(max_answer)
        self._out: list[bytes] = []
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    async def writable(self) -> None:
        """Wait while the server reads more slowly than this client sends."""
        await self._writable.wait()

    def ask(self, data: bytes, shape: Shape = LINE, *, wanted: bool = True) -> asyncio.Future[Answer] | None:
        """Queue one request; requests of one turn of the loop leave in one packet.

        Args:
            data: the whole request; nothing of it is sent if the connection ended.
            shape: of the answer.
            wanted: whether the caller waits for the answer; without, nothing is returned.

        Raises:
            MappedError: the connection has ended.
        """
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        future = self._loop.create_future() if wanted else None
        if not self._asked:
            self.heard = self._loop.time()
        self._asked.append(_Asked(future, shape))
        if not self._out:
            self._loop.call_soon(self._send)
        self._out.append(data)
        return future

    def end(self, error: MappedError) -> None:
        """Close the connection; pending calls raise the error."""
        if self.error is not None:
            return
        self.error = error
        self._writable.set()
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()
        for asked in self._asked:
            if asked.future is not None and not asked.future.done():
                asked.future.set_exception(type(error)(*error.args))
        self._asked.clear()

    async def leave(self, patience: float) -> None:
        """Close the connection after the answers that are outstanding, at the latest after so many seconds."""
        if self._asked and self.error is None:
            # Some have no caller that waits; the reply to one more request shows that all replies arrived.
            last = self.ask(b"version\r\n")
            assert last is not None
            await asyncio.wait([last], timeout=patience)
            if not last.cancel():
                last.exception()  # retrieved here; the caller gets the error from its own call
        self.end(LinkError(f"{self._name}: closed by this client"))
        await self._gone.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; called by asyncio."""
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass replies to the calls that wait for them; called by asyncio."""
        self.heard = self._loop.time()
        self._replies.feed(data)
        try:
            while self._asked and (answer := self._replies.take(self._asked[0].shape)) is not None:
                future = self._asked.popleft().future
                if future is not None and not future.done():
                    future.set_result(answer)
        except GarbledError as error:
            self.end(InvalidReplyError(f"{self._name}: the answer cannot be read: {error}"))
        if not self._asked and self._replies.rest:
            self.end(InvalidReplyError(f"{self._name}: {self._replies.rest[:60]!r} is a reply without a request"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail pending calls; called by asyncio."""
        self.end(LinkError(f"{self._name}: the connection ended{f': {exc}' if exc else ''}"))
        self._gone.set()

    def pause_writing(self) -> None:
        """Let new requests wait; called by asyncio."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let them go on; called by asyncio."""
        self._writable.set()

    def _send(self) -> None:
        data, self._out = b"".join(self._out), []
        if self._transport is not None and data:
            self._transport.write(data)
