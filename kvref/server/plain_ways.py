"""`get WORD` and `set WORD …` of ordinary rows over a database server: gathered without parser, verb and steps.

What is not plain is left to those, and so is what common statements cannot answer. What a command means is asked of
`engine/fast_path.py`, how a line is read of `protocol/fast_path.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kvref.engine.operations import Cell, Row
from kvref.engine.values import RefusedError
from kvref.protocol.fast_path import END, STORED, PlainLines
from kvref.protocol.replies import ServerError
from kvref.storage.fast_path import MAX_VALUE
from kvref.storage.mysql.fast_path import BYTES_OF_SET, PlainTable

if TYPE_CHECKING:
    from kvref.engine.fast_path import PlainVerbs
    from kvref.engine.mapping import Mapping
    from kvref.storage.mysql.result_set import Cells
    from kvref.storage.mysql.row_identity import Spelling

# Takes what asked and the reply; None: it has to take the general path.
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
        """Let it take the general path."""
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
        verbs = self.ways.verbs
        found = b"" if row is None else verbs.reply(self.word, row, int(time.time()))
        verbs.count_gets((found,))
        self.done(self.data, found + END)


class PlainWrite(Plain):
    """A set.

    Args:
        ways, word, data, done: see `Plain`.
        key: as the column has it.
        flags: as the client sent them.
        value: as the column has it.
    """

    __slots__ = ("flags", "key", "value")

    def __init__(
        self, ways: PlainWays, word: bytes, data: bytes, done: Done, key: Cell, flags: int, value: Cell
    ) -> None:
        super().__init__(ways, word, data, done)
        self.key = key
        self.flags = flags
        self.value = value

    @property
    def size(self) -> int:
        """Return how many bytes it has in a statement, at most."""
        return BYTES_OF_SET + 2 * len(self.data)

    def row(self) -> Row:
        """Return the row that it writes; it takes a cas number."""
        return Row(self.key, (self.value,), *self.ways.verbs.options(self.flags))

    def answer(self, reason: str | None) -> None:
        """Reply, and count it; reason: why it is lost, or that its outcome is not known."""
        self.ways.verbs.count_set(stored=reason is None)
        self.done(self.data, STORED if reason is None else ServerError(reason))

    def stop(self, error: Exception) -> None:
        """Reply with the reason why there is no answer, and count it."""
        self.answer(str(error))


class Gatherer(Protocol):
    """Takes plain commands on their way; what it returns False of has to take the general path."""

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
        verbs: what they mean.
        lines: how they are read.
        gatherer: takes them on their way.
    """

    def __init__(self, verbs: PlainVerbs, lines: PlainLines, gatherer: Gatherer) -> None:
        self.verbs = verbs
        self._lines = lines
        self._mapping = verbs.mapping
        self._directory = verbs.shared.directory
        self._generation = self._directory.generation
        self._gatherer = gatherer
        self._table: PlainTable | None = None

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
        if not self.live or not self.verbs.counted or not self._gatherer.ready:
            return False
        table = self._table
        if table is None or not table.version.live:
            table = self._table = self._gatherer.table(self._mapping)
        asked = self._lines.get.fullmatch(data)
        if asked is None:
            return self._take_set(table, data, done)
        word = asked[1]
        if table.readable and len(word) <= table.longest_key and word.isascii():
            return self._gatherer.gather_read(table, PlainRead(self, word, data, done))
        return self._take_get(word, data, done)

    def _take_get(self, word: bytes, data: bytes, done: Done) -> bool:
        try:
            key = self.verbs.looked_up(word)
        except RefusedError:
            return False
        spelling = None if key is None else self._gatherer.spelling(self._mapping, key)
        if spelling is None:
            return False
        return self._gatherer.gather_get(self._mapping, PlainGet(self, word, data, done, key, spelling))

    def _take_set(self, table: PlainTable, data: bytes, done: Done) -> bool:
        head = self._lines.set.match(data) if table.writable and not self.verbs.read_only else None
        if head is None:
            return False
        start, size = head.end(), int(head[3])
        if len(data) != start + size + 2 or not data.endswith(b"\r\n"):
            return False
        word, value = head[1], data[start:-2]
        if len(word) > table.longest_key or not word.isascii() or (table.text and not value.isascii()):
            return False
        if size > MAX_VALUE or not self._lines.takes(word, size):
            return False
        try:
            key, cell = self.verbs.key(word), self.verbs.value(value)
        except RefusedError:
            return False
        return self._gatherer.gather_write(table, PlainWrite(self, word, data, done, key, int(head[2]), cell))


def answer_reads(
    reads: list[PlainRead], table: PlainTable, found: dict[bytes, Cells], *, certain: bool, now: int
) -> None:
    """Reply to gets of plain words and count them; those that nothing is known of take the general path.

    Args:
        reads: at least one.
        table: whose rows.
        found: cells by word.
        certain: there are no other rows.
        now: UNIX time in whole seconds.
    """
    for each in reads:
        cells = found.get(each.word)
        if cells is None and not certain:
            each.give_up()
            continue
        verbs = each.ways.verbs
        row = b"" if cells is None else verbs.reply_of_cells(each.word, *table.parts(cells), now)
        verbs.count_gets((row,))
        each.done(each.data, row + END)
