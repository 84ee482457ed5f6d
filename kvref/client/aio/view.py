"""The calls on one mapping's keys, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

from kvref.client.aio.line import Line
from kvref.client.columns import Columns, Value, Values, as_columns
from kvref.client.errors import CallError, unreadable
from kvref.client.replies import Item
from kvref.client.words import Key, as_bytes, check_delta, check_store, range_word, split_word

T = TypeVar("T")
_STORED = {b"STORED": True, b"NOT_STORED": False, b"EXISTS": False, b"NOT_FOUND": None}
_DONE = {b"DELETED": True, b"TOUCHED": True, b"NOT_FOUND": False}


class AsyncMappedView:
    """The calls on the keys of one mapping; made by `AsyncMappedClient.at`.

    Keys, values, results and errors are those of `kvref.client.MappedView`. Calls that run at the same time share a
    connection and do not wait for each other's answers; the server carries them out in the order in which they began.
    """

    def __init__(self, lines: Lines, mapping: str | None, columns: Columns | Sequence[str] | None) -> None:
        self._lines = lines
        self._mapping = mapping
        self._columns = as_columns(columns)

    async def get(self, key: Key, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        line, bare = self._place(key)
        for item in await _rows(line, b"get", [bare]):
            return self._read(item.value)
        return default

    async def gets(self, key: Key) -> tuple[Any, int | None]:
        """Return the value and its number for `cas`, or (None, None)."""
        line, bare = self._place(key)
        for item in await _rows(line, b"gets", [bare]):
            return self._read(item.value), item.cas
        return None, None

    async def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Return the values of the keys that exist; one request for each mapping."""
        return {key: self._read(item.value) for key, item in await self._many(b"get", keys)}

    async def gets_many(self, keys: Iterable[Key]) -> dict[Key, tuple[Any, int]]:
        """Return the values with their numbers of the keys that exist."""
        return {key: (self._read(item.value), item.cas or 0) for key, item in await self._many(b"gets", keys)}

    async def get_range(
        self, *, gt: Key | None = None, ge: Key | None = None, lt: Key | None = None, le: Key | None = None
    ) -> dict[Key, Any]:
        """Return the rows whose keys lie between the bounds, in the order of the key column.

        The keys are text when the bounds are. `MappedView.get_range` describes how 8.0.33 differs.

        Args:
            gt: above this key; ge: from this key on; "" for both: from the first (a text column).
            lt: below this key; le: up to this key.

        Raises:
            UnsupportedError: MySQL before 5.7.3 and memcached, which have no ranges.
        """
        word = range_word(gt, ge, lt, le)
        line = self._line()
        await line.need_ranges()
        as_text = not any(isinstance(bound, bytes) for bound in (gt, ge, lt, le))
        return {
            item.key.decode("utf-8", "surrogateescape") if as_text else item.key: self._read(item.value)
            for item in await _rows(line, b"get", [word])
        }

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

    async def cas(self, key: Key, value: Value, cas: int, expire: int = 0, flags: int = 0) -> bool | None:
        """Store a value if its row is as `gets` saw it; False where it changed, None where it is gone."""
        return await self._store("cas", key, value, expire, noreply=False, flags=flags, cas=cas)

    async def incr(self, key: Key, value: int = 1) -> int | None:
        """Add to a number and return the sum; None without a row, for which 5.6.14 answers any number."""
        return await self._single("incr")._count("incr", key, value)

    async def decr(self, key: Key, value: int = 1) -> int | None:
        """Subtract from a number, not below 0; else as `incr`."""
        return await self._single("decr")._count("decr", key, value)

    async def delete(self, key: Key, noreply: bool = False) -> bool:
        """Delete a row; False where there was none."""
        line, bare = self._place(key)
        request = b"delete %s\r\n" % as_bytes(bare)
        if noreply:
            await line.tell(request)
            return True
        return _meaning(_DONE, (await line.ask("delete", request)).line, "delete")

    async def delete_many(self, keys: Iterable[Key], noreply: bool = False) -> bool:
        """Delete rows; True, whether they were there or not."""
        await asyncio.gather(*[self.delete(key, noreply) for key in keys])
        return True

    async def touch(self, key: Key, expire: int = 0) -> bool:
        """Set when a row expires; False without a row. Raises UnsupportedError at the plugins."""
        check_store(expire, 0)
        line, bare = self._place(key)
        answer = await line.ask("touch", b"touch %s %d\r\n" % (as_bytes(bare), expire))
        return _meaning(_DONE, answer.line, "touch")

    async def flush_all(self) -> bool:
        """Delete every row of the mapping's table, at once."""
        return _meaning({b"OK": True}, (await self._line().ask("flush_all", b"flush_all\r\n")).line, "flush_all")

    async def versions(self) -> tuple[str, ...]:
        """Return what the server says of its version, as `MappedView.versions` does."""
        return (await self._line().version(),)

    def _line(self) -> Line:
        return self._lines.of(self._mapping)

    def _place(self, key: Key) -> tuple[Line, Key]:
        name, bare = split_word(key, self._lines.delimiter)
        return (self._line() if name is None else self._lines.of(name)), bare

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
        request = head + data + b"\r\n"
        if noreply:
            await line.tell(request)
            return True
        return _meaning(_STORED, (await line.ask(verb, request)).line, verb)

    async def _count(self, verb: str, key: Key, value: int) -> int | None:
        line, bare = self._place(key)
        answer = await line.ask(verb, b"%s %s %d\r\n" % (verb.encode(), as_bytes(bare), check_delta(value)))
        if answer.line == b"NOT_FOUND":
            return None
        # memcached pads the number with blanks.
        if not answer.line.strip().isdigit():
            raise unreadable(answer.line, verb)
        return int(answer.line)

    def _single(self, verb: str) -> Self:
        if self._columns is not None:
            raise CallError(f"{verb} of several columns: a plugin would keep the first and set the others to NULL")
        return self

    def _read(self, value: bytes) -> Any:
        return value if self._columns is None else self._columns.decode(value)


class Lines:
    """The connection of each mapping, opened when it is first used.

    Args:
        make: gives the line of a mapping; None is the server's default mapping.
        delimiter: between mapping and key.
    """

    def __init__(self, make: Callable[[str | None], Line], delimiter: str) -> None:
        self.delimiter = delimiter
        self._make = make
        self._made: dict[str | None, Line] = {}

    def of(self, name: str | None) -> Line:
        """Return the line of a mapping."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    async def close(self) -> None:
        """Close every connection after the answers that are outstanding."""
        await asyncio.gather(*[line.close() for line in self._made.values()])


async def _rows(line: Line, verb: bytes, words: Sequence[Key]) -> list[Item]:
    if not words:
        return []
    asked = verb.decode()
    sent = [as_bytes(word) for word in words]
    answer = await line.ask(asked, b"%s %s\r\n" % (verb, b" ".join(sent)), rows=True)
    if answer.line != b"END":
        raise unreadable(answer.line, asked)
    strange = {item.key for item in answer.items} - set(sent)
    if strange and not sent[0].startswith((b"@>", b"@<")):  # a range answers other keys than its word
        raise unreadable(b"VALUE " + strange.pop(), asked)
    return answer.items


def _meaning(known: Mapping[bytes, T], line: bytes, verb: str) -> T:
    if line not in known:
        raise unreadable(line, verb)
    return known[line]
