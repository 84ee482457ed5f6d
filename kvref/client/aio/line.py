"""The connection of one mapping: opened when it is needed, bound first, opened again after its end."""

from __future__ import annotations

import asyncio
import ssl

from kvref.addresses import Address
from kvref.client.aio.connection import Connection
from kvref.client.errors import LinkError, UnknownMappingError, UnsupportedError, refusal, unreadable
from kvref.client.greeting import AUTHENTICATE, Greeting
from kvref.client.replies import LINE, MAX_ANSWER_BYTES, Answer, Shape
from kvref.client.words import check_ranges


class Line:
    """Requests to one server about one mapping.

    Args:
        address: of the server; port: 1 to 65535.
        greeting: requests sent before all others.
        tls: how the server proves who it is; None: without TLS.
        connect_timeout: for connection and greeting, in seconds.
        timeout: for each answer, in seconds.
        max_answer: limit of one answer with all its rows, in bytes.
    """

    def __init__(
        self,
        address: Address,
        greeting: Greeting,
        tls: ssl.SSLContext | None,
        connect_timeout: float,
        timeout: float,
        max_answer: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._address = address
        self._name = str(address)
        self._greeting = greeting
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._max_answer = max_answer
        self._link: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._version: tuple[Connection, str] | None = None

    async def ask(self, verb: str, data: bytes, shape: Shape = LINE) -> Answer:
        """Send a request and return its answer, whose last line is none of the three errors.

        Raises:
            LinkError: no connection, or no answer in time. One late answer fails its own call only; when the server was
                silent for that long the connection is given up.
            MappedError: as the answer says.
        """
        link: Connection | None = None
        try:
            async with asyncio.timeout(self._timeout):
                link = await self._ready()
                future = link.ask(data, shape)
                assert future is not None
                answer = await future
        except TimeoutError as error:
            late = LinkError(f"{verb}: {self._name}: no answer within {self._timeout} s")
            if link is not None and asyncio.get_running_loop().time() - link.heard >= self._timeout:
                link.end(late)
            raise late from error
        failure = refusal(answer.line, verb, self._name)
        if failure is None:
            return answer
        if isinstance(failure, UnsupportedError) and data.count(b"\n") > 1:
            # A storage verb that the server does not know: it read the data as a command.
            link.end(LinkError(f"{self._name}: the connection was given up: {failure}"))
        raise failure

    async def tell(self, data: bytes) -> None:
        """Send a request and discard its reply. Raises LinkError without a connection in time."""
        try:
            async with asyncio.timeout(self._timeout):
                link = await self._ready()
        except TimeoutError as error:
            raise LinkError(f"{self._name}: takes no bytes for {self._timeout} s") from error
        link.ask(data, wanted=False)

    async def version(self) -> str:
        """Return what the server says of its version."""
        answer = await self.ask("version", b"version\r\n")
        if not answer.line.startswith(b"VERSION "):
            raise unreadable(answer.line, "version")
        return answer.line[8:].decode("utf-8", "replace")

    async def need_ranges(self) -> None:
        """Raise UnsupportedError if the server has no ranges; its version is read once per connection."""
        link = await self._ready()
        if self._version is None or self._version[0] is not link:
            self._version = link, await self.version()
        check_ranges(self._version[1])

    async def close(self) -> None:
        """Close the connection after the answers that are outstanding; a later request opens it again."""
        if self._opening is not None:
            self._opening.cancel()
        if self._link is not None:
            await self._link.leave(self._timeout)

    async def _ready(self) -> Connection:
        while True:
            link = await self._open_link()
            await link.writable()
            if link.error is None:
                return link

    async def _open_link(self) -> Connection:
        if self._link is not None and self._link.error is None:
            return self._link
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
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                link = await self._connect(loop)
                await self._greet(link)
        except TimeoutError as error:
            raise LinkError(f"{self._name}: no connection within {self._connect_timeout} s") from error
        except LinkError:
            raise
        except OSError as error:
            raise LinkError(f"{self._name}: {error.strerror or error}: is a server running there?") from error
        self._link = link
        return link

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> Connection:
        def make() -> Connection:
            return Connection(self._name, self._max_answer)

        where = self._address
        if where.path:
            # The certificate names a host, which a path has not.
            name = None if self._tls is None else "localhost"
            _, link = await loop.create_unix_connection(make, where.path, ssl=self._tls, server_hostname=name)
        else:
            _, link = await loop.create_connection(make, where.host, where.port, ssl=self._tls)
        return link

    async def _greet(self, link: Connection) -> None:
        authentication, binding = self._greeting.authentication, self._greeting.binding
        if authentication is not None:
            line = await self._say(link, authentication)
            if line != b"STORED":
                link.end(LinkError(f"{self._name}: not known there"))
                raise refusal(line, AUTHENTICATE, self._name) or unreadable(line, AUTHENTICATE)
        if binding is None:
            return
        line = await self._say(link, binding)
        if line == b"SUCCEED":
            return
        link.end(LinkError(f"{self._name}: not bound"))
        if line == b"NOT_FOUND":
            raise UnknownMappingError(f"{self._name} has no usable mapping {self._greeting.mapping!r} in containers")
        if line == b"ERROR":
            raise UnsupportedError(f"{self._name} has no mappings")
        raise refusal(line, "bind", self._name) or unreadable(line, "bind")

    async def _say(self, link: Connection, request: bytes) -> bytes:
        future = link.ask(request)
        assert future is not None
        try:
            return (await future).line
        except BaseException:
            link.end(LinkError(f"{self._name}: given up before it was bound"))
            raise
