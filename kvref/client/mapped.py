"""Mapped tables through pymemcache: the client, and the calls on one mapping's keys.

Composition: a `MappedClient` has a pymemcache client, plain or pooled, for each server and mapping in use. A
connection that serves two mappings would have to be switched back and forth, and could not return to the default
mapping, whose name a client cannot find out. `bound.py` explains what is a subclass and why. The calls of `MappedView`
have pymemcache's names and results, and types, which pymemcache lacks. Their checks are in `view.py`, for the asyncio
client too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self, TypeVar, Unpack, overload

from kvref.client.arguments import (
    B,
    K,
    Key,
    check_cas,
    check_expire,
    check_flags,
    check_integer,
    check_name,
    check_noreply,
    check_raw,
    check_stats,
    key_of_range,
    range_word,
)
from kvref.client.bound import open_client
from kvref.client.columns import (
    MAX_ATTEMPTS,
    Columns,
    ColumnsSpec,
    Part,
    R,
    Value,
    as_columns,
    check_update,
    update_lost,
)
from kvref.client.errors import CallError, MappedError
from kvref.client.options import (
    OWN,
    BytesOptions,
    Connections,
    MappedOptions,
    Serde,
    Servers,
    checked,
    server_addresses,
)
from kvref.client.protocol import handshake
from kvref.client.view import C, D, Serialized, View

Row = TypeVar("Row")
_MISSING: Final = object()


class MappedView(View[R, Any]):
    """The calls on the keys of one mapping; made by `MappedClient.at`. `R` is the type of a row for type checkers.

    A key is text, bytes or a whole number: 1 to 250 bytes without blanks. A value is bytes, text or a number, or with
    value columns a tuple, a list or a dict; it is read back as bytes, or with the types of `columns`. Every call raises
    the errors of `kvref.client.errors`; a wrong argument is a CallError, and nothing is sent. With `ignore_exc`, after
    an error of the network or the server the call returns the result for a key without a row, or for a value that was
    not stored.
    """

    @overload
    def get(self, key: Key) -> R | None: ...

    @overload
    def get(self, key: Key, default: D) -> R | D: ...

    def get(self, key: Key, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return self._value("get", key, default)

    @overload
    def gets(self, key: Key) -> tuple[R, int] | tuple[None, None]: ...

    @overload
    def gets(self, key: Key, default: D) -> tuple[R, int] | tuple[D, None]: ...

    @overload
    def gets(self, key: Key, default: D, cas_default: C) -> tuple[R, int] | tuple[D, C]: ...

    def gets(self, key: Key, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults."""
        return self._value_and_number("gets", key, (default, cas_default))

    @overload
    def gat(self, key: Key, expire: int = 0) -> R | None: ...

    @overload
    def gat(self, key: Key, expire: int, default: D) -> R | D: ...

    def gat(self, key: Key, expire: int = 0, default: Any = None) -> Any:
        """Return the value of a key, or the default, and set when its row expires.

        Raises:
            UnsupportedError: the plugins do not have this command.
        """
        return self._value("gat", key, default, check_expire(expire))

    @overload
    def gats(self, key: Key, expire: int = 0) -> tuple[R, int] | tuple[None, None]: ...

    @overload
    def gats(self, key: Key, expire: int, default: D) -> tuple[R, int] | tuple[D, None]: ...

    @overload
    def gats(self, key: Key, expire: int, default: D, cas_default: C) -> tuple[R, int] | tuple[D, C]: ...

    def gats(self, key: Key, expire: int = 0, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults, and set when its row expires, as `gat`."""
        return self._value_and_number("gats", key, (default, cas_default), check_expire(expire))

    def get_many(self, keys: Iterable[K]) -> dict[K, R]:
        """Return the values of the keys that exist; one request for each mapping and server."""
        return self._many("get_many", keys, self._read)

    def gets_many(self, keys: Iterable[K]) -> dict[K, tuple[R, int]]:
        """Return the values with their numbers of the keys that exist."""
        return self._many("gets_many", keys, lambda row: (self._read(row[0]), int(row[1])))

    def get_range(
        self, *, gt: B | None = None, ge: B | None = None, lt: B | None = None, le: B | None = None
    ) -> dict[B, R]:
        """Return the rows whose keys lie between the bounds, in the order of the key column.

        Of several servers, one after the other. The keys are of the type of the bounds: text, bytes or whole numbers.
        8.0.33 returns storage bytes for an integer key, only one row for an integer key with one bound, and ends at an
        expired row; kvref gives all rows.

        Args:
            gt: above this key; ge: from this key on; "" for both: from the first (a text column).
            lt: below this key; le: up to this key.

        Raises:
            InvalidReplyError: the bounds are numbers and a key is not.
            UnsupportedError: MySQL before 5.7.3 and memcached, which have no ranges.
        """
        word = range_word(gt, ge, lt, le)
        rows: dict[B, R] = {}
        for client in self._connections.each(self._mapping):
            with self._ignored("get_range"):
                for key, value in client.get_range(word).items():
                    rows[key_of_range(key, gt, ge, lt, le)] = self._read(value)
        return rows

    def set(self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None) -> bool:
        """Store a value; False if the table rejects it (the plugins' NOT_STORED).

        Args:
            expire: seconds, up to 30 days, or a Unix time; 0: never.
            noreply: do not wait; whether it was stored stays unknown.
            flags: 0 to 2^32 - 1, 0 by default.
        """
        return self._stored("set", key, value, expire, noreply, flags)

    def set_many(
        self, values: Mapping[K, Value | R], expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> list[K]:
        """Store values, all on their way before the first answer is read; return the keys that were not stored."""
        numbers = _numbers(expire, noreply, flags)
        written = self._all_written(values)
        failed: list[K] = []
        for client, named in self._connections_of(written).items():
            stored = {bare: written[words[-1]] for bare, words in named.items()}
            for bare in self._call("set_many", client.set_many, stored, otherwise=list(stored), **numbers):
                failed += named[bare]
        return failed

    def add(self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None) -> bool:
        """Store a value under a key that has none; False where it has one."""
        return self._stored("add", key, value, expire, noreply, flags)

    def replace(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Store a value under a key that has one; False where it has none."""
        return self._stored("replace", key, value, expire, noreply, flags)

    def append(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Append bytes to a value; False without a row. The plugins take flags and expiry from this call."""
        return self._single("append")._stored("append", key, value, expire, noreply, flags)

    def prepend(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Add bytes in front of a value, as `append`."""
        return self._single("prepend")._stored("prepend", key, value, expire, noreply, flags)

    def cas(
        self, key: Key, value: Value | R, cas: int, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool | None:
        """Store a value if its row is as `gets` saw it; False where it changed, None where it is gone.

        Args:
            cas: the number that `gets` returned.
            noreply: do not wait; the result is True.
        """
        numbers, number = _numbers(expire, noreply, flags), check_cas(cas)
        client, bare = self._connection_of(key)
        stored: bool | None = self._call("cas", client.cas, bare, self._written(value), number, **numbers)
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
        checked_changes = check_update(self._columns, changes)
        numbers = _numbers(expire, None, flags)
        client, bare = self._connection_of(key)
        with self._ignored("update"):
            for _ in range(MAX_ATTEMPTS):
                row, number = client.gets(bare)
                if number is None:
                    return False
                written = self._written({**self._read(row), **checked_changes})
                stored = client.cas(bare, written, int(number), **numbers)
                if stored is not False:
                    return stored is True
            raise update_lost(key)
        return False

    def incr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Add to a number and return the sum; None without a row, for which 5.6.14 answers any number.

        Args:
            noreply: do not wait; the result is None.
        """
        return self._single("incr")._count("incr", key, value, noreply)

    def decr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Subtract from a number, not below 0; else as `incr`."""
        return self._single("decr")._count("decr", key, value, noreply)

    def delete(self, key: Key, noreply: bool = False) -> bool:
        """Delete a row; False where there was none."""
        check_noreply(noreply)
        client, bare = self._connection_of(key)
        return bool(self._call("delete", client.delete, bare, noreply=noreply))

    def delete_many(self, keys: Iterable[Key], noreply: bool = False) -> bool:
        """Delete rows; True, whether they were there or not."""
        check_noreply(noreply)
        keys_of = self._connections_of(keys).items()
        sent = [self._call("delete_many", each.delete_many, list(named), noreply=noreply) for each, named in keys_of]
        return all(sent)

    def touch(self, key: Key, expire: int = 0, noreply: bool = False) -> bool:
        """Set when a row expires; False without a row. Raises UnsupportedError at the plugins.

        Args:
            expire: as for `set`.
            noreply: ignored, for callers of pymemcache: the reply is read.
        """
        check_noreply(noreply)
        seconds = check_expire(expire)
        client, bare = self._connection_of(key)
        # Without `noreply`: a server that lacks the verb answers ERROR all the same.
        return bool(self._call("touch", client.touch, bare, expire=seconds, noreply=False))

    def flush_all(self, delay: int = 0, noreply: bool = False) -> bool:
        """Delete every row of the mapping's table, at once, on every server.

        Args:
            delay: seconds, for callers of pymemcache; kvref rejects any but 0.
            noreply: ignored: the reply is read.
        """
        check_noreply(noreply)
        seconds = check_expire(delay)
        clients = self._connections.each(self._mapping)
        flushed = [self._call("flush_all", each.flush_all, seconds, noreply=False) for each in clients]
        return all(flushed)

    def stats(self, *arguments: str) -> dict[bytes, Any]:
        """Return the rows of `stats`, as pymemcache does: names in bytes, numbers if it has the type.

        Args:
            arguments: of the command, such as "settings".

        Raises:
            CallError: there are several servers.
        """
        client = self._only("stats", "stats_of_each")
        rows: dict[bytes, Any] = self._call("stats", client.stats, *check_stats(arguments), otherwise={})
        return rows

    def stats_of_each(self, *arguments: str) -> list[dict[bytes, Any]]:
        """Return what `stats` returns, of each server in the order of the constructor."""
        words = check_stats(arguments)
        return [
            self._call("stats", client.stats, *words, otherwise={}) for client in self._connections.each(self._mapping)
        ]

    def version(self) -> bytes:
        """Return the server's version, as pymemcache does. Raises CallError if there are several servers."""
        found: bytes = self._only("version", "versions").version()
        return found

    def versions(self) -> tuple[str, ...]:
        """Return the version of each server in the order of the constructor."""
        return tuple(client.version().decode() for client in self._connections.each(self._mapping))

    def raw_command(self, command: str | bytes, end_tokens: str | bytes = "\r\n") -> bytes:
        """Send a command as it is and return the reply up to a token, without the token.

        Do not send `bind` or `@@` words: other calls use the same connection.

        Args:
            command: without its line end.
            end_tokens: end of the reply, such as "END\\r\\n" of a get.

        Raises:
            CallError: there are several servers, or an empty command or token.
        """
        words = check_raw(command, end_tokens)
        reply: bytes = self._only("raw_command", "a client of one server").raw_command(*words)
        return reply

    get_multi = get_many
    gets_multi = gets_many
    set_multi = set_many
    delete_multi = delete_many

    def __getitem__(self, key: Key) -> R:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: Value | R) -> None:
        self.set(key, value)

    def __delitem__(self, key: Key) -> None:
        self.delete(key)

    def _call(self, verb: str, call: Callable[..., Any], *arguments: Any, otherwise: Any = False, **named: Any) -> Any:
        """Return what a call of pymemcache returns, `otherwise` if it fails and the client ignores that."""
        with self._ignored(verb):
            return call(*arguments, **named)
        return otherwise

    def _value(self, verb: str, key: object, default: Any, *expire: int) -> Any:
        client, bare = self._connection_of(key)
        with self._ignored(verb):
            value = getattr(client, verb)(bare, *expire, _MISSING)  # a serde may store None
            return default if value is _MISSING else self._read(value)
        return default

    def _value_and_number(self, verb: str, key: object, defaults: tuple[Any, Any], *expire: int) -> tuple[Any, Any]:
        client, bare = self._connection_of(key)
        with self._ignored(verb):
            value, number = getattr(client, verb)(bare, *expire)
            return defaults if number is None else (self._read(value), int(number))
        return defaults

    def _many(self, call: str, keys: Iterable[K], read: Callable[[Any], Row]) -> dict[K, Row]:
        found: dict[K, Row] = {}
        for client, named in self._connections_of(keys).items():
            with self._ignored(call):
                for bare, row in getattr(client, call)(list(named)).items():
                    found |= dict.fromkeys(named[bare], read(row))
        return found

    def _stored(self, verb: str, key: object, value: Any, expire: object, noreply: object, flags: object) -> bool:
        numbers = _numbers(expire, noreply, flags)
        client, bare = self._connection_of(key)
        return bool(self._call(verb, getattr(client, verb), bare, self._written(value), **numbers))

    def _count(self, verb: str, key: object, value: object, noreply: bool) -> int | None:
        delta = check_integer("value", value, 64)
        check_noreply(noreply)
        client, bare = self._connection_of(key)
        number: int | None = self._call(verb, getattr(client, verb), bare, delta, noreply=noreply, otherwise=None)
        return number


def _numbers(expire: object, noreply: object, flags: object) -> dict[str, Any]:
    """Return the arguments of a storage call for pymemcache."""
    return {"expire": check_expire(expire), "noreply": check_noreply(noreply), "flags": check_flags(flags)}


class MappedClient(MappedView[R]):
    """Mapped tables through pymemcache; `@@mapping.key` is a key of that mapping in every call, delete included.

    Each mapping in use has its own connections, bound when they are opened, again after every loss. So plain keys
    stay those of the bound mapping whatever other mappings are used, and `flush_all` empties that mapping's table
    alone. Where the server commits in batches, writes through two mappings are in two batches. Behind a proxy that
    shares connections among clients (twemproxy) nothing can stay bound: use pymemcache itself there.

    A call is sent once. After a LinkError the next call connects again. A connection that the server closed while it
    was idle is replaced transparently.

    Args:
        servers: (host, port), HOST:PORT, HOST, unix:PATH or an absolute path; or a list of several, among which the
            bare key chooses as in pymemcache's `HashClient`. A key never moves to another server.
        mapping: what plain keys mean; None: the server's default mapping.
        columns: the names of its value columns, names with types such as `{"name": str, "price": int}`, a TypedDict, or
            `Columns`; None: values are bytes.
        pool_size: connections at most for each server and mapping, for use by several threads; None: one thread.
        delimiter: between mapping and key, as the server's `table_map_delimiter`.
        credentials: user and password, if the server requires authentication, as memcached -Y does.
        max_answer_bytes: limit of the answers to one request; beyond it the connection is closed with ServerError.
        ignore_exc: a call that the network or the server fails (LinkError, ServerError) is logged and returns what it
            returns without a row; see `MappedView`. The other errors, and those of `bind`, `version`, `versions` and
            `raw_command`, are raised.
        options: those above, by name, and of pymemcache's clients, such as `timeout` (60 s here: longer than a server
            waits for a lock), `connect_timeout` (10 s), `tls_context`, `serde` for values that are not columns.

    Raises:
        CallError: an unknown option or one that makes no sense here, or invalid credentials.
    """

    @overload
    def __init__(
        self: MappedClient[Any],
        servers: Servers,
        *,
        serde: Serde | None,
        columns: None = None,
        **options: Unpack[BytesOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: MappedClient[bytes], servers: Servers, *, columns: None = None, **options: Unpack[BytesOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: MappedClient[Row],
        servers: Servers,
        *,
        columns: Columns[Row] | type[Row],
        **options: Unpack[MappedOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: MappedClient[tuple[str, ...]], servers: Servers, *, columns: tuple[()], **options: Unpack[MappedOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: MappedClient[dict[str, str]],
        servers: Servers,
        *,
        columns: tuple[str, ...] | list[str],
        **options: Unpack[MappedOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: MappedClient[dict[str, Any]],
        servers: Servers,
        *,
        columns: Mapping[str, Any] | None,
        **options: Unpack[MappedOptions],
    ) -> None: ...

    def __init__(self, servers: Servers, *, columns: Any = None, **options: Any) -> None:
        given = checked(MappedOptions, options)
        # Keys are checked before pymemcache sees them.
        used = {name: value for name, value in given.items() if name not in OWN} | {"allow_unicode_keys": True}
        first = handshake(given["credentials"])
        clients = Connections(
            lambda address, name: open_client(
                address.socket_address,
                given["pool_size"],
                handshake=first._replace(mapping=name),
                max_answer=given["max_answer_bytes"],
                **used,
            ),
            server_addresses(servers),
            servers,
            given,
        )
        super().__init__(clients, given["mapping"], columns)
        try:
            clients.each(given["mapping"])
        except MappedError:
            raise
        except Exception as error:
            raise CallError(f"options of pymemcache: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bind(self, name: str, columns: ColumnsSpec[Any] = None) -> None:
        """Let plain keys mean another mapping from now on, on every connection of this client.

        A type checker still expects rows of the constructor's type: use `at` for another one.

        Args:
            name: of a row of `containers`.
            columns: of that mapping, as for the constructor.

        Raises:
            UnknownMappingError: a server has no such mapping; what was bound stays.
        """
        new = check_name(name), as_columns(columns)
        for client in self._connections.each(name):
            client.version()
        self._mapping, self._columns = new

    @overload
    def at(self: MappedClient[Serialized], name: str, columns: None = None) -> MappedView[Any]: ...

    @overload
    def at(self, name: str, columns: None = None) -> MappedView[bytes]: ...

    @overload
    def at(self, name: str, columns: Columns[Row] | type[Row]) -> MappedView[Row]: ...

    @overload
    def at(self, name: str, columns: tuple[()]) -> MappedView[tuple[str, ...]]: ...  # type: ignore[overload-overlap]

    @overload
    def at(self, name: str, columns: tuple[str, ...] | list[str]) -> MappedView[dict[str, str]]: ...

    @overload
    def at(self, name: str, columns: Mapping[str, Any]) -> MappedView[dict[str, Any]]: ...

    def at(self, name: str, columns: Any = None) -> MappedView[Any]:
        """Return the calls on another mapping: bare keys in, bare keys out; those of this client stay what they are.

        Args:
            name: of a row of `containers`; an unknown one is an error of the first call.
            columns: of that mapping, as for the constructor.
        """
        return MappedView(self._connections, check_name(name), columns)

    def close(self) -> None:
        """Close every connection; a later call opens them again."""
        for client in self._connections.all():
            client.close()

    disconnect_all = close
    # The server needs no command to end a connection.
    quit = close
