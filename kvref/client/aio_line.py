"""The connection of one mapping: opened when it is needed, bound first, opened again after its end."""

from __future__ import annotations

import asyncio

from kvref.client.aio_link import Link
from kvref.client.errors import LinkError, UnknownMappingError, UnsupportedError, refusal, unreadable
from kvref.client.replies import Answer
from kvref.client.words import check_ranges


class Line:
    """Requests to one server about one mapping.

    Args:
        host: name or address; port: 1 to 65535.
        mapping: bound before anything else is asked; None: the server's default mapping.
        connect_timeout: for connection and bind, in seconds.
        timeout: for each answer, in seconds.
    """

    def __init__(self, host: str, port: int, mapping: str | None, connect_timeout: float, timeout: float) -> None:
        self._host, self._port = host, port
        self._name = f"{host}:{port}"
        self._mapping = mapping
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._link: Link | None = None
        self._opening: asyncio.Task[Link] | None = None
        self._version: tuple[Link, str] | None = None

    async def ask(self, verb: str, data: bytes, *, rows: bool = False) -> Answer:
        """Send a request and return its answer, whose last line is none of the three errors.

        Raises:
            LinkError: no connection, or no answer in time. One late answer fails its own call only; when the server was
                silent for that long the connection is given up.
            MappedError: as the answer says.
        """
        link: Link | None = None
        try:
            async with asyncio.timeout(self._timeout):
                link = await self._ready()
                future = link.ask(data, rows=rows)
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
        """Send a request whose answer nobody wants. Raises LinkError without a connection in time."""
        try:
            async with asyncio.timeout(self._timeout):
                link = await self._ready()
        except TimeoutError as error:
            raise LinkError(f"{self._name}: takes no bytes for {self._timeout} s") from error
        link.ask(data, rows=False, wanted=False)

    async def version(self) -> str:
        """Return what the server says of its version."""
        answer = await self.ask("version", b"version\r\n")
        if not answer.line.startswith(b"VERSION "):
            raise unreadable(answer.line, "version")
        return answer.line[8:].decode("utf-8", "replace")

    async def need_ranges(self) -> None:
        """Raise UnsupportedError where the server has no ranges; it is asked once for each connection."""
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

    async def _ready(self) -> Link:
        while True:
            link = await self._open_link()
            await link.writable()
            if link.error is None:
                return link

    async def _open_link(self) -> Link:
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

    async def _open(self) -> Link:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, link = await loop.create_connection(lambda: Link(self._name), self._host, self._port)
                await self._bind(link)
        except TimeoutError as error:
            raise LinkError(f"{self._name}: no connection within {self._connect_timeout} s") from error
        except LinkError:
            raise
        except OSError as error:
            raise LinkError(f"{self._name}: {error.strerror or error}: is a server running there?") from error
        self._link = link
        return link

    async def _bind(self, link: Link) -> None:
        if self._mapping is None:
            return
        future = link.ask(b"bind " + self._mapping.encode("utf-8", "surrogateescape") + b"\r\n", rows=False)
        assert future is not None
        try:
            line = (await future).line
        except BaseException:
            link.end(LinkError(f"{self._name}: given up before it was bound"))
            raise
        if line == b"SUCCEED":
            return
        link.end(LinkError(f"{self._name}: not bound"))
        if line == b"NOT_FOUND":
            raise UnknownMappingError(f"{self._name} has no usable mapping {self._mapping!r} in containers")
        if line == b"ERROR":
            raise UnsupportedError(f"{self._name} has no mappings")
        raise refusal(line, "bind", self._name) or unreadable(line, "bind")
