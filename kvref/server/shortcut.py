"""Plain gets and sets over SQLite without the long way: `get WORD …` and `set WORD FLAGS 0 LENGTH` of ordinary rows.

Whatever is not plain is left to the parser, the verbs and the driver, which answer everything; here is nothing that
they would answer otherwise. What must hold of server and connection stands in `engine/fast_path.py` and the driver,
what of a table and its rows in `sqlite/fast_path.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kvref.engine.session import Session
from kvref.errors import KvrefError
from kvref.protocol.fast_path import END, SET, STORED, WORD, longest_value
from kvref.protocol.rules import WireRules
from kvref.storage.sqlite.fast_path import PlainRows
from kvref.storage.sqlite.row_cache import CachedTable
from kvref.storage.sqlite.store import SQLiteStore

ANSWER_BYTES: Final = 256 << 10  # for one get
TURN: Final = 64 << 10  # bytes of replies; what is left of the input waits for the connection's next turn


class Shortcut:
    """Answer plain commands on one mapping, for all connections.

    Args:
        store: the file.
        table: what is kept of the mapping's rows.
        session: of any connection that may do the same, for what all share.
        wire_rules: the grammar facts in force.
        queued: tells whether other writes wait for the file, which come first.
    """

    def __init__(
        self,
        store: SQLiteStore,
        table: CachedTable,
        session: Session,
        wire_rules: WireRules,
        queued: Callable[[], bool],
    ) -> None:
        shared = session.shared
        own = Session(shared)  # the other one ends with its connection
        self._read_only = session.access.read_only
        self._rows = PlainRows(store, table, own.looked_up, own.item, shared.cas, own.rules)
        self._table = table
        self._items = table.items
        self._store = store
        self._counters = shared.counters
        self._queued = queued
        self._longest = longest_value(wire_rules, self._rows.longest_value)

    @property
    def live(self) -> bool:
        """Tell whether the mapping is as it was, and no prefixes of keys are counted."""
        return self._table.live and not self._counters.prefixes.counting

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to `get WORD` of a row that is kept, alone in the input; None for anything else."""
        kept = self._items.get(data[4:-2]) if len(data) > 6 else None  # mypyc: no slice that ends before it begins
        if kept is None or not data.startswith(b"get ") or not data.endswith(b"\r\n"):
            return None
        counters = self._counters
        if counters.prefixes.counting or not self._table.live:
            return None
        counters.cmd_get += 1
        counters.get_hits += 1
        return kept[0] + END

    def take(self, data: bytes, out: list[bytes]) -> tuple[int, bool]:
        """Answer the plain commands at the beginning of some input.

        Args:
            data: what arrived, at the beginning of a command.
            out: gets the replies.

        Returns:
            How many bytes are answered, and whether the replies must wait for what is not durable yet.
        """
        at, length, waits, owed = 0, len(data), False, 0
        while at < length and owed < TURN:
            if data.startswith(b"get ", at):
                end = data.find(b"\r\n", at) + 2
                reply, late = self._get(data[at + 4 : end - 2]) if end > 1 else (None, False)
            else:
                head = SET.match(data, at) if self._rows.writable and not self._read_only else None
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
        return at, waits

    def _get(self, words: bytes) -> tuple[bytes | None, bool]:
        """Return the reply to a get, None where it is not plain, and whether it must wait."""
        items, waits, size, table = [], False, 0, self._table
        for word in words.split(b" "):
            kept = self._items.get(word)
            if kept is None:
                written = table.changed if word in table.changed else table.syncing
                if word in written:
                    kept, waits = written[word], True
                elif WORD.fullmatch(word):
                    kept = self._rows.read(word)
                if kept is None:
                    return None, False
            items.append(kept[0])
            size += len(kept[0])
            if size > ANSWER_BYTES:
                return None, False
        hits = len(items) - items.count(b"")
        counters = self._counters
        counters.cmd_get += len(items)
        counters.get_hits += hits
        counters.get_misses += len(items) - hits
        items.append(END)
        return b"".join(items), waits

    def _set(self, word: bytes, flags: bytes, data: bytes) -> bytes | None:
        """Write a row and return the reply; None where that is not plain, and nothing is written."""
        if len(data) > self._longest:
            return None
        if not self._store.dirty:
            if self._queued():
                return None
            try:
                self._store.begin_writing()  # from here on nobody else writes to the file
            except KvrefError:
                return None
        if not self._rows.write(word, int(flags), data):
            return None
        self._counters.cmd_set += 1
        self._counters.total_items += 1
        return STORED
