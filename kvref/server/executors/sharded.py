"""The fast path of a sharded mapping: a plain command is carried out by the fast path of the store that has its key.

The keys of a get may be in several stores: all of them look up theirs at the same time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import partial

from kvref.engine.counters import Counters
from kvref.engine.mapping import Mapping
from kvref.engine.session import Session
from kvref.protocol.commands import Store
from kvref.protocol.fast_path import END, PlainLines
from kvref.protocol.opcodes import NOOP
from kvref.protocol.plain_frames import PlainFrame
from kvref.protocol.replies import ServerError
from kvref.server.executors.base import Later, LaterFrames, PartOfGet, StoreFastPath, Wait
from kvref.server.executors.loop_turn import LoopTurn
from kvref.server.executors.runs import MAX_RUN, MAX_VALUES, MAX_WORDS, TURN, Run, nothing, reply_alone
from kvref.storage.several import Shards


class _Get:
    """A get whose keys are in several shards.

    Args:
        data, left, answered: see `InRun`.
        parts: one for each shard, with its fast path and the places of its keys in the get, in ascending order.
        words: how many keys it has.
        counters: count them.
    """

    __slots__ = ("_counters", "_parts", "_waiting", "answered", "data", "left", "words")

    def __init__(
        self, data: bytes, parts: list[tuple[PartOfGet, StoreFastPath, list[int]]], words: int, counters: Counters
    ) -> None:
        self.data = data
        self.answered: Callable[[], None] = nothing
        self._parts = parts
        self.words = words
        self._counters = counters
        self._waiting = sum([part.waits is Wait.ANSWER for part, _, _ in parts])
        self.left = not self._waiting and self.size > MAX_VALUES

    @property
    def size(self) -> int:
        """Return how many bytes the values have, at most, without those that are not there yet."""
        return sum([part.size for part, _, _ in self._parts if part.waits is not Wait.ANSWER])

    def look_up(self) -> None:
        """Let all shards look up their keys."""
        if not self._waiting:
            self.answered()
        for part, path, _ in self._parts:
            if part.waits is Wait.ANSWER:
                part.answered = self._answered
                path.look_up(part)

    def replies(self) -> list[bytes | ServerError]:
        """See `InRun`; of several errors, that of the first key is the reply, and the keys in front of it count."""
        errors = [(places[0], part.error) for part, _, places in self._parts if part.error is not None]
        if not errors:
            return [self.reply(self.words)]
        place, error = min(errors, key=lambda each: each[0])
        self.reply(place)
        return [error]

    def reply(self, count: int) -> bytes:
        """Return the reply to a get of the first keys, of which each has an answer, and count them."""
        shown = [b""] * count
        for part, _, places in self._parts:
            before = bisect_left(places, count)
            if before:
                for place, item in zip(places, part.shown(before), strict=False):
                    shown[place] = item
        misses = shown.count(b"")
        self._counters.looked_up(count - misses, misses)
        return b"".join([*shown, END])

    def _answered(self) -> None:
        self._waiting -= 1
        if self._waiting:
            return
        parts = [part for part, _, _ in self._parts]
        self.left = any(part.left for part in parts)
        if not self.left and all(part.error is None for part in parts):
            self.left = sum([part.size for part in parts]) > MAX_VALUES
        self.answered()


class ShardedFastPath:
    """Carries out gets, and sets of one key each, for one connection, see `FastPath`.

    Args:
        session: the connection's.
        mapping: its mapping.
        shards: of the mapping.
        paths: of the shards, in their order.
        lines: how commands are read.
        use: called with the number of a store before its fast path is used.
        shows: called with the numbers of stores whose rows a reply shows, and that must wait for their commits.
    """

    def __init__(
        self,
        session: Session,
        mapping: Mapping,
        shards: Shards,
        paths: list[StoreFastPath],
        lines: PlainLines,
        use: Callable[[int], None],
        shows: Callable[[Iterable[int]], None],
    ) -> None:
        self._session = session
        self._mapping = mapping
        self._shards = shards
        self._paths = paths
        self._lines = lines
        self._use = use
        self._shows = shows
        self._single: tuple[bytes, int | None] = b"", None  # a get that `hit` has not answered, and its shard

    def usable(self, now: float) -> bool:
        """Return whether the fast paths of all shards are usable, see `FastPath`."""
        return all(each.usable(now) for each in self._paths)

    def hit(self, data: bytes, loop_turn: LoopTurn | None) -> bytes | None:
        """Return the reply to a single get of a row that its shard's store caches, see `FastPath`."""
        line = self._lines.get.fullmatch(data) or self._lines.get_named.fullmatch(data)
        if line is None:
            return None
        shard = self._shard_of(line[1])
        self._single = data, shard
        return None if shard is None else self._paths[shard].hit(data, loop_turn)

    @property
    def frames_set(self) -> bool:
        """See `FastPath`."""
        return all(each.frames_set for each in self._paths)

    def take_frames(self, frames: list[PlainFrame], out: list[bytes], later: LaterFrames) -> tuple[int, Wait]:
        """Run the commands of one shard at the beginning of some, see `FastPath`."""
        shard, count = None, 0
        for frame in frames:
            if isinstance(frame, Store) or frame.opcode != NOOP:
                of = self._shard_of(frame.word if isinstance(frame, Store) else frame.key)
                if of is None or (shard is not None and of != shard):
                    break
                shard = of
            count += 1
        if shard is None:
            return 0, Wait.NOTHING
        self._use(self._shards.numbers[shard])
        return self._paths[shard].take_frames(frames[:count], out, later)

    def take(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:
        """Run the commands of one shard, or the gets of several, at the beginning of the input, see `FastPath`."""
        shard, at, gets = (self._single[1], len(data), True) if self._single[0] is data else self._run(data)
        if shard is None or (gets and self._lines.getting.match(data, at) is not None):
            taken, wait = self._take_gets(data, out, later)
            if taken or shard is None:
                return taken, wait
        self._use(self._shards.numbers[shard])
        return self._paths[shard].take(data[:at], out, later)

    def _take_gets(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:
        """Run the gets at the beginning of the input."""
        gets: list[_Get] = []
        waits: set[Wait] = set()
        at = words = size = 0
        while len(gets) < MAX_RUN and words < MAX_WORDS and size < TURN:
            get, of = self._get(data, at)
            # Replies that come later wait for no commit.
            if get is None or get.left or waits | of.keys() >= {Wait.ANSWER, Wait.COMMIT}:
                break
            gets.append(get)
            waits |= of.keys()
            self._shows(of.get(Wait.COMMIT, ()))
            at += len(get.data)
            words += get.data.count(b" ")
            size += get.size
        if Wait.ANSWER not in waits:
            out += [get.reply(get.words) for get in gets]
            return at, Wait.COMMIT if Wait.COMMIT in waits else Wait.NOTHING
        if len(gets) == 1:
            gets[0].answered = partial(reply_alone, gets[0], later)
        else:
            Run(gets, later)
        for get in gets:
            get.look_up()
        return at, Wait.ANSWER

    def _get(self, data: bytes, at: int) -> tuple[_Get | None, dict[Wait, list[int]]]:
        """Return the get at some place of the input, None if the slow path must run it.

        Also return the numbers of its stores by what it waits for there.
        """
        line = self._lines.getting.match(data, at)
        words = [] if line is None else line[2].split(b" ")
        if line is None or len(words) > MAX_WORDS:
            return None, {}
        places: dict[int, list[int]] = {}
        for place, word in enumerate(words):
            # Of several words one that names a mapping may decide about those behind it.
            shard = None if word.startswith(b"@") else self._shard_of(word)
            if shard is None:
                return None, {}
            places.setdefault(shard, []).append(place)
        parts, waits = [], dict[Wait, list[int]]()
        for shard, of in places.items():
            path = self._paths[shard]
            part = path.part_of_get([words[place] for place in of], with_cas=line[1] == b"gets")
            if part is None:
                return None, {}
            parts.append((part, path, of))
            waits.setdefault(part.waits, []).append(self._shards.numbers[shard])
        return _Get(line[0], parts, len(words), self._session.shared.counters), waits

    def _run(self, data: bytes) -> tuple[int | None, int, bool]:
        """Return the shard of the first command of the input, None if it is not plain.

        Also return where its commands end, and whether they are gets.
        """
        shard, at, gets = None, 0, True
        while at < len(data):
            word, end = self._next(data, at)
            of = None if word is None else self._shard_of(word)
            if of is None or (shard is not None and of != shard):
                break
            gets = gets and data.startswith(b"get ", at)
            shard, at = of, end
        return shard, at, gets

    def _next(self, data: bytes, at: int) -> tuple[bytes | None, int]:
        """Return the word of the plain command at some place of the input and where it ends, None if it is none."""
        lines = self._lines
        line = lines.get.match(data, at) or lines.get_named.match(data, at)
        if line is not None:
            return line[1], line.end()
        line = lines.deleting.match(data, at)
        if line is not None:
            return line[1], line.end()
        line = lines.storing.match(data, at)
        if line is None:
            return None, at
        end = line.end() + int(line[5]) + len(b"\r\n")
        return (line[2], end) if end <= len(data) else (None, at)

    def _shard_of(self, word: bytes) -> int | None:
        """Return the shard of the key in a word, None where it can have no row, or names another mapping."""
        key: bytes | None = word
        if word.startswith(b"@"):
            key = self._lines.key_behind_name(word, self._session.key_of_bound)
        cell = None if key is None else self._session.looked_up(self._mapping, key)
        return None if cell is None else self._shards.of_key(self._mapping, cell)
