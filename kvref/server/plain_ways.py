"""`get WORD` and `set WORD …` of ordinary rows over a database server: gathered without parser, verb and steps.

Whatever is not plain is left to those, and so is what common statements cannot answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kvref.engine.operations import Cell, Row
from kvref.engine.session import Session
from kvref.engine.values import RefusedError
from kvref.protocol.fast_path import END, GET, SET, STORED, longest_value, shown
from kvref.protocol.replies import ServerError
from kvref.storage.fast_path import LARGEST_VALUE
from kvref.storage.mysql.fast_path import PlainSet, PlainTable

if TYPE_CHECKING:
    from kvref.engine.mapping import Mapping
    from kvref.protocol.rules import WireRules
    from kvref.storage.mysql.result_set import Cells
    from kvref.storage.mysql.row_identity import Spelling

# Takes what asked and the reply; None: it has to go the long way.
Done = Callable[[bytes, bytes | ServerError | None], None]


class Plain:
    """One command on its way.

    Args:
        ways: of which mapping, and how its rows are shown.
        word: the client's key.
        data: what arrived.
        done: takes the reply.
    """

    __slots__ = ("data", "done", "ways", "word")

    def __init__(self, ways: PlainWays, word: bytes, data: bytes, done: Done) -> None:
        self.ways = ways
        self.word = word
        self.data = data
        self.done = done

    def give_up(self) -> None:
        """Let it go the long way."""
        self.done(self.data, None)

    def stop(self, error: Exception) -> None:
        """Reply with the reason why there is no answer."""
        self.done(self.data, ServerError(str(error)))


class PlainRead(Plain):
    """A get of a plain word; who answers it counts it."""

    __slots__ = ()


class PlainGet(Plain):
    """Any other get of one key.

    Args:
        ways, word, data, done: see `Plain`.
        key: as the column has it.
        spelling: what tells it from other keys.
    """

    __slots__ = ("key", "spelling")

    def __init__(self, ways: PlainWays, word: bytes, data: bytes, done: Done, key: Cell, spelling: Spelling) -> None:
        super().__init__(ways, word, data, done)
        self.key = key
        self.spelling = spelling

    def answer(self, row: Row | None) -> None:
        """Reply with a row, or that there is none, and count it."""
        reply = self.ways.shown(self.word, row)
        self.ways.counters.got(self.word, hits=reply != END, misses=reply == END)
        self.done(self.data, reply)


class PlainWrite(Plain):
    """A set.

    Args:
        ways, word, data, done: see `Plain`.
        row: what it writes.
    """

    __slots__ = ("row",)

    def __init__(self, ways: PlainWays, word: bytes, data: bytes, done: Done, row: PlainSet) -> None:
        super().__init__(ways, word, data, done)
        self.row = row

    def answer(self, reason: str | None) -> None:
        """Reply, and count it; reason: why it is lost, or that its outcome is not known."""
        self.ways.counters.cmd_set += 1
        self.ways.counters.total_items += reason is None
        self.done(self.data, STORED if reason is None else ServerError(reason))

    def stop(self, error: Exception) -> None:
        """Reply with the reason why there is no answer, and count it."""
        self.answer(str(error))


class Gatherer(Protocol):
    """Takes plain commands on their way; what it returns False of has to go the long way."""

    @property
    def ready(self) -> bool:
        """Tell whether anything is plain just now."""

    def table(self, mapping: Mapping) -> PlainTable:
        """Return the table of a mapping, as long as its version is live."""

    def spelling(self, mapping: Mapping, key: Cell) -> Spelling | None:
        """Return what tells a key from others; None where only the server knows."""

    def gather_get(self, mapping: Mapping, get: PlainGet) -> bool:
        """Take a get."""

    def gather_read(self, table: PlainTable, read: PlainRead) -> bool:
        """Take a get of a plain word."""

    def gather_write(self, table: PlainTable, write: PlainWrite) -> bool:
        """Take a set."""


class PlainWays:
    """Plain commands on one mapping.

    Args:
        mapping: in force.
        session: of any connection that may do the same, for what all share.
        wire_rules: the grammar facts in force.
        gatherer: takes them on their way.
    """

    def __init__(self, mapping: Mapping, session: Session, wire_rules: WireRules, gatherer: Gatherer) -> None:
        self._mapping = mapping
        self._session = Session(session.shared)  # the other one ends with its connection
        self._read_only = session.access.read_only
        self._directory = session.shared.directory
        self._generation = self._directory.generation
        self._gatherer = gatherer
        self._longest_value = longest_value(wire_rules, LARGEST_VALUE)
        self._table: PlainTable | None = None
        self.counters = session.shared.counters

    @property
    def live(self) -> bool:
        """Tell whether the mapping is still in force."""
        return self._directory.generation == self._generation and not self._mapping.fault

    def take(self, data: bytes, done: Done) -> bool:
        """Take one command, where it is plain and alone in the input; tells whether `done` will be called.

        Args:
            data: what arrived, at the beginning of a command.
            done: takes the reply.
        """
        if not self.live or self.counters.prefixes.counting or not self._gatherer.ready:
            return False
        table = self._table
        if table is None or not table.version.live:
            table = self._table = self._gatherer.table(self._mapping)
        asked = GET.fullmatch(data)
        if asked is None:
            return self._take_set(table, data, done)
        word = asked[1]
        if table.readable and len(word) <= table.longest_key and word.isascii():
            return self._gatherer.gather_read(table, PlainRead(self, word, data, done))
        return self._take_get(word, data, done)

    def _take_get(self, word: bytes, data: bytes, done: Done) -> bool:
        try:
            key = self._session.looked_up(self._mapping, word)
        except RefusedError:
            return False
        spelling = None if key is None else self._gatherer.spelling(self._mapping, key)
        if spelling is None:
            return False
        return self._gatherer.gather_get(self._mapping, PlainGet(self, word, data, done, key, spelling))

    def _take_set(self, table: PlainTable, data: bytes, done: Done) -> bool:
        head = SET.match(data) if table.writable and not self._read_only else None
        if head is None:
            return False
        start, size = head.end(), int(head[3])
        if len(data) != start + size + 2 or not data.endswith(b"\r\n"):
            return False
        word, value = head[1], data[start:-2]
        if len(word) > table.longest_key or not word.isascii():
            return False
        if size > min(table.longest_value, self._longest_value) or (table.text and not value.isascii()):
            return False
        row = PlainSet(word, int(head[2]), value)
        return self._gatherer.gather_write(table, PlainWrite(self, word, data, done, row))

    def next_cas(self) -> int:
        """Take a number for a row."""
        return self._session.next_cas()

    def shown(self, word: bytes, row: Row | None) -> bytes:
        """Return the reply to a get."""
        if row is None or self._session.finds_expired(row, int(time.time())):
            return END
        item = self._session.item(word, row)
        return shown(word, item.flags, item.data) + END


def answer_reads(
    reads: list[PlainRead], table: PlainTable, found: dict[bytes, Cells], *, certain: bool, now: int
) -> None:
    """Reply to gets of plain words and count them; those that nothing is known of go the long way.

    Args:
        reads: at least one.
        table: whose rows.
        found: cells by word.
        certain: there are no other rows.
        now: UNIX time in whole seconds.
    """
    counters = reads[0].ways.counters
    for each in reads:
        cells = found.get(each.word)
        if cells is None and not certain:
            each.give_up()
            continue
        reply = END if cells is None else table.shown(each.word, cells, now)
        counters.cmd_get += 1
        if reply == END:
            counters.get_misses += 1
            counters.get_expired += cells is not None
        else:
            counters.get_hits += 1
        each.done(each.data, reply)
