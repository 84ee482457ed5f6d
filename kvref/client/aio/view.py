"""The calls on one mapping's keys, for asyncio; what they check and how they read is in `kvref.client.view`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

from kvref.client.aio.connection import ServerConnection
from kvref.client.arguments import (
    B,
    K,
    Key,
    as_bytes,
    check_cas,
    check_expire,
    check_flags,
    check_integer,
    check_keys,
    check_noreply,
    check_raw,
    check_stats,
    key_of_range,
    range_word,
)
from kvref.client.columns import MAX_ATTEMPTS, Part, R, Value, check_update, update_lost
from kvref.client.errors import invalid_reply
from kvref.client.protocol import ROWS, STATS, Item, Shape
from kvref.client.view import C, D, View

T = TypeVar("T")
_STORED = {b"STORED": True, b"NOT_STORED": False, b"EXISTS": False, b"NOT_FOUND": None}
_DONE = {b"DELETED": True, b"TOUCHED": True, b"NOT_FOUND": False}


class _Write(NamedTuple):
    """A checked request whose answer is one line."""

    connection: ServerConnection
    verb: str
    request: bytes
    noreply: bool


class AsyncMappedView(View[R, ServerConnection]):
    """The calls on the keys of one mapping; made by `AsyncMappedClient.at`.

    Keys, values, results and errors are those of `kvref.client.MappedView`. Calls that run at the same time share a
    connection and do not wait for each other's answers; the server carries them out in the order in which they began.
    """

    @overload
    async def get(self, key: Key) -> R | None: ...

    @overload
    async def get(self, key: Key, default: D) -> R | D: ...

    async def get(self, key: Key, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        found = await self._value_and_number(b"get", key)
        return default if found is None else found[0]

    @overload
    async def gets(self, key: Key) -> tuple[R, int] | tuple[None, None]: ...

    @overload
    async def gets(self, key: Key, default: D) -> tuple[R, int] | tuple[D, None]: ...

    @overload
    async def gets(self, key: Key, default: D, cas_default: C) -> tuple[R, int] | tuple[D, C]: ...

    async def gets(self, key: Key, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults."""
        return await self._value_and_number(b"gets", key) or (default, cas_default)

    @overload
    async def gat(self, key: Key, expire: int = 0) -> R | None: ...

    @overload
    async def gat(self, key: Key, expire: int, default: D) -> R | D: ...

    async def gat(self, key: Key, expire: int = 0, default: Any = None) -> Any:
        """Return the value of a key, or the default, and set when its row expires, as `MappedView.gat` does."""
        found = await self._value_and_number(b"gat %d" % check_expire(expire), key)
        return default if found is None else found[0]

    @overload
    async def gats(self, key: Key, expire: int = 0) -> tuple[R, int] | tuple[None, None]: ...

    @overload
    async def gats(self, key: Key, expire: int, default: D) -> tuple[R, int] | tuple[D, None]: ...

    @overload
    async def gats(self, key: Key, expire: int, default: D, cas_default: C) -> tuple[R, int] | tuple[D, C]: ...

    async def gats(self, key: Key, expire: int = 0, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults, and set when its row expires, as `gat`."""
        return await self._value_and_number(b"gats %d" % check_expire(expire), key) or (default, cas_default)

    async def get_many(self, keys: Iterable[K]) -> dict[K, R]:
        """Return the values of the keys that exist; one request for each mapping and server."""
        return {key: value for key, value, _ in await self._many("get_many", b"get", keys)}

    async def gets_many(self, keys: Iterable[K]) -> dict[K, tuple[R, int]]:
        """Return the values with their numbers of the keys that exist."""
        return {key: (value, number or 0) for key, value, number in await self._many("gets_many", b"gets", keys)}

    async def get_range(
        self, *, gt: B | None = None, ge: B | None = None, lt: B | None = None, le: B | None = None
    ) -> dict[B, R]:
        """Return the rows whose keys lie between the bounds, as `MappedView.get_range` does."""
        word = range_word(gt, ge, lt, le)
        rows: dict[B, R] = {}
        for connection in self._connections.each(self._mapping):
            with self._ignored("get_range"):
                await connection.require_ranges()
                for item in await _rows(connection, b"get", [word]):
                    rows[key_of_range(item.key, gt, ge, lt, le)] = self._read(item.value)
        return rows

    async def set(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Store a value; False if the table rejects it (the plugins' NOT_STORED).

        Args:
            expire: seconds, up to 30 days, or a Unix time; 0: never.
            noreply: do not wait; whether it was stored stays unknown. The word itself is not sent: a server that
                rejects such a request may reply all the same, and the reply would match no call. The reply is read and
                dropped.
            flags: 0 to 2^32 - 1, 0 by default.
        """
        return await self._stored("set", key, value, expire, noreply, flags)

    async def set_many(
        self, values: Mapping[K, Value | R], expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> list[K]:
        """Store values, all on their way before the first answer is read; return the keys that were not stored."""
        written = self._all_written(values)
        writes = [self._write("set", key, raw, expire, noreply, flags) for key, raw in written.items()]
        stored = await asyncio.gather(*[self._send(write, _STORED) for write in writes])
        return [key for key, done in zip(written, stored, strict=True) if not done]

    async def add(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Store a value under a key that has none; False where it has one."""
        return await self._stored("add", key, value, expire, noreply, flags)

    async def replace(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Store a value under a key that has one; False where it has none."""
        return await self._stored("replace", key, value, expire, noreply, flags)

    async def append(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Append bytes to a value; False without a row. The plugins take flags and expiry from this call."""
        return await self._single("append")._stored("append", key, value, expire, noreply, flags)

    async def prepend(
        self, key: Key, value: Value | R, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool:
        """Add bytes in front of a value, as `append`."""
        return await self._single("prepend")._stored("prepend", key, value, expire, noreply, flags)

    async def cas(
        self, key: Key, value: Value | R, cas: int, expire: int = 0, noreply: bool = False, flags: int | None = None
    ) -> bool | None:
        """Store a value if its row is as `gets` saw it, as `MappedView.cas` does."""
        number = check_cas(cas)
        return await self._send(self._write("cas", key, self._written(value), expire, noreply, flags, number), _STORED)

    async def update(self, key: Key, changes: Mapping[str, Part], expire: int = 0, flags: int | None = None) -> bool:
        """Change some value columns of a row and keep the others, as `MappedView.update` does."""
        checked_changes = check_update(self._columns, changes)
        check_expire(expire)
        check_flags(flags)
        connection, bare = self._connection_of(key)
        with self._ignored("update"):
            for _ in range(MAX_ATTEMPTS):
                item = await _one(connection, b"gets", bare)
                if item is None:
                    return False
                written = self._written({**self._read(item.value), **checked_changes})
                stored = await _execute(self._write("cas", key, written, expire, None, flags, item.cas or 0), _STORED)
                if stored is not False:
                    return stored is True
            raise update_lost(key)
        return False

    async def incr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Add to a number and return the sum, as `MappedView.incr` does."""
        return await self._single("incr")._count("incr", key, value, noreply)

    async def decr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Subtract from a number, not below 0; else as `incr`."""
        return await self._single("decr")._count("decr", key, value, noreply)

    async def delete(self, key: Key, noreply: bool = False) -> bool:
        """Delete a row; False where there was none."""
        return await self._send(self._line("delete", key, noreply), _DONE) is True

    async def delete_many(self, keys: Iterable[Key], noreply: bool = False) -> bool:
        """Delete rows; True, whether they were there or not."""
        check_noreply(noreply)
        writes = [self._line("delete", key, noreply) for key in check_keys(keys)]
        known = dict.fromkeys(_DONE, True)
        return all(await asyncio.gather(*[self._send(write, known) for write in writes]))

    async def touch(self, key: Key, expire: int = 0, noreply: bool = False) -> bool:
        """Set when a row expires; False without a row. Raises UnsupportedError at the plugins.

        Args:
            expire: as for `set`.
            noreply: do not wait; the result is True.
        """
        return await self._send(self._line("touch", key, noreply, check_expire(expire)), _DONE) is True

    async def flush_all(self, delay: int = 0, noreply: bool = False) -> bool:
        """Delete every row of the mapping's table, at once, on every server, as `MappedView.flush_all` does."""
        check_noreply(noreply)
        seconds = check_expire(delay)
        request = b"flush_all %d\r\n" % seconds if seconds else b"flush_all\r\n"
        writes = [_Write(each, "flush_all", request, noreply=False) for each in self._connections.each(self._mapping)]
        return all(await asyncio.gather(*[self._send(write, {b"OK": True}) for write in writes]))

    async def stats(self, *arguments: str) -> dict[bytes, bytes]:
        """Return the rows of `stats` by name.

        Args:
            arguments: of the command, such as "settings".

        Raises:
            CallError: there are several servers.
        """
        return await self._stats(self._only("stats", "stats_of_each"), check_stats(arguments))

    async def stats_of_each(self, *arguments: str) -> list[dict[bytes, bytes]]:
        """Return what `stats` returns, of each server in the order of the constructor."""
        words = check_stats(arguments)
        return list(await asyncio.gather(*[self._stats(each, words) for each in self._connections.each(self._mapping)]))

    async def version(self) -> bytes:
        """Return the server's version, as pymemcache does. Raises CallError if there are several servers."""
        return (await self._only("version", "versions").version()).encode()

    async def versions(self) -> tuple[str, ...]:
        """Return the version of each server in the order of the constructor."""
        return tuple(await asyncio.gather(*[each.version() for each in self._connections.each(self._mapping)]))

    async def raw_command(self, command: str | bytes, end_tokens: str | bytes = "\r\n") -> bytes:
        """Send a command as it is and return the reply up to a token, without the token.

        Do not send `bind` or `@@` words: other calls use the same connection. An error line ends the reply too.

        Args:
            command: without its line end.
            end_tokens: end of the reply, such as "END\\r\\n" of a get.

        Raises:
            CallError: there are several servers, or an empty command or token.
        """
        request, end = check_raw(command, end_tokens)
        connection = self._only("raw_command", "a client of one server")
        verb = request.split()[0].decode("utf-8", "replace")
        return (await connection.request(verb, request + b"\r\n", Shape(end=end))).line

    get_multi = get_many
    gets_multi = gets_many
    set_multi = set_many
    delete_multi = delete_many

    async def _value_and_number(self, verb: bytes, key: object) -> tuple[Any, Any] | None:
        """Return value and number of a key; None without a row."""
        connection, bare = self._connection_of(key)
        with self._ignored(verb.split()[0].decode()):
            item = await _one(connection, verb, bare)
            return None if item is None else (self._read(item.value), item.cas)
        return None

    async def _many(self, call: str, verb: bytes, keys: Iterable[K]) -> list[tuple[K, Any, int | None]]:
        async def read(
            connection: ServerConnection, keys_of: dict[str | bytes, list[K]]
        ) -> list[tuple[K, Any, int | None]]:
            rows: list[tuple[K, Any, int | None]] = []
            named = {as_bytes(bare): each for bare, each in keys_of.items()}
            with self._ignored(call):
                for item in await _rows(connection, verb, list(named)):
                    value = self._read(item.value)
                    rows += [(key, value, item.cas) for key in named[item.key]]
            return rows

        found = await asyncio.gather(*[read(each, keys_of) for each, keys_of in self._connections_of(keys).items()])
        return [row for rows in found for row in rows]

    def _write(
        self, verb: str, key: object, raw: bytes, expire: object, noreply: object, flags: object, *cas: int
    ) -> _Write:
        """Return a storage request. Raises CallError."""
        numbers = check_flags(flags) or 0, check_expire(expire), len(raw)
        without_reply = check_noreply(noreply)
        connection, bare = self._connection_of(key)
        head = b"%s %s %d %d %d" % (verb.encode(), as_bytes(bare), *numbers)
        head += b"".join(b" %d" % each for each in cas)
        return _Write(connection, verb, b"%s\r\n%s\r\n" % (head, raw), bool(without_reply))

    def _line(self, verb: str, key: object, noreply: object, *numbers: int) -> _Write:
        """Return a request of one line. Raises CallError."""
        without_reply = check_noreply(noreply)
        connection, bare = self._connection_of(key)
        words = [verb.encode(), as_bytes(bare), *(b"%d" % each for each in numbers)]
        return _Write(connection, verb, b" ".join(words) + b"\r\n", bool(without_reply))

    async def _stored(self, verb: str, key: object, value: Any, expire: object, noreply: object, flags: object) -> bool:
        return await self._send(self._write(verb, key, self._written(value), expire, noreply, flags), _STORED) is True

    async def _send(self, write: _Write, known: Mapping[bytes, T]) -> T | bool:
        """Send a request and return what its answer means; True without waiting for it, False if it is ignored."""
        with self._ignored(write.verb):
            return await _execute(write, known)
        return False

    async def _count(self, verb: str, key: object, value: object, noreply: object) -> int | None:
        write = self._line(verb, key, noreply, check_integer("value", value, 64))
        with self._ignored(verb):
            if write.noreply:
                await write.connection.send_without_reply(write.request)
                return None
            answer = await write.connection.request(verb, write.request)
            if answer.line == b"NOT_FOUND":
                return None
            # memcached pads the number with blanks.
            if not answer.line.strip().isdigit():
                raise invalid_reply(answer.line, verb)
            return int(answer.line)
        return None

    async def _stats(self, connection: ServerConnection, words: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._ignored("stats"):
            answer = await connection.request("stats", b" ".join([b"stats", *words]) + b"\r\n", STATS)
            if answer.line not in (b"END", b"RESET", b"OK"):
                raise invalid_reply(answer.line, "stats")
            rows = [each.split(b" ", 2) for each in answer.lines]
            return {row[1]: row[2] if len(row) > 2 else b"" for row in rows}
        return {}


async def _rows(connection: ServerConnection, verb: bytes, words: Sequence[bytes]) -> list[Item]:
    if not words:
        return []
    command = verb.split()[0].decode()
    answer = await connection.request(command, b"%s %s\r\n" % (verb, b" ".join(words)), ROWS)
    if answer.line != b"END":
        raise invalid_reply(answer.line, command)
    unexpected = {item.key for item in answer.items} - set(words)
    if unexpected and not words[0].startswith((b"@>", b"@<")):  # a range answers other keys than its word
        raise invalid_reply(b"VALUE " + unexpected.pop(), command)
    return answer.items


async def _one(connection: ServerConnection, verb: bytes, key: str | bytes) -> Item | None:
    return next(iter(await _rows(connection, verb, [as_bytes(key)])), None)


async def _execute(write: _Write, known: Mapping[bytes, T]) -> T | bool:
    """Send a request and return what its answer means; True without waiting for it."""
    if write.noreply:
        await write.connection.send_without_reply(write.request)
        return True
    line = (await write.connection.request(write.verb, write.request)).line
    if line not in known:
        raise invalid_reply(line, write.verb)
    return known[line]
