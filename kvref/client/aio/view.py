"""The calls on one mapping's keys, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

from kvref.addresses import Address
from kvref.client.aio.connection import Line
from kvref.client.arguments import Key, as_bytes, check_delta, check_store, range_word, split_word
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
from kvref.client.errors import CallError, unreadable
from kvref.client.options import server_name, server_of
from kvref.client.protocol import ROWS, STATS, Item, Shape

T = TypeVar("T")
_STORED = {b"STORED": True, b"NOT_STORED": False, b"EXISTS": False, b"NOT_FOUND": None}
_DONE = {b"DELETED": True, b"TOUCHED": True, b"NOT_FOUND": False}


class AsyncMappedView:
    """The calls on the keys of one mapping; made by `AsyncMappedClient.at`.

    Keys, values, results and errors are those of `kvref.client.MappedView`. Calls that run at the same time share a
    connection and do not wait for each other's answers; the server carries them out in the order in which they began.
    """

    def __init__(self, lines: Lines, mapping: str | None, columns: ColumnsSpec) -> None:
        self._lines = lines
        self._mapping = mapping
        self._columns = as_columns(columns)

    async def get(self, key: Key, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        item = await self._one(b"get", key)
        return default if item is None else self._read(item.value)

    async def gets(self, key: Key, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults."""
        item = await self._one(b"gets", key)
        return (default, cas_default) if item is None else (self._read(item.value), item.cas)

    async def gat(self, key: Key, expire: int = 0, default: Any = None) -> Any:
        """Return the value of a key, or the default, and set when its row expires, as `MappedView.gat` does."""
        check_store(expire, 0)
        item = await self._one(b"gat %d" % expire, key)
        return default if item is None else self._read(item.value)

    async def gats(self, key: Key, expire: int = 0, default: Any = None, cas_default: Any = None) -> tuple[Any, Any]:
        """Return the value and its number for `cas`, or the defaults, and set when its row expires, as `gat`."""
        check_store(expire, 0)
        item = await self._one(b"gats %d" % expire, key)
        return (default, cas_default) if item is None else (self._read(item.value), item.cas)

    async def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Return the values of the keys that exist; one request for each mapping and server."""
        return {key: self._read(item.value) for key, item in await self._many(b"get", keys)}

    async def gets_many(self, keys: Iterable[Key]) -> dict[Key, tuple[Any, int]]:
        """Return the values with their numbers of the keys that exist."""
        return {key: (self._read(item.value), item.cas or 0) for key, item in await self._many(b"gets", keys)}

    async def get_range(
        self, *, gt: Key | None = None, ge: Key | None = None, lt: Key | None = None, le: Key | None = None
    ) -> dict[Key, Any]:
        """Return the rows whose keys lie between the bounds, as `MappedView.get_range` does."""
        word = range_word(gt, ge, lt, le)
        as_text = not any(isinstance(bound, bytes) for bound in (gt, ge, lt, le))
        rows: dict[Key, Any] = {}
        for line in self._lines.each(self._mapping):
            await line.need_ranges()
            for item in await _rows(line, b"get", [word]):
                key = item.key.decode("utf-8", "surrogateescape") if as_text else item.key
                rows[key] = self._read(item.value)
        return rows

    async def set(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int = 0) -> bool:
        """Store a value; False where the table does not take it (the plugins' NOT_STORED).

        Args:
            expire: seconds, up to 30 days, or a Unix time; 0: never. noreply: do not wait; whether it was stored stays
            unknown. The word itself is not sent: a server that rejects
                such a request may reply all the same, and the reply would match no call. The reply is read and dropped.
            flags: 0 to 2^32 - 1.
        """
        return bool(await self._store("set", key, value, expire, noreply, flags))

    async def set_many(self, values: Values, expire: int = 0, noreply: bool = False, flags: int = 0) -> list[Key]:
        """Store values, all on their way before the first answer is read; return the keys that were not stored."""
        stored = await asyncio.gather(*[self.set(key, value, expire, noreply, flags) for key, value in values.items()])
        return [key for key, done in zip(values, stored, strict=True) if not done]

    async def add(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int = 0) -> bool:
        """Store a value under a key that has none; False where it has one."""
        return bool(await self._store("add", key, value, expire, noreply, flags))

    async def replace(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int = 0) -> bool:
        """Store a value under a key that has one; False where it has none."""
        return bool(await self._store("replace", key, value, expire, noreply, flags))

    async def append(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int = 0) -> bool:
        """Add bytes behind a value; False where there is none. The plugins take flags and expiry from this call."""
        return bool(await self._single("append")._store("append", key, value, expire, noreply, flags))

    async def prepend(self, key: Key, value: Value, expire: int = 0, noreply: bool = False, flags: int = 0) -> bool:
        """Add bytes in front of a value, as `append`."""
        return bool(await self._single("prepend")._store("prepend", key, value, expire, noreply, flags))

    async def cas(
        self, key: Key, value: Value, cas: int, expire: int = 0, noreply: bool = False, flags: int = 0
    ) -> bool | None:
        """Store a value if its row is as `gets` saw it, as `MappedView.cas` does."""
        return await self._store("cas", key, value, expire, noreply, flags, cas)

    async def update(self, key: Key, changes: Mapping[str, Part], expire: int = 0, flags: int = 0) -> bool:
        """Change some value columns of a row and keep the others, as `MappedView.update` does."""
        check_update(self._columns)
        for _ in range(MAX_ATTEMPTS):
            value, number = await self.gets(key)
            if value is None:
                return False
            stored = await self.cas(key, {**value, **changes}, number, expire, flags=flags)
            if stored is not False:
                return stored is True
        raise update_lost(key)

    async def incr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Add to a number and return the sum, as `MappedView.incr` does."""
        return await self._single("incr")._count("incr", key, value, noreply)

    async def decr(self, key: Key, value: int = 1, noreply: bool = False) -> int | None:
        """Subtract from a number, not below 0; else as `incr`."""
        return await self._single("decr")._count("decr", key, value, noreply)

    async def delete(self, key: Key, noreply: bool = False) -> bool:
        """Delete a row; False where there was none."""
        line, bare = self._place(key)
        return await _sent(line, "delete", b"delete %s\r\n" % as_bytes(bare), _DONE, noreply)

    async def delete_many(self, keys: Iterable[Key], noreply: bool = False) -> bool:
        """Delete rows; True, whether they were there or not."""
        await asyncio.gather(*[self.delete(key, noreply) for key in keys])
        return True

    async def touch(self, key: Key, expire: int = 0, noreply: bool = False) -> bool:
        """Set when a row expires; False without a row. Raises UnsupportedError at the plugins.

        Args:
            expire: as for `set`.
            noreply: do not wait; the result is True.
        """
        check_store(expire, 0)
        line, bare = self._place(key)
        return await _sent(line, "touch", b"touch %s %d\r\n" % (as_bytes(bare), expire), _DONE, noreply)

    async def flush_all(self, delay: int = 0) -> bool:
        """Delete every row of the mapping's table, at once, on every server, as `MappedView.flush_all` does."""
        request = b"flush_all %d\r\n" % check_delta(delay) if delay else b"flush_all\r\n"
        lines = self._lines.each(self._mapping)
        answers = await asyncio.gather(*[line.ask("flush_all", request) for line in lines])
        return all(_meaning({b"OK": True}, answer.line, "flush_all") for answer in answers)

    async def stats(self, *arguments: str) -> dict[bytes, bytes]:
        """Return the rows of `stats` by name.

        Args:
            arguments: of the command, such as "settings".

        Raises:
            CallError: there are several servers.
        """
        return await _stats(self._only("stats", "stats_of_each"), arguments)

    async def stats_of_each(self, *arguments: str) -> list[dict[bytes, bytes]]:
        """Return what `stats` returns, of each server in the order of the constructor."""
        return list(await asyncio.gather(*[_stats(line, arguments) for line in self._lines.each(self._mapping)]))

    async def version(self) -> bytes:
        """Return the server's version, as pymemcache does. Raises CallError if there are several servers."""
        return (await self._only("version", "versions").version()).encode()

    async def versions(self) -> tuple[str, ...]:
        """Return the version of each server in the order of the constructor."""
        return tuple(await asyncio.gather(*[line.version() for line in self._lines.each(self._mapping)]))

    async def raw_command(self, command: Key, end_tokens: Key = "\r\n") -> bytes:
        """Send a command as it is and return the reply up to a token, without the token.

        Do not send `bind` or `@@` words: other calls use the same connection. An error line ends the reply too.

        Args:
            command: without its line end.
            end_tokens: end of the reply, such as "END\\r\\n" of a get.

        Raises:
            CallError: there are several servers, or an empty command or token.
        """
        request, end = as_bytes(command), as_bytes(end_tokens)
        if not request.strip() or not end:
            raise CallError("raw_command: a command and the end of its reply are not empty")
        line = self._only("raw_command", "a client of one server")
        verb = request.split()[0].decode("utf-8", "replace")
        return (await line.ask(verb, request + b"\r\n", Shape(end=end))).line

    get_multi = get_many
    gets_multi = gets_many
    set_multi = set_many
    delete_multi = delete_many

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._lines.shown}{shown_mapping(self._mapping, self._columns)})"

    def _only(self, call: str, instead: str) -> Line:
        """Return the connection to the only server. Raises CallError if there are several."""
        lines = self._lines.each(self._mapping)
        if len(lines) > 1:
            raise CallError(f"{call}: there are {len(lines)} servers: use {instead}")
        return lines[0]

    def _place(self, key: Key) -> tuple[Line, Key]:
        name, bare = split_word(key, self._lines.delimiter)
        return self._lines.of(self._mapping if name is None else name, bare), bare

    async def _one(self, verb: bytes, key: Key) -> Item | None:
        line, bare = self._place(key)
        return next(iter(await _rows(line, verb, [bare])), None)

    async def _many(self, verb: bytes, keys: Iterable[Key]) -> list[tuple[Key, Item]]:
        places: dict[Line, dict[bytes, list[Key]]] = {}
        for key in keys:
            line, bare = self._place(key)
            places.setdefault(line, {}).setdefault(as_bytes(bare), []).append(key)
        answers = await asyncio.gather(*[_rows(line, verb, list(named)) for line, named in places.items()])
        found = zip(places.values(), answers, strict=True)
        return [(key, item) for named, items in found for item in items for key in named[item.key]]

    async def _store(
        self, verb: str, key: Key, value: Value, expire: int, noreply: bool, flags: int, cas: int | None = None
    ) -> bool | None:
        check_store(expire, flags, cas)
        line, bare = self._place(key)
        data = (self._columns or Columns()).encode(value)
        number = b"" if cas is None else b" %d" % cas
        head = b"%s %s %d %d %d%s\r\n" % (verb.encode(), as_bytes(bare), flags, expire, len(data), number)
        return await _sent(line, verb, head + data + b"\r\n", _STORED, noreply)

    async def _count(self, verb: str, key: Key, value: int, noreply: bool) -> int | None:
        line, bare = self._place(key)
        request = b"%s %s %d\r\n" % (verb.encode(), as_bytes(bare), check_delta(value))
        if noreply:
            await line.tell(request)
            return None
        answer = await line.ask(verb, request)
        if answer.line == b"NOT_FOUND":
            return None
        # memcached pads the number with blanks.
        if not answer.line.strip().isdigit():
            raise unreadable(answer.line, verb)
        return int(answer.line)

    def _single(self, verb: str) -> Self:
        check_single(verb, self._columns)
        return self

    def _read(self, value: bytes) -> Any:
        return value if self._columns is None else self._columns.decode(value)


class Lines:
    """The connections of each mapping, one to each server, opened when they are first used.

    Args:
        make: gives the line to a server and a mapping; None is the server's default mapping.
        addresses: of the servers.
        delimiter: between mapping and key.
        shown: the servers, for `repr`.
    """

    def __init__(
        self, make: Callable[[Address, str | None], Line], addresses: Sequence[Address], delimiter: str, shown: str
    ) -> None:
        self.delimiter = delimiter
        self.shown = shown
        self._make = make
        self._servers = {server_name(address): address for address in addresses}
        self._names = list(self._servers)
        self._made: dict[tuple[str, str | None], Line] = {}

    def of(self, mapping: str | None, key: Key) -> Line:
        """Return the line of a mapping to the server that has a key."""
        return self._line(server_of(key, self._names), mapping)

    def each(self, mapping: str | None) -> list[Line]:
        """Return the lines of a mapping to all servers."""
        return [self._line(server, mapping) for server in self._names]

    def _line(self, server: str, mapping: str | None) -> Line:
        place = (server, mapping)
        if place not in self._made:
            self._made[place] = self._make(self._servers[server], mapping)
        return self._made[place]

    async def close(self) -> None:
        """Close every connection after the answers that are outstanding."""
        await asyncio.gather(*[line.close() for line in self._made.values()])


async def _stats(line: Line, arguments: Sequence[str]) -> dict[bytes, bytes]:
    request = " ".join(["stats", *arguments]).encode()
    if len(request.split()) != 1 + len(arguments):
        raise CallError(f"stats: {arguments!r}: an argument is one word")
    answer = await line.ask("stats", request + b"\r\n", STATS)
    if answer.line not in (b"END", b"RESET", b"OK"):
        raise unreadable(answer.line, "stats")
    rows = [each.split(b" ", 2) for each in answer.lines]
    return {row[1]: row[2] if len(row) > 2 else b"" for row in rows}


async def _rows(line: Line, verb: bytes, words: Sequence[Key]) -> list[Item]:
    if not words:
        return []
    asked = verb.split()[0].decode()
    sent = [as_bytes(word) for word in words]
    answer = await line.ask(asked, b"%s %s\r\n" % (verb, b" ".join(sent)), ROWS)
    if answer.line != b"END":
        raise unreadable(answer.line, asked)
    strange = {item.key for item in answer.items} - set(sent)
    if strange and not sent[0].startswith((b"@>", b"@<")):  # a range answers other keys than its word
        raise unreadable(b"VALUE " + strange.pop(), asked)
    return answer.items


async def _sent(line: Line, verb: str, request: bytes, known: Mapping[bytes, T], noreply: bool) -> T | bool:
    """Send a request and return what its answer means; True without waiting for it."""
    if noreply:
        await line.tell(request)
        return True
    return _meaning(known, (await line.ask(verb, request)).line, verb)


def _meaning(known: Mapping[bytes, T], line: bytes, verb: str) -> T:
    if line not in known:
        raise unreadable(line, verb)
    return known[line]
