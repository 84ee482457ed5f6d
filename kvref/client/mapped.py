"""Mapped tables through pymemcache: the client, and the calls on one mapping's keys.

Composition: a `MappedClient` holds pymemcache clients (one, pooled or hashed), one for each mapping in use. A
connection that serves two mappings would have to be switched back and forth, and could not return to the default
mapping, whose name a client cannot know. `bound.py` explains what is a subclass and why. The calls of `MappedView` have
pymemcache's names and results; they are written out there for their types, which pymemcache lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from kvref.client.arguments import Key, check_delta, check_name, check_store, range_word, split_word
from kvref.client.bound import Clients, connected, each_server, rows_of_range
from kvref.client.columns import (
    MAX_ATTEMPTS,
    Columns,
    ColumnsSpec,
    Part,
    Value,
    Values,
    as_columns,
    check_single,
    check_update,
    shown_mapping,
    update_lost,
)
from kvref.client.errors import CallError
from kvref.client.options import Server, check_limits, check_options, server_addresses
from kvref.client.protocol import MAX_ANSWER_BYTES, greeting

_MISSING: Final = object()


class MappedView:
    """The calls on the keys of one mapping; made by `MappedClient.at`.

    A key is text or bytes of 1 to 250 bytes without blanks. A value is bytes, text or a number, or with several value
    columns a tuple or a dict; it is read back as bytes, or as `columns` say. Every call raises the errors of
    `kvref.client.errors`.
    """

    def __init__(self, clients: Clients, mapping: str | None, columns: ColumnsSpec) -> None:
        self._clients = clients
        self._mapping = mapping
        self._columns = as_columns(columns)

    def get(self, key: Key, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        client, bare = self._place(key)
        value = client.get(bare, _MISSING)  # a serde may store None
        return default if value is _MISSING else self._read(value)

    def gets(self, key: Key, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults."""
        client, bare = self._place(key)
        value, number = client.gets(bare)
        return (default, cas_default) if number is None else (self._read(value), int(number))

    def gat(self, key: Key, expire: int = 0, default: Any = None) -> Any:
        """Return the value of a key, or the default, and set when its row expires.

        Raises:
            UnsupportedError: the plugins do not have this command.
        """
        check_store(expire, 0)
        client, bare = self._place(key)
        value = client.gat(bare, expire, _MISSING)
        return default if value is _MISSING else self._read(value)

    def gats(self, key: Key, expire: int = 0, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults, and set when its row expires, as `gat`."""
        check_store(expire, 0)
        client, bare = self._place(key)
        value, number = client.gats(bare, expire)
        return (default, cas_default) if number is None else (self._read(value), int(number))

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Return the values of the keys that exist; one request for each mapping and server."""
        found: dict[Key, Any] = {}
        for client, named in self._places(keys):
            for bare, value in client.get_many(list(named)).items():
                found |= dict.fromkeys(named[bare], self._read(value))
        return found

    def gets_many(self, keys: Iterable[Key]) -> dict[Key, tuple[Any, int]]:
        """Return the values with their numbers of the keys that exist."""
        found: dict[Key, tuple[Any, int]] = {}
        for client, named in self._places(keys):
            for bare, (value, number) in client.gets_many(list(named)).items():
                found |= dict.fromkeys(named[bare], (self._read(value), int(number)))
        return found

    def get_range(
        self, *, gt: Key | None = None, ge: Key | None = None, lt: Key | None = None, le: Key | None = None
    ) -> dict[Key, Any]:
        """Return the rows whose keys lie between the bounds, in the order of the key column.

        Of several servers, one after the other. The keys are text when the bounds are. 8.0.33 answers storage bytes for
        an integer key, only one row for an integer key with one bound, and ends at an expired row; kvref gives all
        rows.

        Args:
            gt: above this key; ge: from this key on; "" for both: from the first (a text column).
            lt: below this key; le: up to this key.

        Raises:
            UnsupportedError: MySQL before 5.7.3 and memcached, which have no ranges.
        """
        word = range_word(gt, ge, lt, le)
        as_text = not any(isinstance(bound, bytes) for bound in (gt, ge, lt, le))
        rows: dict[Key, Any] = {}
        for client in each_server(self._client()):
            for key, value in rows_of_range(client, word).items():
                rows[key.decode("utf-8", "surrogateescape") if as_text else key] = self._read(value)
        return rows

    def set(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int | None = None) -> bool:
        """Store a value; False where the table does not take it (the plugins' NOT_STORED).

        Args:
            expire: seconds, up to 30 days, or a Unix time; 0: never.
            noreply: do not wait; whether it was stored stays unknown.
            flags: 0 to 2^32 - 1, 0 by default.
        """
        return bool(self._store("set", key, value, expire, noreply, flags))

    def set_many(self, values: Values, expire: int = 0, noreply: bool = False, flags: int | None = None) -> list[Key]:
        """Store values, all on their way before the first answer is read; return the keys that were not stored."""
        check_store(expire, flags or 0)
        failed: list[Key] = []
        given: dict[Key, Value] = dict(values.items())
        for client, named in self._places(given):
            stored = {bare: self._written(given[words[-1]]) for bare, words in named.items()}
            for bare in client.set_many(stored, expire=expire, noreply=noreply, flags=flags):
                failed += named[bare]
        return failed

    def add(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int | None = None) -> bool:
        """Store a value under a key that has none; False where it has one."""
        return bool(self._store("add", key, value, expire, noreply, flags))

    def replace(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int | None = None) -> bool:
        """Store a value under a key that has one; False where it has none."""
        return bool(self._store("replace", key, value, expire, noreply, flags))

    def append(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int | None = None) -> bool:
        """Add bytes behind a value; False where there is none. The plugins take flags and expiry from this call."""
        return bool(self._single("append")._store("append", key, value, expire, noreply, flags))

    def prepend(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int | None = None) -> bool:
        """Add bytes in front of a value, as `append`."""
        return bool(self._single("prepend")._store("prepend", key, value, expire, noreply, flags))

    def cas(
        self, key: Key, value: Value, cas: int, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool | None:
        """Store a value if its row is as `gets` saw it; False where it changed, None where it is gone.

        Args:
            cas: the number that `gets` returned.
            noreply: do not wait; the result is True.
        """
        check_store(expire, flags or 0, cas)
        client, bare = self._place(key)
        stored: bool | None = client.cas(bare, self._written(value), cas, expire=expire, noreply=noreply, flags=flags)
        return stored

    def update(self, key: Key, changes: Mapping[str, Part], expire: int = 0, flags: int | None = None) -> bool:
        """Change some value columns of a row and keep the others; False where there is no row.

        The row is read with `gets` and written with `cas`, again if another client has changed it in between. A mapping
        without a cas column does not notice such a change.

        Args:
            changes: by the names of columns.
            expire: as for `set`; the old one is replaced.
            flags: as for `set`; the old one is replaced.

        Raises:
            CallError: the columns have no names, or one is unknown.
            ServerError: the row changed at each of many attempts.
        """
        check_update(self._columns)
        for _ in range(MAX_ATTEMPTS):
            value, number = self.gets(key)
            if value is None:
                return False
            stored = self.cas(key, {**value, **changes}, number, expire, flags=flags)
            if stored is not False:
                return stored is True
        raise update_lost(key)

    def incr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Add to a number and return the sum; None without a row, for which 5.6.14 answers any number.

        Args:
            noreply: do not wait; the result is None.
        """
        client, bare = self._single("incr")._place(key)
        number: int | None = client.incr(bare, check_delta(value), noreply=noreply)
        return number

    def decr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Subtract from a number, not below 0; else as `incr`."""
        client, bare = self._single("decr")._place(key)
        number: int | None = client.decr(bare, check_delta(value), noreply=noreply)
        return number

    def delete(self, key: Key, noreply: bool = False) -> bool:
        """Delete a row; False where there was none."""
        client, bare = self._place(key)
        return bool(client.delete(bare, noreply=noreply))

    def delete_many(self, keys: Iterable[Key], noreply: bool = False) -> bool:
        """Delete rows; True, whether they were there or not."""
        for client, named in self._places(keys):
            client.delete_many(list(named), noreply=noreply)
        return True

    def touch(self, key: Key, expire: int = 0, noreply: bool = False) -> bool:  # noqa: ARG002 - pymemcache's parameter
        """Set when a row expires; False without a row. Raises UnsupportedError at the plugins.

        Args:
            expire: as for `set`.
            noreply: ignored, for callers of pymemcache: the reply is read.
        """
        check_store(expire, 0)
        client, bare = self._place(key)
        # Without `noreply`: a server that lacks the verb answers ERROR all the same.
        return bool(client.touch(bare, expire=expire, noreply=False))

    def flush_all(self, delay: int = 0, noreply: bool = False) -> bool:  # noqa: ARG002 - as above
        """Delete every row of the mapping's table, at once, on every server.

        Args:
            delay: seconds, for callers of pymemcache; kvref rejects any but 0.
            noreply: ignored: the reply is read.
        """
        done = [client.flush_all(delay, noreply=False) for client in each_server(self._client())]
        return all(done)

    def stats(self, *arguments: str) -> dict[bytes, Any]:
        """Return the rows of `stats`, as pymemcache does: names in bytes, numbers where it knows the type.

        Args:
            arguments: of the command, such as "settings".

        Raises:
            CallError: there are several servers.
        """
        rows: dict[bytes, Any] = self._only("stats", "stats_of_each").stats(*arguments)
        return rows

    def stats_of_each(self, *arguments: str) -> list[dict[bytes, Any]]:
        """Return what `stats` returns, of each server in the order of the constructor."""
        return [client.stats(*arguments) for client in each_server(self._client())]

    def version(self) -> bytes:
        """Return the server's version, as pymemcache does. Raises CallError if there are several servers."""
        found: bytes = self._only("version", "versions").version()
        return found

    def versions(self) -> tuple[str, ...]:
        """Return the version of each server in the order of the constructor."""
        return tuple(client.version().decode() for client in each_server(self._client()))

    def raw_command(self, command: Key, end_tokens: Key = "\r\n") -> bytes:
        """Send a command as it is and return the reply up to a token, without the token.

        Do not send `bind` or `@@` words: other calls use the same connection.

        Args:
            command: without its line end.
            end_tokens: end of the reply, such as "END\\r\\n" of a get.

        Raises:
            CallError: there are several servers.
        """
        reply: bytes = self._only("raw_command", "a client of one server").raw_command(command, end_tokens)
        return reply

    get_multi = get_many
    gets_multi = gets_many
    set_multi = set_many
    delete_multi = delete_many

    def __getitem__(self, key: Key) -> Any:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: Value) -> None:
        self.set(key, value)

    def __delitem__(self, key: Key) -> None:
        self.delete(key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._clients.shown}{shown_mapping(self._mapping, self._columns)})"

    def _only(self, call: str, instead: str) -> Any:
        """Return the client of the only server. Raises CallError if there are several."""
        clients = each_server(self._client())
        if len(clients) > 1:
            raise CallError(f"{call}: there are {len(clients)} servers: use {instead}")
        return clients[0]

    def _client(self) -> Any:
        return self._clients.of(self._mapping)

    def _place(self, key: Key) -> tuple[Any, Key]:
        name, bare = split_word(key, self._clients.delimiter)
        return (self._client() if name is None else self._clients.of(name)), bare

    def _places(self, keys: Iterable[Key]) -> list[tuple[Any, dict[Key, list[Key]]]]:
        """Return each client with its bare keys and all that the caller calls them."""
        places: dict[int, tuple[Any, dict[Key, list[Key]]]] = {}
        for key in keys:
            client, bare = self._place(key)
            places.setdefault(id(client), (client, {}))[1].setdefault(bare, []).append(key)
        return list(places.values())

    def _store(self, verb: str, key: Key, value: Value, expire: int, noreply: bool, flags: int | None) -> Any:
        check_store(expire, flags or 0)
        client, bare = self._place(key)
        return getattr(client, verb)(bare, self._written(value), expire=expire, noreply=noreply, flags=flags)

    def _single(self, verb: str) -> Self:
        check_single(verb, self._columns)
        return self

    def _written(self, value: Value) -> Any:
        if self._columns is None and self._clients.has_serde:
            return value
        return (self._columns or Columns()).encode(value)

    def _read(self, value: Any) -> Any:
        return value if self._columns is None else self._columns.decode(value)


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
        first = greeting(credentials)
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
