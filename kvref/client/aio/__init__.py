"""Mapped tables from asyncio, with any loop; uvloop is the fastest."""

from __future__ import annotations

import asyncio
import ssl
from typing import Self

from kvref.client.aio.connection import Line
from kvref.client.aio.view import AsyncMappedView, Lines
from kvref.client.arguments import check_name
from kvref.client.columns import ColumnsSpec, as_columns
from kvref.client.errors import CallError
from kvref.client.options import Server, check_limits, check_times, server_addresses
from kvref.client.protocol import MAX_ANSWER_BYTES, greeting


class AsyncMappedClient(AsyncMappedView):
    """Mapped tables of one server or of several; `@@mapping.key` is a key of that mapping in every call.

    Each mapping in use has one connection to each server, opened by its first call, bound then and after every loss.
    Any number of calls may be in flight on it. A call that is canceled or times out is not retried; the server may have
    executed it. Other calls are not affected. When the connection is lost, every call in flight raises LinkError, and
    the next call connects again. One client belongs to one event loop::

        async with AsyncMappedClient("127.0.0.1:11211") as client:
            await asyncio.gather(*[client.set(f"k{n}", n) for n in range(1000)])

    Args:
        servers: (host, port), HOST:PORT, HOST, unix:PATH or an absolute path; or a list of several, among which the
            bare key chooses as in `MappedClient`. With TLS over a unix socket the certificate is one of `localhost`.
        mapping: what plain keys mean; None: the server's default mapping.
        columns: the names of its value columns, names with types such as `{"name": str, "price": int}`, or `Columns`;
            None: values are bytes.
        delimiter: between mapping and key, as the server's `table_map_delimiter`.
        connect_timeout: for connection and bind, in seconds.
        timeout: for each answer, in seconds; longer than a server waits for a lock (50 by default).
        credentials: user and password, if the server requires authentication, as memcached -Y does.
        tls: how the server proves who it is; None: without TLS. `tls_context`, pymemcache's name, is the same option.
        tls_context: see `tls`.
        max_answer_bytes: limit of one answer with all its rows; beyond it the connection is closed with ServerError.

    Raises:
        CallError: an address, a mapping's name or another option is invalid, or credentials that no server takes.
    """

    def __init__(  # noqa: PLR0913 - options by name, as of any client
        self,
        servers: Server | list[Server],
        *,
        mapping: str | None = None,
        columns: ColumnsSpec = None,
        delimiter: str = ".",
        connect_timeout: float = 10.0,
        timeout: float = 60.0,
        credentials: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        tls_context: ssl.SSLContext | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        addresses = server_addresses(servers)
        check_limits(delimiter=delimiter, max_answer_bytes=max_answer_bytes)
        check_times({"connect_timeout": connect_timeout, "timeout": timeout})
        if tls is not None and tls_context is not None:
            raise CallError("tls and tls_context are the same option: give one")
        context, first = tls or tls_context, greeting(credentials)
        lines = Lines(
            lambda address, name: Line(
                address, first._replace(mapping=name), context, connect_timeout, timeout, max_answer_bytes
            ),
            addresses,
            delimiter,
            repr(servers),
        )
        super().__init__(lines, None if mapping is None else check_name(mapping), columns)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def bind(self, name: str, columns: ColumnsSpec = None) -> None:
        """Let plain keys mean another mapping from now on; calls in flight keep theirs.

        Args:
            name: of a row of `containers`.
            columns: of that mapping, as for the constructor.

        Raises:
            UnknownMappingError: the server has no such mapping; what was bound stays.
        """
        await asyncio.gather(*[line.version() for line in self._lines.each(check_name(name))])
        self._mapping, self._columns = name, as_columns(columns)

    def at(self, name: str, columns: ColumnsSpec = None) -> AsyncMappedView:
        """Return the calls on another mapping: bare keys in, bare keys out.

        Args:
            name: of a row of `containers`; an unknown one is an error of the first call.
            columns: of that mapping, as for the constructor.
        """
        return AsyncMappedView(self._lines, check_name(name), columns)

    async def close(self) -> None:
        """Close every connection after the answers that are outstanding; a later call opens them again."""
        await self._lines.close()

    disconnect_all = close
    # The server needs no command to end a connection.
    quit = close
