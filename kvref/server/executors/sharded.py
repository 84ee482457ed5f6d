"""The fast path of a sharded mapping: a plain command is carried out by the fast path of the store that has its key."""

from __future__ import annotations

from collections.abc import Callable

from kvref.engine.mapping import Mapping
from kvref.engine.session import Session
from kvref.protocol.commands import Command, Get
from kvref.protocol.fast_path import PlainLines
from kvref.protocol.replies import Reply
from kvref.server.executors.base import FastPath, Later, LaterParsed, Wait
from kvref.storage.several import Shards


class ShardedFastPath:
    """Carries out gets and sets of one key each for one connection, see `FastPath`.

    Commands that name several keys take the slow path.

    Args:
        session: the connection's.
        mapping: its mapping.
        shards: of the mapping.
        paths: of the shards, in their order.
        lines: how commands are read.
        use: called with the number of a store before its fast path is used.
    """

    def __init__(
        self,
        session: Session,
        mapping: Mapping,
        shards: Shards,
        paths: list[FastPath],
        lines: PlainLines,
        use: Callable[[int], None],
    ) -> None:
        self._session = session
        self._mapping = mapping
        self._shards = shards
        self._paths = paths
        self._lines = lines
        self._use = use
        self._single: tuple[bytes, int | None] = b"", None  # a get that `hit` has not answered, and its shard

    def usable(self, now: float) -> bool:
        """Return whether the fast paths of all shards are usable, see `FastPath`."""
        return all(each.usable(now) for each in self._paths)

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to a single get of a row that its shard's store caches, see `FastPath`."""
        line = self._lines.get.fullmatch(data) or self._lines.get_named.fullmatch(data)
        if line is None:
            return None
        shard = self._shard_of(line[1])
        self._single = data, shard
        return None if shard is None else self._paths[shard].hit(data)

    def take(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:
        """Run the gets and sets of keys of one shard at the beginning of the input, see `FastPath`."""
        shard, at = (self._single[1], len(data)) if self._single[0] is data else self._run(data)
        if shard is None:
            return 0, Wait.NOTHING
        self._use(self._shards.numbers[shard])
        return self._paths[shard].take(data[:at], out, later)

    def answer(self, commands: list[Command], later: LaterParsed) -> tuple[list[Reply], bool] | None:
        """Answer the binary gets of keys of one shard at the beginning of some commands, see `FastPath`."""
        shard, count = None, 0
        for command in commands:
            if isinstance(command, Get):
                of = self._shard_of(command.words[0])
                if of is None or (shard is not None and of != shard):
                    break
                shard = of
            count += 1
        if shard is None:
            return [], True
        self._use(self._shards.numbers[shard])
        return self._paths[shard].answer(commands[:count], later)

    def _run(self, data: bytes) -> tuple[int | None, int]:
        """Return the shard of the first command of the input, None if it is not plain, and where its commands end."""
        shard, at = None, 0
        while at < len(data):
            word, end = self._next(data, at)
            of = None if word is None else self._shard_of(word)
            if of is None or (shard is not None and of != shard):
                break
            shard, at = of, end
        return shard, at

    def _next(self, data: bytes, at: int) -> tuple[bytes | None, int]:
        """Return the word of the plain command at some place of the input and where it ends, None if it is none."""
        lines = self._lines
        line = lines.get.match(data, at) or lines.get_named.match(data, at)
        if line is not None:
            return line[1], line.end()
        line = lines.set.match(data, at) or lines.set_named.match(data, at)
        if line is None:
            return None, at
        end = line.end() + int(line[3]) + len(b"\r\n")
        return (line[1], end) if end <= len(data) else (None, at)

    def _shard_of(self, word: bytes) -> int | None:
        """Return the shard of the key in a word, None where it can have no row, or names another mapping."""
        key: bytes | None = word
        if word.startswith(b"@"):
            key = self._lines.key_behind_name(word, self._session.key_of_bound)
        cell = None if key is None else self._session.looked_up(self._mapping, key)
        return None if cell is None else self._shards.of_key(self._mapping, cell)
