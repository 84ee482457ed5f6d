"""Mapped tables from asyncio, with any loop; uvloop is the fastest."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Self

from kvref.addresses import parse_address
from kvref.client.aio.line import Line
from kvref.client.aio.view import AsyncMappedView, Lines
from kvref.client.columns import Columns, as_columns
from kvref.client.errors import CallError
from kvref.client.greeting import greeting
from kvref.client.replies import MAX_ANSWER_BYTES
from kvref.client.words import check_name
from kvref.errors import ConfigError


class AsyncMappedClient(AsyncMappedView):
    """Mapped tables of one server; `@@mapping.key` is a key of that mapping in every call, delete included.

    Each mapping in use has one connection, opened by its first call, bound then and after every loss. Any number of
    calls may be in flight on it. A call that is canceled or times out is not retried; the server may have executed
    it. Other calls are not affected. When the connection is lost, every call in flight raises LinkError, and the
    next call connects again. One client belongs to one event loop::

        async with AsyncMappedClient("127.0.0.1:11211") as client:
            await asyncio.gather(*[client.set(f"k{n}", n) for n in range(1000)])

    Args:
        server: HOST:PORT or unix:PATH; with TLS over a unix socket the certificate is one of `localhost`.
        mapping: what plain keys mean; None: the server's default mapping.
        columns: the names of its value columns, or `Columns`; None: values are bytes.
        delimiter: between mapping and key, as the server's `table_map_delimiter`.
        connect_timeout: for connection and bind, in seconds.
        timeout: for each answer, in seconds; longer than a server waits for a lock (50 by default).
        credentials: user and password, if the server requires authentication, as memcached -Y does.
        tls: how the server proves who it is; None: without TLS.
        max_answer_bytes: limit of one answer with all its rows; beyond it the connection is closed with ServerError.

    Raises:
        CallError: the address or the mapping's name is none, or credentials that no server takes.
    """

    def __init__(  # noqa: PLR0913 - options by name, as of any client
        self,
        server: str,
        *,
        mapping: str | None = None,
        columns: Columns | Sequence[str] | None = None,
        delimiter: str = ".",
        connect_timeout: float = 10.0,
        timeout: float = 60.0,
        credentials: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        try:
            address = parse_address(server)
        except ConfigError as error:
            raise CallError(str(error)) from error
        first = greeting(None, credentials)
        lines = Lines(
            lambda name: Line(address, first._replace(mapping=name), tls, connect_timeout, timeout, max_answer_bytes),
            delimiter,
        )
        super().__init__(lines, None if mapping is None else check_name(mapping), columns)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def bind(self, name: str, columns: Columns | Sequence[str] | None = None) -> None:
        """Let plain keys mean another mapping from now on; calls in flight keep theirs.

        Args:
            name: of a row of `containers`.
            columns: of that mapping, as for the constructor.

        Raises:
            UnknownMappingError: the server has no such mapping; what was bound stays.
        """
        await self._lines.of(check_name(name)).version()
        self._mapping, self._columns = name, as_columns(columns)

    def at(self, name: str, columns: Columns | Sequence[str] | None = None) -> AsyncMappedView:
        """Return the calls on another mapping: bare keys in, bare keys out.

        Args:
            name: of a row of `containers`; an unknown one is an error of the first call.
            columns: of that mapping, as for the constructor.
        """
        return AsyncMappedView(self._lines, check_name(name), columns)

    async def close(self) -> None:
        """Close every connection after the answers that are outstanding; a later call opens them again."""
        await self._lines.close()
