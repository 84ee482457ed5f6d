"""Plain gets and sets over SQLite without the long way: `get WORD …` and `set WORD FLAGS 0 LENGTH` of ordinary rows.

Whatever is not plain is left to the parser, the verbs and the driver, which answer everything; here is nothing that
they would answer otherwise. What must hold of server and connection stands in `shortcut`, of a table in `_writable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kvref.errors import KvrefError
from kvref.semantics.mapping import Column, Kind, Mapping
from kvref.semantics.policies import Policy
from kvref.semantics.session import Session
from kvref.semantics.values import RefusedError, to_bytes
from kvref.storage.forms import LARGEST_INTEGER, UNSIGNED
from kvref.storage.row_cache import CachedTable
from kvref.storage.sqlite import SQLiteStore
from kvref.wire.lines import MAX_KEY
from kvref.wire.rules import WireRules

END: Final = b"END\r\n"
STORED: Final = b"STORED\r\n"
AT: Final = ord("@")
# Words that begin with @ switch or are ranges; a NUL ends a line in some profiles.
_SET: Final = re.compile(rb"set ([^@ \r\n\0][^ \r\n\0]{0,249}) ([0-9]{1,9}) 0 ([0-9]{1,7})\r\n")
_ENDS_LINES: Final = re.compile(rb"[\0\r\n]")
LARGEST_FLAGS: Final = 999_999_999  # that the pattern takes
LARGEST_VALUE: Final = 64 << 10  # longer ones cost so much that the way makes no difference
ANSWER_BYTES: Final = 256 << 10  # what is left of the input then goes the long way, where others have their turn
# A column without TEXT affinity may keep text that begins so as a number.
_LIKE_NUMBERS: Final = frozenset(b"0123456789+-. \t\n\v\f\r")


class Shortcut:
    """Answer plain commands on one mapping, for all connections.

    Args:
        store: the file.
        table: what is kept of the mapping's rows.
        session: of any connection, for what all share.
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
        self._queued = queued
        self._table = table
        self._items = table.items
        self._store = store
        self._counters = session.shared.counters
        self._mapping = mapping = table.mapping
        self._longest_key = _width(mapping.key)
        self._longest_value = min(_width(mapping.values[0]), LARGEST_VALUE)
        if wire_rules.value_limit is not None:
            counted = MAX_KEY if wire_rules.limit_counts_key else 0
            self._longest_value = min(self._longest_value, wire_rules.value_limit - counted)
        self._key_is_text = mapping.key.kind is Kind.TEXT
        self._is_text = mapping.values[0].kind is Kind.TEXT
        self._insert = self._update = ""  # empty: sets are not plain
        if _writable(mapping) and not store.has_rules(mapping):
            sql, clear = store.statements(mapping), session.rules.clears_unmapped
            self._insert = sql.insert_cleared if clear else sql.insert
            self._update = sql.overwrite(clear_unmapped=clear)

    @property
    def live(self) -> bool:
        """Tell whether the mapping is as it was, and no prefixes of keys are counted."""
        return self._table.live and not self._counters.prefixes.counting

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to `get WORD` of a row that is kept, alone in the input; None for anything else."""
        item = self._items.get(data[4:-2])
        if item is None or not data.startswith(b"get ") or not data.endswith(b"\r\n"):
            return None
        counters = self._counters
        counters.cmd_get += 1
        counters.get_hits += 1
        return item + END

    def take(self, data: bytes, session: Session, out: list[bytes]) -> tuple[int, bool]:
        """Answer the plain commands at the beginning of some input.

        Args:
            data: what arrived, at the beginning of a command.
            session: the connection's.
            out: gets the replies.

        Returns:
            How many bytes are answered, and whether the replies must wait for the tick's commit.
        """
        at, length, waits, owed = 0, len(data), False, 0
        while at < length and owed < ANSWER_BYTES:
            if data.startswith(b"get ", at):
                end = data.find(b"\r\n", at)
                if end < 0:
                    break
                reply, late = self._get(data[at + 4 : end], session)
                end += 2
            else:
                head = _SET.match(data, at) if self._insert else None
                if head is None:
                    break
                start = head.end()
                end = start + int(head[3]) + 2
                if data[end - 2 : end] != b"\r\n":
                    break
                reply, late = self._set(head[1], head[2], data[start : end - 2], session), True
            if reply is None:
                break
            at, waits, owed = end, waits or late, owed + len(reply)
            out.append(reply)
        return at, waits

    def _get(self, words: bytes, session: Session) -> tuple[bytes | None, bool]:
        """Return the reply to a get, None where it is not plain, and whether it must wait for a commit."""
        items, waits, table = [], False, self._table
        for word in words.split(b" "):
            item = self._items.get(word)
            if item is None:
                written = table.changed if word in table.changed else table.syncing
                if word in written:
                    item, waits = written[word], True
                else:
                    item = self._read(word, session)
                if item is None:
                    return None, False
            items.append(item)
        hits = len(items) - items.count(b"")
        counters = self._counters
        counters.cmd_get += len(items)
        counters.get_hits += hits
        counters.get_misses += len(items) - hits
        items.append(END)
        return b"".join(items), waits

    def _read(self, word: bytes, session: Session) -> bytes | None:
        """Return a row of the file as a get shows it, empty where there is none; None: the long way tells."""
        store, table = self._store, self._table
        if not word or word[0] == AT or len(word) > MAX_KEY or _ENDS_LINES.search(word):
            return None
        if table.unsure or table.unsure_syncing:
            return None
        try:
            cell = session.looked_up(self._mapping, word)
            row = None if cell is None else store.lookup(self._mapping, cell)
        except (KvrefError, RefusedError):
            return None  # the long way says why
        if row is None:
            return None if table.changed or table.syncing else b""  # it may be deleted by what is not durable yet
        key = to_bytes(row.key)
        if row.expiry or key in table.changed or key in table.syncing:
            return None
        shown = session.item(word, row)
        item = b"VALUE %b %d %d\r\n%b\r\n" % (word, shown.flags, len(shown.data), shown.data)
        if row.key == cell and key == word:
            store.cache.keep(table, word, item)
        return item

    def _set(self, word: bytes, flags: bytes, data: bytes, session: Session) -> bytes | None:
        """Write a row; None where that is not plain, and nothing is written."""
        if len(data) > self._longest_value or len(word) > self._longest_key:
            return None
        store, table, mapping = self._store, self._table, self._mapping
        number = int(flags)
        try:
            key = word.decode("ascii") if self._key_is_text else word
            cells: list[str | bytes | int] = [data.decode("ascii") if self._is_text else data]
            if not store.dirty:
                if self._queued():
                    return None
                store.begin_writing()  # from here on nobody else does
            found = True
            if word not in self._items and not table.changed.get(word) and not table.syncing.get(word):
                row = store.lookup(mapping, key)
                found = row is not None
                if row is not None and row.key != key:
                    return None
            if mapping.flags is not None:
                cells.append(number)
            cas = session.next_cas()
            if mapping.cas is not None:
                cells.append(cas)
            if mapping.expiry is not None:
                cells.append(0)
            if not (store.write(self._update, [*cells, key]) if found else store.write(self._insert, [key, *cells])):
                return None
        except (KvrefError, UnicodeDecodeError):
            return None  # the long way says why, or can do it
        item = None
        if not (self._is_text and data and data[0] in _LIKE_NUMBERS):
            item = b"VALUE %b %d %d\r\n%b\r\n" % (word, number if mapping.flags else 0, len(data), data)
        store.cache.change(mapping, word, item)
        self._counters.cmd_set += 1
        return STORED


def shortcut_mapping(session: Session) -> Mapping | None:
    """Return the mapping on which plain commands of a session are plain, None where there is none."""
    policies = session.shared.directory.policies
    if policies.get is not Policy.TABLE or policies.set is not Policy.TABLE:
        return None
    mapping = session.plain_mapping
    if mapping is None or mapping.fault or mapping.blind or mapping.beginning:
        return None
    return mapping


def _writable(mapping: Mapping) -> bool:
    key, value = mapping.key, mapping.values[0]
    options = [each for each in (mapping.flags, mapping.cas, mapping.expiry) if each is not None]
    names = [key.name, value.name, *(each.name for each in options)]
    return (
        len(mapping.values) == 1
        and len(set(names)) == len(names)
        and _as_it_is(key)
        and _as_it_is(value)
        and not (value.exact or value.fixed or mapping.hidden)
        and all(_holds(each, 0) for each in options)
        and (mapping.flags is None or _holds(mapping.flags, LARGEST_FLAGS))
        and (mapping.cas is None or _holds(mapping.cas, LARGEST_INTEGER))
    )


def _as_it_is(column: Column) -> bool:
    """Tell whether ASCII in the protocol is the same in the file."""
    return column.form is None and (
        column.kind is Kind.BYTES or (column.kind is Kind.TEXT and column.charset.unit == 0)
    )


def _holds(column: Column, number: int) -> bool:
    return column.kind is Kind.INTEGER and column.low <= number <= column.high and column.form in (None, UNSIGNED)


def _width(column: Column) -> int:
    return LARGEST_VALUE if column.width is None else column.width
