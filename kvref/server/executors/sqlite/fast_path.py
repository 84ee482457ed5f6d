"""The fast path over SQLite for common commands of ordinary rows: gets and sets of both protocols, other text commands.

The parser, the verbs and the executor handle everything else. The rules of commands are in `engine/fast_path.py`, the
grammar of lines in `protocol/fast_path.py`, and the conditions on a table and its rows in
`storage/sqlite/fast_path.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from kvref.engine.accesses import Change
from kvref.engine.fast_path import DELETE, GET, SET, PlainVerbs
from kvref.engine.operations import Row
from kvref.engine.plans.plan import ABSENT, EXPIRY, HIT, ROWID, CachedRow
from kvref.engine.values import RefusedError
from kvref.engine.verbs import arithmetic
from kvref.errors import KvrefError
from kvref.protocol import commands as c
from kvref.protocol.codec import encode
from kvref.protocol.command_table import needs, text_form
from kvref.protocol.fast_path import END, STORED, PlainLines, data_of, renamed
from kvref.protocol.opcodes import NOOP
from kvref.protocol.plain_frames import PlainFrame
from kvref.protocol.replies import Number, Reply, Status
from kvref.protocol.rules import MAX_KEY, WireRules
from kvref.protocol.text import parse_line
from kvref.server.executors.base import Later, LaterFrames, Wait
from kvref.server.executors.loop_turn import LoopTurn
from kvref.server.executors.runs import TURN
from kvref.storage.rows import MAX_VALUE
from kvref.storage.sqlite.fast_path import PlainRows
from kvref.storage.sqlite.row_cache import CachedTable
from kvref.storage.sqlite.store import SQLiteStore

ANSWER_BYTES: Final = 256 << 10  # for one get

# The end of the command in the input, its reply, whether that waits for a commit; None: the slow path runs it.
_Taken = tuple[int, bytes, bool] | None
_Take = Callable[[bytes, int], _Taken]
# Any of these commands, for rules that depend on no row.
_META_GET: Final = c.MetaGet(b"", [])
_SUM: Final = c.Arithmetic(increment=True, word=b"", delta=0)
# A word, the key in it, and what is kept of its row.
_Found = tuple[bytes, bytes, CachedRow]


class SQLiteFastPath:
    """Run simple commands on one mapping, for all connections that are bound to it alike.

    Args:
        store: the store of the file.
        table: cached rows of the mapping.
        verbs: rules of the commands.
        wire_rules: grammar facts of the profile.
        usable: see `FastPath`: returns whether the cached rows are valid.
        queued: returns whether other writes wait for the file; they run first.
    """

    def __init__(
        self,
        store: SQLiteStore,
        table: CachedTable,
        verbs: PlainVerbs,
        wire_rules: WireRules,
        usable: Callable[[float], bool],
        queued: Callable[[], bool],
    ) -> None:
        self.usable = usable
        self._rows = PlainRows(store, table, verbs)
        self._table = table
        self._items = table.items
        self._missing = table.missing
        self._file = store
        self._verbs = verbs
        self._counters = verbs.counters
        self._accesses = verbs.accesses
        self._wire_rules = wire_rules
        self._lines = lines = PlainLines(wire_rules)
        self._set_head = lines.set.match
        self._queued = queued
        self._takes_all = lines.takes(b"k" * MAX_KEY, MAX_VALUE)
        self._sets = 0  # carried out and not counted yet
        self._hits = self._misses = 0  # of gets that are not counted yet
        forms: list[tuple[c.Command, _Take, tuple[bytes, ...]]] = [(GET, self._get, (b"get", b"gets"))]
        if text_form(b"mg", wire_rules) is not None:
            forms.append((_META_GET, self._meta_get, (b"mg",)))
        if self._rows.writable:
            forms += [(SET, self._set, (b"set",)), (SET, self._store, (b"add", b"replace"))]
            forms.append((DELETE, self._delete, (b"delete",)))
            if verbs.counts:
                forms.append((_SUM, self._arithmetic, (b"incr", b"decr")))
        self._forms = {verb: take for command, take, all_of in forms if verbs.runs(command) for verb in all_of}

    @property
    def live(self) -> bool:
        """Return whether the mapping is as it was, and no prefixes of keys are counted."""
        return self._table.live and self._verbs.unobserved

    def hit(self, data: bytes, loop_turn: LoopTurn | None) -> bytes | None:  # noqa: ARG002 - rows are as new as the file
        """Return the reply to `get WORD` of a kept row or missing key, alone in the input; None for anything else."""
        if len(data) <= 6:  # mypyc: no slice that ends before it begins
            return None
        word = data[4:-2]
        kept = self._items.get(word)
        if kept is not None:
            shown = None if kept[EXPIRY] else kept[HIT]
        elif word in self._missing:
            shown = b""
        else:
            shown = self._named(word) if data.startswith(b"get @@") else None
        if shown is None or data[:4] != b"get " or data[-2:] != b"\r\n":
            return None
        counters = self._counters
        if counters.prefixes.counting or not self._table.live:
            return None
        if not shown:
            counters.looked_up(0, 1)
            return END
        counters.found()
        if kept is not None:
            self._accesses.fetched(word)  # at the time of the last tick: reading the clock takes longer than all else
        return shown + END

    @property
    def frames_set(self) -> bool:
        """See `FastPath`."""
        return b"set" in self._forms

    def take_frames(
        self, frames: list[PlainFrame], out: list[bytes], later: LaterFrames  # noqa: ARG002 - see `FastPath`
    ) -> tuple[int, Wait]:  # fmt: skip
        """Run the first of some binary commands, see `FastPath`; all replies are available at once."""
        if self._counters.prefixes.counting or not self._table.live:
            return 0, Wait.NOTHING
        taken, waits, now = 0, False, int(time.time())
        self._accesses.at(now)
        while taken < len(frames):
            frame = frames[taken]
            if isinstance(frame, c.Store):
                stored = self._framed_store(frame)
                if stored is None:
                    break
                taken += 1
                waits = True
                out.append(stored)
                continue
            reads, rows, late = self._reads(frames, taken)
            if not reads:
                break
            taken += len(reads)
            waits = waits or late
            shown = self._verbs.frames(reads, rows, now)
            out += shown
            if sum(map(len, shown)) >= TURN:
                break
        return taken, Wait.COMMIT if waits else Wait.NOTHING

    def _named(self, word: bytes) -> bytes | None:
        """Return what is shown of a cached row that never expires, of whose mapping a word has the name."""
        key = self._verbs.key_of_bound(word) if self._lines.named.fullmatch(word) else None
        kept = None if key is None else self._items.get(key)
        if key is None or kept is None or kept[EXPIRY]:
            return None
        self._verbs.fetched(key, time.time())
        return renamed(kept[HIT], key, word)

    def take(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:  # noqa: ARG002 - see `FastPath`
        """Run the simple commands at the beginning of the input, see `FastPath`; all replies are available at once."""
        if self._counters.prefixes.counting or not self._table.live:
            return 0, Wait.NOTHING
        at, length, waits, owed = 0, len(data), False, 0
        single = 0  # up to here commands are looked at one by one
        self._accesses.at(time.time())
        while at < length and owed < TURN:
            if at >= single and data.startswith(b"get ", at):
                single, shown = self._burst(data, at)
                if shown:
                    at = single
                    owed += sum(map(len, shown))
                    out += shown
                    continue
            blank = data.find(b" ", at)
            form = self._forms.get(data[at:blank]) if blank > 0 else None
            taken = None if form is None else form(data, at)
            if taken is None:
                break
            at, reply, late = taken
            waits = waits or late
            owed += len(reply)
            out.append(reply)
        if self._hits or self._misses:
            self._counters.looked_up(self._hits, self._misses)
            self._hits = self._misses = 0
        if self._sets:
            self._verbs.count_sets(self._sets, stored=True)
            self._sets = 0
        return at, Wait.COMMIT if waits else Wait.NOTHING

    def _reads(self, frames: list[PlainFrame], at: int) -> tuple[list[c.Frame], list[Row | None], bool]:
        """Return the binary gets and noops at some place, no more than a turn answers, and their rows.

        Also return whether a reply must wait.
        """
        reads: list[c.Frame] = []
        rows: list[Row | None] = []
        waits, size = False, 0
        for frame in frames[at:] if at else frames:
            if isinstance(frame, c.Store) or size >= TURN:
                break
            row = None
            if frame.opcode != NOOP:
                key: bytes | None = frame.key
                kept, late = self._items.get(frame.key), False
                if kept is None:
                    key = self._key(frame.key, switches=True) if b"get" in self._forms else None
                    kept, late = (None, False) if key is None else self._kept(key)
                if key is None or kept is None or len(kept[HIT]) > ANSWER_BYTES:
                    break
                waits = waits or late
                size += len(kept[HIT])
                row = self._row(key, kept)
            reads.append(frame)
            rows.append(row)
        return reads, rows, waits

    def _framed_store(self, command: c.Store) -> bytes | None:
        """Return the reply to a binary set, add or replace, which must wait; None if the slow path must run it."""
        if not self._fits(command.word, len(command.data)):
            return None
        key = self._key(command.word, switches=True)
        stored = None if key is None or not self._begin() else self._stored(key, command)
        return None if stored is None else encode(command, *stored)

    def _burst(self, data: bytes, at: int) -> tuple[int, list[bytes]]:
        """Return the end of gets of one key each, and their replies; none where not all are hits of cached rows.

        Rows that expire, and replies that take more than one turn, are left to `_get`.
        """
        lines = self._lines.gets_of_one.match(data, at)
        if lines is None:
            return at, []
        words = self._lines.get.findall(data, at, lines.end())
        rows = [self._items.get(word) for word in words]
        shown = [row[HIT] + END for row in rows if row is not None and not row[EXPIRY]]
        if len(shown) < len(rows) or sum(map(len, shown)) > TURN:
            return lines.end(), []
        self._hits += len(shown)
        self._accesses.fetched_all(words)
        return lines.end(), shown

    def _get(self, data: bytes, at: int) -> _Taken:
        """Take a get or gets."""
        start = data.index(b" ", at) + 1  # which is there, or it would be no get
        end = data.find(b"\r\n", start)
        if end < 0:
            return None
        with_cas = start - at == len("gets ")
        rest = data[start:end]
        kept = self._items.get(rest) if len(rest) <= MAX_KEY else None  # else it is several words
        if kept is not None and not (kept[EXPIRY] or with_cas):
            self._hits += 1
            self._accesses.fetched(rest)
            return end + 2, kept[HIT] + END, False
        if kept is None and rest in self._missing:
            self._misses += 1
            return end + 2, END, False
        named = self._named(rest) if rest.startswith(b"@@") and not with_cas else None
        if named is not None:
            self._hits += 1
            return end + 2, named + END, False
        words = rest.split(b" ")
        found = None if with_cas else self._cached(words)
        found = found or self._found(words, with_cas=with_cas)
        return None if found is None else (end + 2, found[0], found[1])

    def _cached(self, words: list[bytes]) -> tuple[bytes, bool] | None:
        """Return what `_found` does of rows that are all cached and never expire, or missing; None for any others."""
        cached = self._items.get
        hits: list[bytes] = []
        keys: list[bytes] = []
        for word in words:
            kept = cached(word)
            if kept is None:
                if word not in self._missing:
                    return None
            elif kept[EXPIRY]:
                return None
            else:
                hits.append(kept[HIT])
                keys.append(word)
        found = len(hits)
        hits.append(END)
        reply = b"".join(hits)
        if len(reply) > ANSWER_BYTES:
            return None
        self._accesses.fetched_all(keys)
        self._hits += found
        self._misses += len(words) - found
        return reply, False

    def _found(self, words: list[bytes], *, with_cas: bool) -> tuple[bytes, bool] | None:
        """Return the reply to a get, and whether it must wait; None if the slow path must run it."""
        rows = self._rows_of(words)
        if rows is None:
            return None
        found, waits = rows
        items = self._shown(found, with_cas=with_cas)
        misses = items.count(b"")
        self._misses += misses
        self._hits += len(items) - misses
        items.append(END)
        return b"".join(items), waits

    def _rows_of(self, words: list[bytes]) -> tuple[list[_Found], bool] | None:
        """Return the rows of a get, and whether the reply must wait; None if the slow path must run it."""
        found, waits, size = [], False, 0
        for word in words:
            # Of several words one that names a mapping may decide about those behind it.
            key = word if word in self._items else self._key(word, switches=len(words) == 1)
            kept, late = (None, False) if key is None else self._kept(key)
            if key is None or kept is None:
                return None
            found.append((word, key, kept))
            waits = waits or late
            size += len(kept[HIT])
            if size > ANSWER_BYTES:
                return None
        return found, waits

    def _shown(self, found: Sequence[_Found], *, with_cas: bool) -> list[bytes]:
        """Return what a get shows of some rows, empty for a miss."""
        items = []
        for word, key, kept in found:
            row = self._row(key, kept) if with_cas or key is not word else None
            if kept[EXPIRY] and self._verbs.expired(kept[EXPIRY], int(time.time())):
                items.append(b"")
            else:
                items.append(kept[HIT] if row is None else self._verbs.hit(word, row, with_cas=with_cas))
        self._accesses.fetched_all([key for (_, key, _), item in zip(found, items, strict=True) if item])
        return items

    def _meta_get(self, data: bytes, at: int) -> _Taken:
        """Take a meta get that only reads."""
        end = data.find(b"\n", at)
        if end < 0 or data[end - 1 : end] != b"\r":
            return None
        command = parse_line(data[at : end - 1], self._wire_rules)
        if not isinstance(command, c.MetaGet) or needs(command):
            return None
        key = self._key(command.word, switches=True)
        kept, late = (None, False) if key is None else self._exact(key)
        if key is None or kept is None:
            return None
        reply = self._verbs.meta_get(command, self._row(key, kept), int(time.time()))
        return end + 1, encode(command, reply, 0), late

    def _set(self, data: bytes, at: int) -> _Taken:
        """Take a set."""
        head = self._set_head(data, at)
        if head is None:
            return self._store(data, at)
        word, flags, size, noreply = head.groups()
        start = head.end()
        end = start + int(size)
        length = end - start
        fits = (self._takes_all and length <= MAX_VALUE) or self._fits(word, length)
        if not fits or data[end : end + 2] != b"\r\n":
            return None
        if not (self._file.dirty or self._begin()):
            return None
        if self._rows.set(word, data[start:end], int(flags), None) is None:
            return None
        self._sets += 1
        self._accesses.changed(word, Change.STORED)
        return end + 2, b"" if noreply else STORED, True

    def _store(self, data: bytes, at: int) -> _Taken:
        """Take a set with an expiry time or the name of a mapping, an add or a replace."""
        head = self._lines.storing.match(data, at)
        if head is None:
            return None
        verb, word, flags, exptime, size, noreply = head.groups()
        start = head.end()
        end = start + int(size)
        if data[end : end + 2] != b"\r\n" or not self._fits(word, end - start):
            return None
        key = self._key(word, switches=True)
        if key is None or not self._begin():
            return None
        command = c.Store(verb.decode(), word, int(flags), int(exptime), data[start:end], noreply=noreply is not None)
        answered = self._stored(key, command)
        if answered is None:
            return None
        return end + 2, encode(command, answered[0], 0), True

    def _fits(self, word: bytes, size: int) -> bool:
        return size <= MAX_VALUE and (self._takes_all or self._lines.takes(word, size))

    def _stored(self, key: bytes, command: c.Store) -> tuple[Reply, int] | None:
        """Carry out any storage command; return its reply and cas number, None if the slow path must run it."""
        now = int(time.time())
        try:
            self._verbs.key(key)
            expiry = self._verbs.expiry(command, now)
            self._verbs.value(command.data)
        except RefusedError:
            return None  # the verb says why
        if command.verb != "set":
            found, _ = self._exact(key)
            if found is None:
                return None
            refusal = self._verbs.refusal(command, self._row(key, found), now)
            if refusal is not None:
                return refusal, 0
        written = self._rows.set(key, command.data, command.flags, expiry)
        if written is None:
            return None
        self._verbs.count_stored(command)
        self._accesses.changed(key, Change.STORED)
        return Status.STORED, self._verbs.cas_of(written[1])

    def _arithmetic(self, data: bytes, at: int) -> _Taken:
        """Take an incr or decr."""
        head = self._lines.counting.match(data, at)
        key = None if head is None else self._key(head[2], switches=self._verbs.all_switch)
        if head is None or key is None or not self._begin():
            return None
        found, _ = self._exact(key)
        if found is None:
            return None
        command = c.Arithmetic(head[1] == b"incr", head[2], int(head[3]), head[4] is not None)
        reply, row = self._verbs.summed(command, self._row(key, found), int(time.time()))
        if row is not None and not self._rows.update(key, found[ROWID], row):
            return None
        if isinstance(reply, Number):
            self._accesses.changed(key, arithmetic.change_of_sum(data_of(found[HIT]), reply.value))
        return head.end(), encode(command, self._verbs.count(command, reply), 0), True

    def _delete(self, data: bytes, at: int) -> _Taken:
        """Take a delete."""
        head = self._lines.deleting.match(data, at)
        key = None if head is None else self._key(head[1], switches=self._verbs.all_switch)
        if head is None or key is None or not self._begin():
            return None
        found, _ = self._exact(key)
        if found is None:
            return None
        command = c.Delete(head[1], head[2] is not None)
        reply = self._verbs.refusal(command, self._row(key, found), int(time.time()))
        if reply is None:
            if not self._rows.remove(key):
                return None
            reply = self._verbs.count(command, Status.DELETED)
        return head.end(), encode(command, reply, 0), True

    def _key(self, word: bytes, *, switches: bool) -> bytes | None:
        """Return the key of a word in this mapping, None if it is for the slow path.

        Args:
            word: as the client sent it.
            switches: it may begin with the name of this mapping.
        """
        if switches:
            return self._lines.key_in(word, self._verbs.key_of_bound)
        return word if self._lines.word.fullmatch(word) else None

    def _kept(self, key: bytes) -> tuple[CachedRow | None, bool]:
        """Return a row, see `PlainRows.read`, and whether its reply waits for a commit."""
        kept = self._items.get(key)
        if kept is not None:
            return kept, False
        if key in self._missing:
            return ABSENT, False
        table = self._table
        written = table.changed if key in table.changed else table.syncing
        if key in written:
            return written[key], True
        kept = self._rows.read(key)
        return kept, kept == ABSENT and bool(table.changed or table.syncing)

    def _exact(self, key: bytes) -> tuple[CachedRow | None, bool]:
        """Return what `_kept` does, but None for a row with another spelling of the key, or too large for the cache."""
        kept, late = self._kept(key)
        return kept if kept == ABSENT or late or key in self._items else None, late

    def _row(self, key: bytes, kept: CachedRow) -> Row | None:
        return None if kept == ABSENT else self._row_of(key, kept)

    def _row_of(self, key: bytes, kept: CachedRow) -> Row:
        hit, _, flags, cas, expiry, _ = kept
        return self._verbs.row(key, hit, flags, cas, expiry)

    def _begin(self) -> bool:
        """Take the file's write lock; return whether it is taken."""
        if not self._file.dirty:
            if self._queued():
                return False
            try:
                self._file.begin_writing()  # from here on no other process writes to the file
            except KvrefError:
                return False
        return True
