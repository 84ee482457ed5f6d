"""The fast path over a database server: sequences of gets, simple sets or deletes are queued for common statements.

All other commands use the slow path, also those that common statements cannot answer. The rules of commands are in
`engine/fast_path.py`, the grammar of lines in `protocol/fast_path.py`, the reply to a command in `plain_commands.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from kvref.engine import mapping as m
from kvref.engine.fast_path import DELETE, GET, SET
from kvref.engine.operations import Cell, Row
from kvref.engine.values import RefusedError
from kvref.protocol import commands as c
from kvref.protocol.fast_path import END, PlainLines
from kvref.protocol.opcodes import NOOP
from kvref.protocol.plain_frames import PlainFrame
from kvref.protocol.rules import MAX_KEY
from kvref.server.executors.base import Later, LaterFrames, Wait
from kvref.server.executors.loop_turn import LoopTurn
from kvref.server.executors.mysql.plain_commands import (
    FramedGets,
    FramedReads,
    FramedWrite,
    Origin,
    PlainBurst,
    PlainChange,
    PlainDelete,
    PlainGet,
    PlainGets,
    PlainInRun,
    PlainLone,
    PlainRead,
    PlainReads,
    PlainWrite,
    goes_behind,
)
from kvref.server.executors.runs import MAX_RUN, MAX_WORDS, TURN, Run, reply_alone
from kvref.storage.mysql.fast_path import PlainRemovals, PlainTable
from kvref.storage.mysql.replicas import LastWrite
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.rows import MAX_VALUE


class KeptRows(Protocol):
    """Answers gets from rows that are kept, without a query."""

    def hit(self, table: PlainTable, word: bytes, loop_turn: LoopTurn | None) -> bytes | None:
        """Return what a get replies, without END; None if it is not known; `loop_turn`: see `FastPath.hit`."""

    def hits(self, table: PlainTable, words: list[bytes]) -> list[bytes] | None:
        """Return what a get of several words replies to each; None if it is not known of all."""

    def hit_rows(self, mapping: m.Mapping, keys: list[Spelling]) -> list[Row] | None:
        """Return the rows of some keys; None if they are not known of all."""


class PlainBatcher(Protocol):
    """Queues plain commands for common statements."""

    @property
    def kept(self) -> KeptRows | None:
        """Return the rows that are kept as long as the settings stay, None if none are."""

    @property
    def up_to_date(self) -> Callable[[float], bool]:
        """Return what says whether plain commands may be taken at some loop time: the tables were looked at."""

    def table(self, mapping: m.Mapping) -> PlainTable:
        """Return the table of a mapping, as long as its version is live."""

    def spelling(self, mapping: m.Mapping, key: Cell) -> Spelling | None:
        """Return the identity of a key; None if only the server can compare it with others."""

    def takes_reads(self, mapping: m.Mapping) -> bool:
        """Return whether simple gets are batched."""

    def takes_writes(self, mapping: m.Mapping) -> bool:
        """Return whether simple sets are batched."""

    def add_get(self, mapping: m.Mapping, get: PlainGet) -> None:
        """Queue a get."""

    def add_read(self, table: PlainTable, read: PlainLone | PlainRead | PlainReads) -> None:
        """Queue a get of a plain word, or of several."""

    def together(self, table: PlainTable) -> int:
        """Return how many words one `PlainReads` may have."""

    def add_write(self, table: PlainTable | PlainRemovals, write: PlainChange) -> None:
        """Queue a set or a delete."""


class MySQLFastPath:
    """Carries out plain commands on one mapping, see `FastPath`.

    Args:
        origin: whose they are.
        lines: how they are read.
        batcher: queues them.
    """

    def __init__(self, origin: Origin, lines: PlainLines, batcher: PlainBatcher) -> None:
        self._origin = origin
        self._verbs = verbs = origin.verbs
        self._counters = verbs.counters
        self._lines = lines
        self._mapping = verbs.mapping
        self._directory = verbs.shared.directory
        self._generation = self._directory.generation
        self._batcher = batcher
        self._up_to_date = batcher.up_to_date
        self._table: PlainTable | None = None
        self._takes_all = lines.takes(b"k" * MAX_KEY, MAX_VALUE)
        self._may_get, self._may_set, self._may_delete = verbs.runs(GET), verbs.runs(SET), verbs.runs(DELETE)
        self._kept = batcher.kept if self._may_get else None

    @property
    def live(self) -> bool:
        """Return whether the mapping is still in force."""
        return self._directory.generation == self._generation and not self._mapping.fault

    def of(self, last_write: LastWrite) -> MySQLFastPath:
        """Return the same for one connection alone, whose commands name its last write."""
        return MySQLFastPath(Origin(self._verbs, last_write), self._lines, self._batcher)

    def usable(self, now: float) -> bool:
        """See `FastPath`."""
        return self.live and self._verbs.unobserved and self._up_to_date(now)

    def hit(self, data: bytes, loop_turn: LoopTurn | None) -> bytes | None:
        """Return the reply to a get of kept rows that may be used without a query; None for other input."""
        table, kept = self._table, self._kept
        if kept is None or table is None or not table.version.live or len(data) <= 6:
            return None
        if data[:4] != b"get " or data[-2:] != b"\r\n":
            return None
        words = data[4:-2]
        shown = kept.hit(table, words, loop_turn)
        if shown is not None:
            self._counters.found()
            self._verbs.accesses.fetched(words)  # at the time of the last tick
            return shown + END
        return self._shown(kept, table, data) if b" " in words else None

    def _shown(self, kept: KeptRows, table: PlainTable, data: bytes) -> bytes | None:
        """Return the reply to a get of several words that are kept; None for other input."""
        line = self._lines.getting.fullmatch(data)
        if line is None or line[1] != b"get":
            return None
        found = self._of_kept(kept, table, line[2].split(b" "))
        return None if found is None else b"".join(found) + END

    def _take_kept(self, kept: KeptRows, table: PlainTable, data: bytes, out: list[bytes]) -> int:
        """Answer gets of one word each at the beginning of some input if all are kept; return their bytes."""
        line = self._lines.gets_of_one.match(data)
        found = None if line is None else self._of_kept(kept, table, self._lines.get.findall(line[0]))
        if line is None or found is None:
            return 0
        out += [shown + END for shown in found]
        return line.end()

    def _of_kept(self, kept: KeptRows, table: PlainTable, words: list[bytes]) -> list[bytes] | None:
        """Return what gets reply to words that are all kept, and count them."""
        if len(words) > MAX_WORDS:
            return None
        found = kept.hits(table, words)
        if found is None or sum(map(len, found)) > TURN:
            return None
        self._counters.looked_up(len(found), 0)
        self._verbs.fetched_all(words, time.time())
        return found

    @property
    def frames_set(self) -> bool:
        """See `FastPath`."""
        return self._may_set

    def take_frames(self, frames: list[PlainFrame], out: list[bytes], later: LaterFrames) -> tuple[int, Wait]:
        """Queue binary sets or gets at the beginning of some commands, or answer gets of kept rows, see `FastPath`."""
        if frames and isinstance(frames[0], c.Store):
            return self._take_stores(frames, later)
        if not self._takes_gets:
            return 0, Wait.NOTHING
        reads, keys = self._reads(frames)
        if not keys:
            return 0, Wait.NOTHING
        table = self._live_table()
        if self._kept is not None:
            found = self._kept_rows(self._kept, keys)
            if found is not None:
                rest = iter(found)
                rows = [None if each.opcode == NOOP else next(rest) for each in reads]
                out += self._verbs.frames(reads, rows, int(time.time()))
                return len(reads), Wait.NOTHING
        elif table.whole and all(map(table.takes_word, keys)) and len(keys) <= self._batcher.together(table):
            self._batcher.add_read(table, FramedReads(self._origin, reads, keys, later))
            return len(reads), Wait.ANSWER
        lookups: list[PlainGet] = []
        for number, read in enumerate(reads):
            if read.opcode == NOOP:
                continue
            lookup = self._any_lookup(read.key, keys[len(lookups)], b"", with_cas=True)
            if lookup is None:
                reads = reads[:number]
                break
            lookups.append(lookup)
        if not lookups:
            return 0, Wait.NOTHING
        FramedGets(self._verbs, reads, lookups, later)
        for each in lookups:
            self._look_up(table, each)
        return len(reads), Wait.ANSWER

    def _take_stores(self, frames: list[PlainFrame], later: LaterFrames) -> tuple[int, Wait]:
        """Queue the sets at the beginning of some commands."""
        table, writes = self._live_table(), dict[bytes, FramedWrite]()
        for frame in frames if self._takes_sets(table) else ():
            write = self._framed_set(table, frame) if isinstance(frame, c.Store) else None
            if write is None or not goes_behind(write, writes):
                break
        if not writes:
            return 0, Wait.NOTHING
        count = len(writes)
        Run([*writes.values()], lambda replies, _: later(replies, count))
        for each in writes.values():
            self._batcher.add_write(table, each)
        return count, Wait.ANSWER

    def _reads(self, frames: list[PlainFrame]) -> tuple[list[c.Frame], list[bytes]]:
        """Return the gets and noops at the beginning of some commands, and the key of each get."""
        reads: list[c.Frame] = []
        keys: list[bytes] = []
        for frame in frames:
            if isinstance(frame, c.Store):
                break
            if frame.opcode != NOOP:
                key = self._lines.key_in(frame.key, self._verbs.key_of_bound)
                if key is None:
                    break
                keys.append(key)
            reads.append(frame)
        return reads, keys

    def _kept_rows(self, kept: KeptRows, keys: list[bytes]) -> list[Row] | None:
        """Return the rows of keys that are all kept and may be used without a query; None for other keys."""
        spellings: list[Spelling] = []
        for key in keys:
            cell = self._verbs.looked_up(key)
            spelling = None if cell is None else self._batcher.spelling(self._mapping, cell)
            if spelling is None:
                return None
            spellings.append(spelling)
        return kept.hit_rows(self._mapping, spellings)

    def take(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:
        """Queue the plain commands of one kind at the beginning of some input, see `FastPath`."""
        table = self._live_table()
        gets = data.startswith((b"get ", b"gets "))
        if gets and not self._takes_gets:
            return 0, Wait.NOTHING
        if gets and self._kept is not None and (size := self._take_kept(self._kept, table, data, out)):
            return size, Wait.NOTHING
        word, name = self._only(data) if gets else (b"", b"")
        if word and table.takes_word(word):
            self._batcher.add_read(table, PlainLone(self._origin, word, data, name, later))
            return len(data), Wait.ANSWER
        taken = self._gets(table, data) if gets else self._writes(table, data)
        if not taken:
            return 0, Wait.NOTHING
        size = sum([len(each.data) for each in taken])
        written = table.removals if isinstance(taken[0], PlainDelete) else table
        if len(taken) == 1:
            taken[0].answered = partial(reply_alone, taken[0], later)
        else:
            Run(taken, later)
        for each in taken:
            if isinstance(each, PlainChange):
                self._batcher.add_write(written, each)
            else:
                self._look_up(table, each)
        return size, Wait.ANSWER

    @property
    def _takes_gets(self) -> bool:
        return self._may_get and self._batcher.takes_reads(self._mapping)

    def _live_table(self) -> PlainTable:
        table = self._table
        if table is None or not table.version.live:
            table = self._table = self._batcher.table(self._mapping)
        return table

    def _only(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the plain key of a get that is all of some input, and the name in front of it; empty for others."""
        line = self._lines.get.fullmatch(data)
        if line is not None:
            return line[1], b""
        line = self._lines.get_named.fullmatch(data)
        key = None if line is None else self._key(line[1])
        return (b"", b"") if line is None or key is None else (key, line[1].removesuffix(key))

    def _key(self, word: bytes) -> bytes | None:
        """Return the plain key in a word that may name the mapping; None if the slow path must read the word."""
        if not word.startswith(b"@"):
            return word
        return self._lines.key_behind_name(word, self._verbs.key_of_bound)

    def _look_up(self, table: PlainTable, get: PlainInRun) -> None:
        """Queue a get."""
        if isinstance(get, PlainGets):
            for each in get.lookups:
                self._look_up(table, each)
        elif isinstance(get, PlainGet):
            self._batcher.add_get(self._mapping, get)
        else:
            assert isinstance(get, (PlainRead, PlainReads))
            self._batcher.add_read(table, get)

    def _gets(self, table: PlainTable, data: bytes) -> list[PlainInRun]:
        """Return the gets at the beginning of some input."""
        found: list[PlainInRun] = []
        at = count = words = 0
        while count < MAX_RUN and words < MAX_WORDS:
            gets: list[PlainInRun]
            line = self._lines.gets_of_one.match(data, at)
            if line is not None:
                gets = self._burst(table, line[0])
                lines = line[0].count(b"\n")
                count += lines
                words += lines
            else:
                line = self._lines.getting.match(data, at)
                if line is None:
                    break
                gets = self._several(table, line[2].split(b" "), line[0], with_cas=line[1] == b"gets")
                count += 1
                words += line[0].count(b" ")
            found += gets
            at += sum([len(each.data) for each in gets])
            if at < line.end():
                break
        return found

    def _burst(self, table: PlainTable, data: bytes) -> list[PlainInRun]:
        """Return gets of one word each, up to the first that the slow path must run."""
        words = self._lines.get.findall(data)
        together = 1 < len(words) <= self._batcher.together(table)
        if together and table.readable and max(map(len, words)) <= table.longest_key and data.isascii():
            return [PlainBurst(self._origin, data, words)]
        gets: list[PlainInRun] = []
        for word in words:
            get = self._lookup(table, word, word, b"get %b\r\n" % word, with_cas=False)
            if get is None:
                break
            gets.append(get)
        return gets

    def _several(self, table: PlainTable, words: list[bytes], data: bytes, *, with_cas: bool) -> list[PlainInRun]:
        """Return a get of any words, none where the slow path must run it."""
        if len(words) > MAX_WORDS:
            return []
        plain = table.readable and not with_cas and b"@" not in data and data.isascii()
        if plain and len(words) <= self._batcher.together(table) and max(map(len, words)) <= table.longest_key:
            return [PlainReads(self._origin, data, words)]
        lookups = []
        for word in words:
            # Of several words one that names a mapping may decide about those behind it.
            key = None if len(words) > 1 and word.startswith(b"@") else self._key(word)
            lookup = None if key is None else self._lookup(table, word, key, b"", with_cas=with_cas)
            if lookup is None:
                return []
            lookups.append(lookup)
        return [PlainGets(self._origin, data, lookups)]

    def _lookup(
        self, table: PlainTable, word: bytes, key: bytes, data: bytes, *, with_cas: bool
    ) -> PlainRead | PlainGet | None:
        """Return the get of one key.

        Args:
            table: of the mapping.
            word: as the reply shows it.
            key: what is looked up.
            data: see `Plain`.
            with_cas: it is a gets.
        """
        if not with_cas and table.takes_word(key):
            return PlainRead(self._origin, key, data, word.removesuffix(key))
        return self._any_lookup(word, key, data, with_cas=with_cas)

    def _any_lookup(self, word: bytes, key: bytes, data: bytes, *, with_cas: bool) -> PlainGet | None:
        """Return the get of one key, see `_lookup`, also of a key that is no plain word."""
        try:
            cell = self._verbs.looked_up(key)
        except RefusedError:
            return None
        spelling = None if cell is None else self._batcher.spelling(self._mapping, cell)
        return None if spelling is None else PlainGet(self._origin, word, data, cell, spelling, with_cas=with_cas)

    def _writes(self, table: PlainTable, data: bytes) -> list[PlainInRun]:
        """Return the sets, or the deletes, at the beginning of some input, each of another word."""
        found: dict[bytes, PlainChange] = {}
        deletes = data.startswith(b"delete ")
        takes = self._takes_deletes(table) if deletes else self._takes_sets(table)
        at, end = 0, len(data) if takes else 0
        while at < end:
            write = self._delete(table, data, at) if deletes else self._set(table, data, at)
            if write is None or not goes_behind(write, found):
                break
            at += len(write.data)
        return [*found.values()]

    def _takes_deletes(self, table: PlainTable) -> bool:
        return table.removable and self._may_delete and self._batcher.takes_writes(self._mapping)

    def _delete(self, table: PlainTable, data: bytes, at: int) -> PlainDelete | None:
        """Return the delete at some place of the input, None if the slow path must run what is there."""
        line = self._lines.deleting.match(data, at)
        if line is None:
            return None
        word = line[1]
        key = None if word.startswith(b"@") and not self._verbs.all_switch else self._key(word)
        if key is None or not table.takes_word(key):
            return None
        return PlainDelete(self._origin, key, line[0], c.Delete(word, line[2] is not None))

    def _takes_sets(self, table: PlainTable) -> bool:
        return table.writable and self._may_set and self._batcher.takes_writes(self._mapping)

    def _set(self, table: PlainTable, data: bytes, at: int) -> PlainWrite | None:
        """Return the set at some place of the input, None if the slow path must run what is there."""
        head = self._lines.storing.match(data, at)
        if head is None or head[1] != b"set":
            return None
        start, word, flags, exptime = head.end(), head[2], int(head[3]), int(head[4])
        end = start + int(head[5])
        key = self._key(word)
        if key is None or data[end : end + 2] != b"\r\n":
            return None
        value = data[start:end]
        timed = c.Store("set", word, flags, exptime, value) if exptime else None
        written = self._written(table, word, key, value, timed)
        if written is None:
            return None
        cells, expiry = written
        return PlainWrite(self._origin, key, data[at : end + 2], cells, flags, expiry, noreply=head[6] is not None)

    def _framed_set(self, table: PlainTable, command: c.Store) -> FramedWrite | None:
        """Return a set of the binary protocol, None if the slow path must run the command."""
        key = None if command.verb != "set" else self._lines.key_in(command.word, self._verbs.key_of_bound)
        if key is None:
            return None
        timed = command if command.exptime else None
        written = self._written(table, command.word, key, command.data, timed)
        return None if written is None else FramedWrite(self._origin, key, command, *written)

    def _written(
        self, table: PlainTable, word: bytes, key: bytes, value: bytes, timed: c.Store | None
    ) -> tuple[tuple[Cell, Cell], int | None] | None:
        """Return what a set writes: key and value, and the expiry; None if the slow path must run it.

        Args:
            table: of the mapping.
            word: as the client sent it.
            key: in the word.
            value: the data.
            timed: the set, if it has an expiry time.
        """
        size = len(value)
        if size > MAX_VALUE or not (self._takes_all or self._lines.takes(word, size)):
            return None
        if len(key) > table.longest_key or not key.isascii() or (table.text and not value.isascii()):
            return None
        verbs = self._verbs
        try:
            expiry = None if timed is None else verbs.expiry(timed, int(time.time()))
            return (verbs.key(key), verbs.value(value)), expiry
        except RefusedError:
            return None
