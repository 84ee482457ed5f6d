"""The fast path over SQLite for simple gets and sets: `get WORD …` and `set WORD FLAGS 0 LENGTH` of ordinary rows.

The parser, the verbs and the executor handle everything else. The rules of commands are in `engine/fast_path.py`, the
grammar of lines in `protocol/fast_path.py`, and the conditions on a table and its rows in
`storage/sqlite/fast_path.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kvref.engine.fast_path import PlainVerbs
from kvref.errors import KvrefError
from kvref.protocol.fast_path import END, STORED, PlainLines
from kvref.protocol.rules import MAX_KEY
from kvref.server.executors.base import Later, Wait
from kvref.storage.fast_path import MAX_VALUE
from kvref.storage.sqlite.fast_path import PlainRows
from kvref.storage.sqlite.row_cache import CachedTable
from kvref.storage.sqlite.store import SQLiteStore

ANSWER_BYTES: Final = 256 << 10  # for one get
TURN: Final = 64 << 10  # bytes of replies; what is left of the input waits for the connection's next turn


class SQLiteFastPath:
    """Run simple commands on one mapping, for all connections.

    Args:
        store: the store of the file.
        table: cached rows of the mapping.
        verbs: rules of the commands.
        lines: grammar of the lines.
        usable: see `FastPath`: returns whether the cached rows are valid.
        queued: returns whether other writes wait for the file; they run first.
    """

    def __init__(
        self,
        store: SQLiteStore,
        table: CachedTable,
        verbs: PlainVerbs,
        lines: PlainLines,
        usable: Callable[[], bool],
        queued: Callable[[], bool],
    ) -> None:
        self.usable = usable
        self._rows = PlainRows(store, table, verbs)
        self._table = table
        self._items = table.items
        self._store = store
        self._verbs = verbs
        self._counters = verbs.counters
        self._lines = lines
        self._queued = queued
        self._sets = self._rows.writable and not verbs.read_only
        self._takes_all = lines.takes(b"k" * MAX_KEY, MAX_VALUE)

    @property
    def live(self) -> bool:
        """Tell whether the mapping is as it was, and no prefixes of keys are counted."""
        return self._table.live and self._verbs.unobserved

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to `get WORD` of a row that is kept, alone in the input; None for anything else."""
        kept = self._items.get(data[4:-2]) if len(data) > 6 else None  # mypyc: no slice that ends before it begins
        if kept is None or not data.startswith(b"get ") or not data.endswith(b"\r\n"):
            return None
        if self._counters.prefixes.counting or not self._table.live:
            return None
        self._counters.looked_up(hits=1, misses=0)
        return kept[0] + END

    def take(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:  # noqa: ARG002 - see `FastPath`
        """Carry out the plain commands at the beginning of some input, see `FastPath`; all replies are there."""
        if self._counters.prefixes.counting or not self._table.live:
            return 0, Wait.NOTHING
        at, length, waits, owed = 0, len(data), False, 0
        while at < length and owed < TURN:
            if data.startswith(b"get ", at):
                end = data.find(b"\r\n", at) + 2
                reply, late = self._get(data[at + 4 : end - 2]) if end > 1 else (None, False)
            else:
                head = self._lines.set.match(data, at) if self._sets else None
                if head is None:
                    break
                start = head.end()
                end = start + int(head[3]) + 2
                if data[end - 2 : end] != b"\r\n":
                    break
                reply, late = self._set(head[1], head[2], data[start : end - 2]), True
            if reply is None:
                break
            at, waits, owed = end, waits or late, owed + len(reply)
            out.append(reply)
        return at, Wait.COMMIT if waits else Wait.NOTHING

    def _get(self, words: bytes) -> tuple[bytes | None, bool]:
        """Return the reply to a get, None where it is not plain, and whether it must wait."""
        items, waits, size, table = [], False, 0, self._table
        for word in words.split(b" "):
            kept = self._items.get(word)
            if kept is None:
                written = table.changed if word in table.changed else table.syncing
                if word in written:
                    kept, waits = written[word], True
                elif self._lines.word.fullmatch(word):
                    kept = self._rows.read(word)
                if kept is None:
                    return None, False
            items.append(kept[0])
            size += len(kept[0])
            if size > ANSWER_BYTES:
                return None, False
        self._verbs.count_gets(items)
        items.append(END)
        return b"".join(items), waits

    def _set(self, word: bytes, flags: bytes, data: bytes) -> bytes | None:
        """Write a row and return the reply; None where that is not plain, and nothing is written."""
        if len(data) > MAX_VALUE or not (self._takes_all or self._lines.takes(word, len(data))):
            return None
        if not self._store.dirty:
            if self._queued():
                return None
            try:
                self._store.begin_writing()  # from here on no other process writes to the file
            except KvrefError:
                return None
        if not self._rows.write(word, int(flags), data):
            return None
        self._verbs.count_set(stored=True)
        return STORED
