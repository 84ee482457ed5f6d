"""The fast path over a database server: sequences of gets, or of simple sets, are queued for common statements.

All other commands use the slow path, also those that common statements cannot answer. The rules of commands are in
`engine/fast_path.py`, the grammar of lines in `protocol/fast_path.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from kvref.engine import mapping as m
from kvref.engine.fast_path import PlainVerbs
from kvref.engine.operations import Cell, Row
from kvref.engine.values import RefusedError, to_bytes
from kvref.protocol.fast_path import END, STORED, PlainLines
from kvref.protocol.replies import ServerError
from kvref.protocol.rules import MAX_KEY
from kvref.server.executors.base import Later, Wait
from kvref.server.executors.mysql.last_write import LastWrite
from kvref.storage.mysql.fast_path import BYTES_OF_SET, PlainTable
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling
from kvref.storage.rows import MAX_VALUE

MAX_RUN: Final = 64  # commands of one connection that are carried out together; of a burst of gets somewhat more
MAX_WORDS: Final = 1000  # keys of one get
MAX_VALUES: Final = 1 << 20  # bytes of the values of one get of several keys: the least that `reply_size_max` may be
MAX_CHARACTER: Final = 4  # bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """The connections of plain commands: all with the same mapping in force and the same rights, or one of them.

    verbs: what their commands mean. last_write: of the only connection, with reads=session.
    """

    verbs: PlainVerbs
    last_write: LastWrite | None = None


class Plain:
    """One command.

    Args:
        origin: of it.
        word: the client's key.
        data: what arrived of it.

    Attributes:
        turn: see `RowReader`.
        weight: number of keys that it looks up.
    """

    __slots__ = ("data", "origin", "turn", "word")

    weight = 1

    def __init__(self, origin: Origin, word: bytes, data: bytes) -> None:
        self.origin = origin
        self.word = word
        self.data = data
        self.turn = 0

    @property
    def last_write(self) -> LastWrite | None:
        """Return the last write of its connection, None unless reads=session."""
        return self.origin.last_write

    def give_up(self) -> None:
        """Let it take the slow path."""
        raise NotImplementedError

    def stop(self, error: Exception) -> None:
        """Reply with the reason why there is no answer."""
        raise NotImplementedError


class PlainLone(Plain):
    """A get of a plain word that is all that its connection has sent.

    Args:
        origin, word, data: see `Plain`.
        later: see `Later`.
    """

    __slots__ = ("_later",)

    def __init__(self, origin: Origin, word: bytes, data: bytes, later: Later) -> None:
        super().__init__(origin, word, data)
        self._later = later

    def give_up(self) -> None:
        """See `Plain`."""
        self._later([], self.data)

    def stop(self, error: Exception) -> None:
        """See `Plain`."""
        self._later([ServerError(str(error))], b"")

    def answer(self, table: PlainTable, cells: Cells | bytes | None, now: int) -> None:
        """Reply and count the command, see `PlainRead.answer`."""
        verbs = self.origin.verbs
        if isinstance(cells, bytes):
            shown = cells
        else:
            shown = b"" if cells is None else verbs.reply_of_cells(self.word, *table.parts(cells), now)
        verbs.count_get(shown)
        self._later([shown + END], b"")


class PlainInRun(Plain):
    """One command of several, or one that may have to take the slow path after it was answered.

    Attributes:
        left: it has to take the slow path.
        error: the reply, where there is no answer.
        answered: called once it is left, or answered.
    """

    __slots__ = ("answered", "error", "left")

    def __init__(self, origin: Origin, word: bytes, data: bytes) -> None:
        super().__init__(origin, word, data)
        self.left = False
        self.error: ServerError | None = None
        self.answered: Callable[[], None] = _nothing

    def give_up(self) -> None:
        """See `Plain`."""
        self.left = True
        self.answered()

    def stop(self, error: Exception) -> None:
        """See `Plain`."""
        self.left, self.error = False, ServerError(str(error))
        self.answered()

    def reply(self) -> bytes | ServerError:
        """Return the reply and count the command; only once it is answered and not left."""
        raise NotImplementedError

    def replies(self) -> list[bytes | ServerError]:
        """Return `reply`, or the replies to all commands where these are several."""
        return [self.reply()]


class _PlainLookup(PlainInRun):
    """A get of one key."""

    __slots__ = ()

    def shown(self) -> bytes:
        """Return the reply without END: nothing where no row was found, or an expired one."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Return how many bytes the value has, at most; only once it is answered and not left."""
        raise NotImplementedError

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        if self.error is not None:
            return self.error
        shown = self.shown()
        self.origin.verbs.count_get(shown)
        return shown + END


class PlainRead(_PlainLookup):
    """A get of a plain word, answered with cells as the server writes them, or with the reply."""

    __slots__ = ("_found", "_now", "_shown")

    _found: tuple[int | None, bytes, int | None] | None
    _now: int
    _shown: bytes | None

    def answer(self, table: PlainTable, cells: Cells | bytes | None, now: int) -> None:
        """Take the cells of the row, None where there is none.

        Args:
            table: whose they are.
            cells: of the row; bytes: the reply without END.
            now: UNIX time in whole seconds.
        """
        if isinstance(cells, bytes):
            self._shown, self._found = cells, None
        else:
            self._shown = None
            self._found = None if cells is None else table.parts(cells)
            self._now = now
        self.answered()

    def shown(self) -> bytes:
        """See `_PlainLookup`."""
        if self._shown is not None:
            return self._shown
        return b"" if self._found is None else self.origin.verbs.reply_of_cells(self.word, *self._found, self._now)

    @property
    def size(self) -> int:
        """See `_PlainLookup`."""
        if self._shown is not None:
            return len(self._shown)
        return 0 if self._found is None else len(self._found[1])


class PlainGet(_PlainLookup):
    """Any other get, or gets, of one key.

    Args:
        origin, word, data: see `Plain`.
        key: the key as a value of its column.
        spelling: identity of the key.
        with_cas: it is a gets.
    """

    __slots__ = ("_row", "key", "spelling", "with_cas")

    def __init__(
        self, origin: Origin, word: bytes, data: bytes, key: Cell, spelling: Spelling, *, with_cas: bool = False
    ) -> None:
        super().__init__(origin, word, data)
        self.key = key
        self.spelling = spelling
        self.with_cas = with_cas
        self._row: Row | None = None

    def answer(self, row: Row | None) -> None:
        """Take the row, None where there is none."""
        self._row = row
        self.answered()

    def shown(self) -> bytes:
        """See `_PlainLookup`."""
        if self._row is None or self.origin.verbs.expired(self._row.expiry, int(time.time())):
            return b""
        return self.origin.verbs.hit(self.word, self._row, with_cas=self.with_cas)

    @property
    def size(self) -> int:
        """See `_PlainLookup`."""
        values = () if self._row is None else self._row.values
        return sum([MAX_CHARACTER * len(each) if isinstance(each, str) else len(to_bytes(each)) for each in values])


class PlainReads(PlainInRun):
    """A get of several plain words, answered as `PlainRead` is.

    Args:
        origin, data: see `Plain`.
        words: in the order of the reply.
    """

    __slots__ = ("_now", "_rows", "_table", "words")

    _rows: list[Cells | bytes | None]
    _table: PlainTable
    _now: int

    def __init__(self, origin: Origin, data: bytes, words: list[bytes]) -> None:
        super().__init__(origin, b"", data)
        self.words = words

    @property
    def weight(self) -> int:  # type: ignore[override]  # of each other kind it is one
        """Return the number of its keys."""
        return len(self.words)

    def answer(self, table: PlainTable, found: Mapping[bytes, Cells | bytes], now: int, *, certain: bool) -> None:
        """Take the rows.

        Args:
            table: whose they are.
            found: by word: the cells of the row, or bytes: the reply without END.
            now: UNIX time in whole seconds.
            certain: the other words have no row.
        """
        self._rows = rows = [found.get(word) for word in self.words]
        if None in rows and not certain:
            self.give_up()
            return
        self._table, self._now = table, now
        self.left = self._is_too_large(rows)
        self.answered()

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        return b"".join([*self._all_shown(), END]) if self.error is None else self.error

    def _is_too_large(self, rows: list[Cells | bytes | None]) -> bool:
        return sum([_length(each) for each in rows]) > MAX_VALUES

    def _all_shown(self) -> list[bytes]:
        """Return what is shown of each word, and count them."""
        shown = [
            each if isinstance(each, bytes) else b"" if each is None else self._shown(word, each)
            for word, each in zip(self.words, self._rows, strict=True)
        ]
        self.origin.verbs.count_gets(shown)
        return shown

    def _shown(self, word: bytes, cells: Cells) -> bytes:
        return self.origin.verbs.reply_of_cells(word, *self._table.parts(cells), self._now)


def _length(row: Cells | bytes | None) -> int:
    """Return how many bytes the value of a row has, at most."""
    if row is None:
        return 0
    return len(row if isinstance(row, bytes) else row[1] or b"")


class PlainBurst(PlainReads):
    """Gets of one plain word each, one behind the other."""

    __slots__ = ()

    def replies(self) -> list[bytes | ServerError]:
        """See `PlainInRun`."""
        if self.error is not None:
            return [self.error] * len(self.words)
        return [shown + END for shown in self._all_shown()]

    def _is_too_large(self, rows: list[Cells | bytes | None]) -> bool:  # noqa: ARG002 - see `PlainReads`
        return False  # each reply has one value


class PlainGets(PlainInRun):
    """A get, or gets, of several keys.

    Args:
        origin, data: see `Plain`.
        lookups: one for each key, in the order of the reply.
    """

    __slots__ = ("_waiting", "lookups")

    def __init__(self, origin: Origin, data: bytes, lookups: list[PlainRead | PlainGet]) -> None:
        super().__init__(origin, b"", data)
        self.lookups = lookups
        self._waiting = len(lookups)
        for each in lookups:
            each.answered = self._answered

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        if self.error is not None:
            return self.error
        shown = [each.shown() for each in self.lookups]
        self.origin.verbs.count_gets(shown)
        return b"".join([*shown, END])

    def _answered(self) -> None:
        self._waiting -= 1
        if self._waiting:
            return
        self.left = any(each.left for each in self.lookups)
        self.error = next((each.error for each in self.lookups if each.error is not None), None)
        if not self.left and self.error is None:
            self.left = sum([each.size for each in self.lookups]) > MAX_VALUES
        self.answered()


class PlainWrite(PlainInRun):
    """A set.

    Args:
        origin, word, data: see `Plain`.
        key: as the column has it.
        flags: as the client sent them.
        value: as the column has it.

    Attributes:
        previous: what its connection sets right before it in the same run: it must not be written earlier.
    """

    __slots__ = ("flags", "key", "previous", "value")

    def __init__(self, origin: Origin, word: bytes, data: bytes, key: Cell, flags: int, value: Cell) -> None:
        super().__init__(origin, word, data)
        self.key = key
        self.flags = flags
        self.value = value
        self.previous: PlainWrite | None = None

    @property
    def size(self) -> int:
        """Return how many bytes it has in a statement, at most."""
        return BYTES_OF_SET + 2 * len(self.data)

    def row(self) -> Row:
        """Return the row that it writes; it takes a cas number."""
        return Row(self.key, (self.value,), *self.origin.verbs.options(self.flags))

    def answer(self, reason: str | None) -> None:
        """Take the outcome: None, or why it is lost, or that it is not known."""
        self.error = None if reason is None else ServerError(reason)
        self.answered()

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        self.origin.verbs.count_sets(1, stored=self.error is None)
        return STORED if self.error is None else self.error


# Returns what a get replies, without END, if that is known without a query.
Hit = Callable[[PlainTable, bytes], bytes | None]


class PlainBatcher(Protocol):
    """Queues plain commands for common statements."""

    @property
    def hit(self) -> Hit | None:
        """Return what answers gets of kept rows, None where none are kept."""

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

    def add_write(self, table: PlainTable, write: PlainWrite) -> None:
        """Queue a set."""


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
        self._lines = lines
        self._mapping = verbs.mapping
        self._directory = verbs.shared.directory
        self._generation = self._directory.generation
        self._batcher = batcher
        self._up_to_date, self._hit = batcher.up_to_date, batcher.hit
        self._table: PlainTable | None = None
        self._takes_all = lines.takes(b"k" * MAX_KEY, MAX_VALUE)

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

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to `get WORD` of a kept row that may be used without a query; None for other input."""
        table = self._table
        if self._hit is None or table is None or not table.version.live or len(data) <= 6:
            return None
        if not data.startswith(b"get ") or not data.endswith(b"\r\n"):
            return None
        shown = self._hit(table, data[4:-2])
        if shown is None:
            return None
        self._verbs.counters.found()
        return shown + END

    def take(self, data: bytes, out: list[bytes], later: Later) -> tuple[int, Wait]:  # noqa: ARG002 - see `FastPath`
        """Queue the plain commands of one kind at the beginning of some input, see `FastPath`."""
        table = self._table
        if table is None or not table.version.live:
            table = self._table = self._batcher.table(self._mapping)
        gets = data.startswith((b"get ", b"gets "))
        if gets and not self._batcher.takes_reads(self._mapping):
            return 0, Wait.NOTHING
        only = self._lines.get.fullmatch(data) if gets else None
        if only is not None and table.takes_word(only[1]):
            self._batcher.add_read(table, PlainLone(self._origin, only[1], data, later))
            return len(data), Wait.ANSWER
        taken = self._gets(table, data) if gets else self._sets(table, data)
        if not taken:
            return 0, Wait.NOTHING
        size = sum([len(each.data) for each in taken])
        if len(taken) == 1:
            taken[0].answered = partial(_reply, taken[0], later)
        else:
            _Run(taken, later)
        for each in taken:
            if isinstance(each, (PlainRead, PlainReads)):
                self._batcher.add_read(table, each)
            elif isinstance(each, PlainWrite):
                self._batcher.add_write(table, each)
            elif isinstance(each, PlainGets):
                for lookup in each.lookups:
                    self._add(table, lookup)
            else:
                assert isinstance(each, PlainGet)
                self._batcher.add_get(self._mapping, each)
        return size, Wait.ANSWER

    def _add(self, table: PlainTable, lookup: PlainRead | PlainGet) -> None:
        if isinstance(lookup, PlainRead):
            self._batcher.add_read(table, lookup)
        else:
            self._batcher.add_get(self._mapping, lookup)

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
            key: bytes | None = word
            if word.startswith(b"@"):
                # Of several words one that names a mapping may decide about those behind it.
                key = self._verbs.key_of_bound(word) if len(words) == 1 else None
                key = key if key is not None and self._lines.word.fullmatch(key) else None
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
        if word is key and not with_cas and table.takes_word(key):
            return PlainRead(self._origin, word, data)
        try:
            cell = self._verbs.looked_up(key)
        except RefusedError:
            return None
        spelling = None if cell is None else self._batcher.spelling(self._mapping, cell)
        return None if spelling is None else PlainGet(self._origin, word, data, cell, spelling, with_cas=with_cas)

    def _sets(self, table: PlainTable, data: bytes) -> list[PlainInRun]:
        """Return the sets at the beginning of some input, each of another word."""
        if not table.writable or self._verbs.read_only:
            return []
        first = self._set(table, data, 0)
        if first is None or not self._batcher.takes_writes(self._mapping):
            return []
        found, previous, at = {first.word: first}, first, len(first.data)
        while len(found) < MAX_RUN and at < len(data):
            write = self._set(table, data, at)
            if write is None or write.word in found:
                break
            write.previous, previous = previous, write
            found[write.word] = write
            at += len(write.data)
        return [*found.values()]

    def _set(self, table: PlainTable, data: bytes, at: int) -> PlainWrite | None:
        head = self._lines.set.match(data, at)
        if head is None:
            return None
        word, start, size = head[1], head.end(), int(head[3])
        end = start + size
        value = data[start:end]
        if data[end : end + 2] != b"\r\n" or size > MAX_VALUE:
            return None
        if not (self._takes_all or self._lines.takes(word, size)):
            return None
        if len(word) > table.longest_key or not word.isascii() or (table.text and not value.isascii()):
            return None
        try:
            key, cell = self._verbs.key(word), self._verbs.value(value)
        except RefusedError:
            return None
        return PlainWrite(self._origin, word, data[at : end + 2], key, int(head[2]), cell)


class _Run:
    """Commands of one connection that are carried out together, and replied to in their order.

    Args:
        commands: at least one.
        later: see `Later`.
    """

    __slots__ = ("_commands", "_later", "_waiting")

    def __init__(self, commands: list[PlainInRun], later: Later) -> None:
        self._commands = commands
        self._later = later
        self._waiting = len(commands)
        for each in commands:
            each.answered = self._answered

    def _answered(self) -> None:
        self._waiting -= 1
        if self._waiting:
            return
        replies: list[bytes | ServerError] = []
        left = len(self._commands)
        for number, each in enumerate(self._commands):
            if each.left:
                left = number  # what follows was only read, or was not written either
                break
            replies += each.replies()
        rest = self._commands[left:]
        self._later(replies, b"".join([each.data for each in rest]) if rest else b"")


def _reply(command: PlainInRun, later: Later) -> None:
    """Reply to a command that is alone in its run."""
    if command.left:
        later([], command.data)
    else:
        later(command.replies(), b"")


def _nothing() -> None:
    """Do nothing: the command is in no run yet."""
