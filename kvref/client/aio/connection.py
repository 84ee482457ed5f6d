"""The connection of one mapping: many requests in flight; bound first, and opened again after it ended."""

from __future__ import annotations

import asyncio
import select
import ssl
from collections import deque
from typing import cast

from kvref.addresses import Address
from kvref.client.errors import InvalidReplyError, LinkError, MappedError, UnsupportedError, invalid_reply, reply_error
from kvref.client.protocol import LINE, Answer, GarbledError, Handshake, Replies, Shape, check_ranges


class Connection(asyncio.Protocol):
    """Send requests at once, give each its answer in order.

    A request keeps its place in the order even if its caller ends: the reply to a request that was canceled, timed
    out or did not want any is read and dropped. So only unreadable bytes can mix up answers and requests, and those end
    the connection.

    Args:
        name: HOST:PORT or unix:PATH, for errors.
        max_answer: limit of one answer with all its rows, in bytes.
    """

    def __init__(self, name: str, max_answer: int) -> None:
        self.error: MappedError | None = None
        self.last_received = 0.0
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pending: deque[tuple[asyncio.Future[Answer] | None, Shape]] = deque()
        self._replies = Replies(max_answer)
        self._out: list[bytes] = []
        self._closed = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()

    async def close_if_unsolicited(self) -> None:
        """End an idle connection on which something arrived: the next request would get it as its reply.

        While the event loop runs, `data_received` sees it first. A loop that runs for each call reads it with the next
        reply.
        """
        if self.error is not None or self._pending or self._transport is None:
            return
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        if not poll.poll(0):
            return
        if self._transport.get_extra_info("ssl_object") is None:
            self.end(LinkError(f"{self._name}: bytes or the end of the connection without a request"))
            return
        # Records of TLS itself, such as tickets, are not stray bytes. The loop decrypts in its next iteration.
        for _ in range(2):
            await asyncio.sleep(0)

    def send(self, data: bytes, shape: Shape = LINE, *, expects_reply: bool = True) -> asyncio.Future[Answer] | None:
        """Queue one request; requests of one iteration of the loop are sent together.

        Args:
            data: the whole request.
            expects_reply: whether the caller waits for the answer; if not, None is returned.

        Raises:
            MappedError: the connection has ended; nothing is sent.
        """
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        future = self._loop.create_future() if expects_reply else None
        if not self._pending:
            self.last_received = self._loop.time()
        self._pending.append((future, shape))
        if not self._out:
            self._loop.call_soon(self._send)
        self._out.append(data)
        return future

    def end(self, error: MappedError) -> None:
        """Close the connection; pending calls raise the error."""
        if self.error is not None:
            return
        self.error = error
        self.writable.set()
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()
        for future, _ in self._pending:
            if future is not None and not future.done():
                future.set_exception(type(error)(*error.args))
        self._pending.clear()

    async def close_after_replies(self, timeout: float | None) -> None:
        """Close the connection after the answers that are outstanding, at the latest after so many seconds."""
        if self._pending and self.error is None:
            # Some have no caller that waits; the reply to one more request shows that all replies arrived.
            last = self.send(b"version\r\n")
            assert last is not None
            await asyncio.wait([last], timeout=timeout)
            if not last.cancel():
                last.exception()  # retrieved here; the caller gets the error from its own call
        self.end(LinkError(f"{self._name}: closed by this client"))
        await self._closed.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.last_received = self._loop.time()
        self._replies.feed(data)
        try:
            while self._pending and (answer := self._replies.next_answer(self._pending[0][1])) is not None:
                future, _ = self._pending.popleft()
                if future is not None and not future.done():
                    future.set_result(answer)
        except GarbledError as error:
            self.end(InvalidReplyError(f"{self._name}: the answer cannot be read: {error}"))
        if not self._pending and self._replies.rest:
            self.end(InvalidReplyError(f"{self._name}: {self._replies.rest[:60]!r} is a reply without a request"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(LinkError(f"{self._name}: the connection ended{f': {exc}' if exc else ''}"))
        self._closed.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def _send(self) -> None:
        data, self._out = b"".join(self._out), []
        if self._transport is not None and data:
            self._transport.write(data)


class ServerConnection:
    """Requests to one server about one mapping.

    Args:
        greeting: requests sent before all others.
        tls: None: without TLS.
        connect_timeout: for connection and greeting, in seconds; None: no limit.
        timeout: for each answer, in seconds; None: no limit.
        max_answer: limit of one answer with all its rows, in bytes.
    """

    def __init__(
        self,
        address: Address,
        handshake: Handshake,
        tls: ssl.SSLContext | None,
        connect_timeout: float | None,
        timeout: float | None,
        max_answer: int,
    ) -> None:
        self._address = address
        self._name = str(address)
        self._handshake = handshake
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._max_answer = max_answer
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._version: tuple[Connection, str] | None = None

    async def request(self, verb: str, data: bytes, shape: Shape = LINE) -> Answer:
        """Send a request and return its answer, whose last line is none of the three errors.

        Raises:
            LinkError: no connection, or no answer in time. One late answer fails its own call only; when the server was
                silent for that long the connection is given up.
            MappedError: as the answer says.
        """
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._ready()
                future = connection.send(data, shape)
                assert future is not None
                answer = await future
        except TimeoutError as error:
            late = LinkError(f"{verb}: {self._name}: no answer within {self._timeout} s")
            if connection is not None and asyncio.get_running_loop().time() - connection.last_received >= (
                self._timeout or 0
            ):
                connection.end(late)
            raise late from error
        failure = reply_error(answer.line, verb, self._name)
        if failure is None:
            return answer
        if isinstance(failure, UnsupportedError) and data.count(b"\n") > 1:
            # A storage verb that the server does not support: it read the data as a command.
            connection.end(LinkError(f"{self._name}: the connection was given up: {failure}"))
        raise failure

    async def send_without_reply(self, data: bytes) -> None:
        """Send a request and discard its reply. Raises LinkError without a connection in time."""
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._ready()
        except TimeoutError as error:
            raise LinkError(f"{self._name}: accepted no data for {self._timeout} s") from error
        connection.send(data, expects_reply=False)

    async def version(self) -> str:
        """Return the version that the server reports."""
        answer = await self.request("version", b"version\r\n")
        if not answer.line.startswith(b"VERSION "):
            raise invalid_reply(answer.line, "version")
        return answer.line[8:].decode("utf-8", "replace")

    async def require_ranges(self) -> None:
        """Raise UnsupportedError if the server has no ranges; its version is read once per connection."""
        connection = await self._ready()
        if self._version is None or self._version[0] is not connection:
            self._version = connection, await self.version()
        check_ranges(self._version[1])

    async def close(self) -> None:
        """Close the connection after the answers that are outstanding; a later request opens it again."""
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            await self._connection.close_after_replies(self._timeout)

    async def _ready(self) -> Connection:
        while True:
            connection = await self._open_connection()
            await connection.writable.wait()
            if connection.error is None:
                return connection

    async def _open_connection(self) -> Connection:
        connection = self._connection
        if connection is not None:
            await connection.close_if_unsolicited()
            if connection.error is None:
                return connection
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
            # All who wait for it may be cancelled, and its error then has no reader.
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        opening = self._opening
        try:
            # One caller's cancellation is not another's.
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if opening.cancelled() and not (caller and caller.cancelling()):
                raise LinkError(f"{self._name}: closed by this client") from None
            raise

    async def _open(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                connection = await self._connect()
                await self._run_handshake(connection)
        except TimeoutError as error:
            raise LinkError(f"{self._name}: no connection within {self._connect_timeout} s") from error
        except LinkError:
            raise
        except OSError as error:
            raise LinkError(f"{self._name}: {error.strerror or error}: is a server running there?") from error
        self._connection = connection
        return connection

    async def _connect(self) -> Connection:
        def make() -> Connection:
            return Connection(self._name, self._max_answer)

        loop, address = asyncio.get_running_loop(), self._address
        if address.path:
            # The certificate names a host, which a path has not.
            name = None if self._tls is None else "localhost"
            _, connection = await loop.create_unix_connection(make, address.path, ssl=self._tls, server_hostname=name)
        else:
            _, connection = await loop.create_connection(make, address.host, address.port, ssl=self._tls)
        return connection

    async def _run_handshake(self, connection: Connection) -> None:
        for verb, request in self._handshake.requests():
            future = connection.send(request)
            assert future is not None
            error: BaseException | None
            try:
                error = self._handshake.reply_error(verb, (await future).line, self._name)
            except BaseException as raised:  # noqa: BLE001 - also a cancellation ends the connection
                error = raised
            if error is not None:
                connection.end(LinkError(f"{self._name}: closed before it was bound"))
                raise error
