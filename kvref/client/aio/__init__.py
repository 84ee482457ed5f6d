"""Mapped tables from asyncio, with any loop; uvloop is the fastest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self, TypeVar, Unpack, overload

from kvref.client.aio.connection import ServerConnection
from kvref.client.aio.view import AsyncMappedView
from kvref.client.arguments import check_name
from kvref.client.columns import Columns, ColumnsSpec, R, as_columns
from kvref.client.errors import CallError
from kvref.client.options import AsyncOptions, Connections, Servers, checked, server_addresses
from kvref.client.protocol import handshake

Row = TypeVar("Row")


class AsyncMappedClient(AsyncMappedView[R]):
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
        columns: the names of its value columns, names with types such as `{"name": str, "price": int}`, a TypedDict, or
            `Columns`; None: values are bytes.
        delimiter: between mapping and key, as the server's `table_map_delimiter`.
        connect_timeout: for connection and bind, in seconds; 10 by default.
        timeout: for each answer, in seconds; 60 by default, longer than a server waits for a lock (50 by default).
        credentials: user and password, if the server requires authentication, as memcached -Y does.
        ignore_exc: as for `MappedClient`.
        tls: how the server proves who it is; None: without TLS. `tls_context`, pymemcache's name, is the same option.
        tls_context: see `tls`.
        max_answer_bytes: limit of one answer with all its rows; beyond it the connection is closed with ServerError.

    Raises:
        CallError: an address, a mapping's name or another option is invalid, or invalid credentials.
    """

    @overload
    def __init__(
        self: AsyncMappedClient[bytes], servers: Servers, *, columns: None = None, **options: Unpack[AsyncOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: AsyncMappedClient[Row],
        servers: Servers,
        *,
        columns: Columns[Row] | type[Row],
        **options: Unpack[AsyncOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: AsyncMappedClient[tuple[str, ...]],
        servers: Servers,
        *,
        columns: tuple[()],
        **options: Unpack[AsyncOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: AsyncMappedClient[dict[str, str]],
        servers: Servers,
        *,
        columns: tuple[str, ...] | list[str],
        **options: Unpack[AsyncOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: AsyncMappedClient[dict[str, Any]],
        servers: Servers,
        *,
        columns: Mapping[str, Any] | None,
        **options: Unpack[AsyncOptions],
    ) -> None: ...

    def __init__(self, servers: Servers, *, columns: Any = None, **options: Any) -> None:
        addresses = server_addresses(servers)
        given = checked(AsyncOptions, options)
        if given["tls"] is not None and given["tls_context"] is not None:
            raise CallError("tls and tls_context are the same option: give one")
        context, first = given["tls"] or given["tls_context"], handshake(given["credentials"])
        connections = Connections(
            lambda address, name: ServerConnection(
                address,
                first._replace(mapping=name),
                context,
                given["connect_timeout"],
                given["timeout"],
                given["max_answer_bytes"],
            ),
            addresses,
            servers,
            given,
        )
        super().__init__(connections, given["mapping"], columns)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def bind(self, name: str, columns: ColumnsSpec[Any] = None) -> None:
        """Let plain keys mean another mapping from now on; calls in flight keep theirs.

        A type checker still expects rows of the constructor's type: use `at` for another one.

        Args:
            name: of a row of `containers`.
            columns: of that mapping, as for the constructor.

        Raises:
            UnknownMappingError: the server has no such mapping; what was bound stays.
        """
        new = check_name(name), as_columns(columns)
        await asyncio.gather(*[connection.version() for connection in self._connections.each(name)])
        self._mapping, self._columns = new

    @overload
    def at(self, name: str, columns: None = None) -> AsyncMappedView[bytes]: ...

    @overload
    def at(self, name: str, columns: Columns[Row] | type[Row]) -> AsyncMappedView[Row]: ...

    @overload
    def at(self, name: str, columns: tuple[()]) -> AsyncMappedView[tuple[str, ...]]: ...  # type: ignore[overload-overlap]

    @overload
    def at(self, name: str, columns: tuple[str, ...] | list[str]) -> AsyncMappedView[dict[str, str]]: ...

    @overload
    def at(self, name: str, columns: Mapping[str, Any]) -> AsyncMappedView[dict[str, Any]]: ...

    def at(self, name: str, columns: Any = None) -> AsyncMappedView[Any]:
        """Return the calls on another mapping: bare keys in, bare keys out.

        Args:
            name: of a row of `containers`; an unknown one is an error of the first call.
            columns: of that mapping, as for the constructor.
        """
        return AsyncMappedView(self._connections, check_name(name), columns)

    async def close(self) -> None:
        """Close every connection after the answers that are outstanding; a later call opens them again."""
        await asyncio.gather(*[connection.close() for connection in self._connections.all()])

    disconnect_all = close
    # The server needs no command to end a connection.
    quit = close
