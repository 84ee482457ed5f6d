"""Mapped tables through pymemcache.

Composition: a `MappedClient` holds pymemcache clients (one, pooled or hashed), one for each mapping in use. A
connection that serves two mappings would have to be switched back and forth, and could not return to the default
mapping, whose name a client cannot know. `bound.py` explains what is a subclass and why. The calls of `view.py` have
pymemcache's names and results; they are written out there for their types, which pymemcache lacks.
"""

from __future__ import annotations

from typing import Any, Final, Self

from kvref.client.bound import Clients, connected
from kvref.client.columns import ColumnsSpec, as_columns
from kvref.client.errors import CallError
from kvref.client.greeting import greeting
from kvref.client.options import check_limits, check_options
from kvref.client.replies import MAX_ANSWER_BYTES
from kvref.client.servers import Server, server_addresses
from kvref.client.view import MappedView
from kvref.client.words import check_name

_DEFAULTS: Final = {
    "connect_timeout": 10.0,
    "timeout": 60.0,
    "no_delay": True,
    "allow_unicode_keys": True,
    "default_noreply": False,
}


class MappedClient(MappedView):
    """Mapped tables through pymemcache; `@@mapping.key` is a key of that mapping in every call, delete included.

    Each mapping in use has connections of its own, bound when they are opened, again after every loss. So plain keys
    stay those of the bound mapping whatever other mappings are used, and `flush_all` empties that mapping's table
    alone. Where the server commits in batches, writes through two mappings are in two batches. Behind a proxy that
    shares connections among clients (twemproxy) nothing can stay bound: use pymemcache itself there.

    A call is sent once. After a LinkError the next call connects again. A connection that the server closed while it
    was idle is replaced transparently.

    Args:
        servers: (host, port), HOST:PORT, HOST, unix:PATH or an absolute path; or a list of several, among which the
            bare key chooses as in pymemcache's `HashClient`. A key never moves to another server.
        mapping: what plain keys mean; None: the server's default mapping.
        columns: the names of its value columns, names with types such as `{"name": str, "price": int}`, or `Columns`;
            None: values are bytes.
        pool_size: connections at most for each server and mapping, for use by several threads; None: one thread.
        delimiter: between mapping and key, as the server's `table_map_delimiter`.
        credentials: user and password, if the server requires authentication, as memcached -Y does.
        max_answer_bytes: limit of the answers to one request; beyond it the connection is closed with ServerError.
        options: of pymemcache's clients, such as `timeout` (60 s here: longer than a server waits for a lock),
            `connect_timeout` (10 s), `tls_context`, `serde` for values that are no columns.

    Raises:
        CallError: an unknown option or one that makes no sense here, or credentials that no server takes.
    """

    def __init__(
        self,
        servers: Server | list[Server],
        *,
        mapping: str | None = None,
        columns: ColumnsSpec = None,
        pool_size: int | None = None,
        delimiter: str = ".",
        credentials: tuple[str, str] | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        **options: Any,
    ) -> None:
        where = [each.socket_address for each in server_addresses(servers)]
        check_limits(delimiter=delimiter, pool_size=pool_size, max_answer_bytes=max_answer_bytes)
        check_options(options, several=len(where) > 1)
        used = {**_DEFAULTS, **options}
        first = greeting(None, credentials)
        clients = Clients(
            lambda name: connected(where, first._replace(mapping=name), pool_size, max_answer_bytes, **used),
            delimiter,
            "serde" in options,
            repr(servers),
        )
        super().__init__(clients, None if mapping is None else check_name(mapping), columns)
        try:
            self._client()
        except (TypeError, ValueError) as error:
            raise CallError(f"options of pymemcache: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bind(self, name: str, columns: ColumnsSpec = None) -> None:
        """Let plain keys mean another mapping from now on, on every connection of this client.

        Args:
            name: of a row of `containers`.
            columns: of that mapping, as for the constructor.

        Raises:
            UnknownMappingError: a server has no such mapping; what was bound stays.
        """
        self._clients.check(check_name(name))
        self._mapping, self._columns = name, as_columns(columns)

    def at(self, name: str, columns: ColumnsSpec = None) -> MappedView:
        """Return the calls on another mapping: bare keys in, bare keys out; those of this client stay what they are.

        Args:
            name: of a row of `containers`; an unknown one is an error of the first call.
            columns: of that mapping, as for the constructor.
        """
        return MappedView(self._clients, check_name(name), columns)

    def close(self) -> None:
        """Close every connection; a later call opens them again."""
        self._clients.close()

    disconnect_all = close
    # The server needs no command to end a connection.
    quit = close
