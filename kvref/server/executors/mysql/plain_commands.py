"""Plain commands of the fast path over a database server: what each looks up or writes, and what it replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final, TypeVar

from kvref.engine.fast_path import PlainVerbs
from kvref.engine.operations import Cell, Row
from kvref.engine.values import to_bytes
from kvref.protocol.codec import encode
from kvref.protocol.commands import Delete, Frame, Store
from kvref.protocol.fast_path import END, STORED, renamed
from kvref.protocol.opcodes import NOOP
from kvref.protocol.replies import HiddenError, ServerError, Status
from kvref.server.executors.base import Later, LaterFrames
from kvref.server.executors.runs import MAX_RUN, MAX_VALUES, nothing
from kvref.storage.mysql.fast_path import BYTES_OF_DELETE, BYTES_OF_SET, PlainTable
from kvref.storage.mysql.replicas import LastWrite
from kvref.storage.mysql.result_set import Cells
from kvref.storage.mysql.row_identity import Spelling

W = TypeVar("W", bound="PlainChange")

MAX_CHARACTER: Final = 4  # bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """The connections of plain commands: all with the same mapping in force and the same rights, or one of them.

    verbs: what their commands mean. last_write: of the only connection, with reads=session. primary_only: no secondary
    answers their gets.
    """

    verbs: PlainVerbs
    last_write: LastWrite | None = None
    primary_only: bool = False


class Plain:
    """One command.

    Args:
        origin: of it.
        word: the key, as the client wrote it; of other commands than plain gets, as the reply shows it.
        data: what arrived of it.

    Attributes:
        turn: see `RowReader`.
        weight: number of keys that it looks up.
    """

    __slots__ = ("data", "origin", "turn", "word")

    weight = 1

    @property
    def primary(self) -> bool:
        """Return whether no secondary may answer it."""
        return self.origin.primary_only

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
        name: of the mapping, with all that is between it and the word.
        later: see `Later`.
    """

    __slots__ = ("_later", "_name")

    def __init__(self, origin: Origin, word: bytes, data: bytes, name: bytes, later: Later) -> None:
        super().__init__(origin, word, data)
        self._name = name
        self._later = later

    def give_up(self) -> None:
        """See `Plain`."""
        self._later([], self.data)

    def stop(self, error: Exception) -> None:
        """See `Plain`."""
        self._later([ServerError(str(error))], b"")

    def answer(self, table: PlainTable, cells: Cells | bytes | None, now: int) -> None:
        """Reply and count the command, see `PlainRead.answer`."""
        verbs, name, word = self.origin.verbs, self._name, self.word
        if isinstance(cells, bytes):
            shown = renamed(cells, word, name + word) if name else cells
        else:
            shown = b"" if cells is None else verbs.reply_of_cells(name + word, *table.parts(cells), now)
        verbs.count_get(shown)
        if shown:
            verbs.fetched(word, now)
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
        self.answered: Callable[[], None] = nothing

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
    def found_key(self) -> bytes:
        """Return the key of the row; only where one is shown."""
        return self.word

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
        if shown:
            self.origin.verbs.fetched(self.found_key, time.time())
        return shown + END


class PlainRead(_PlainLookup):
    """A get of a plain word, answered with cells as the server writes them, or with the reply.

    Args:
        origin, word, data: see `Plain`.
        name: see `PlainLone`.
    """

    __slots__ = ("_found", "_name", "_now", "_shown")

    _found: tuple[int | None, bytes, int | None] | None
    _now: int
    _shown: bytes | None

    def __init__(self, origin: Origin, word: bytes, data: bytes, name: bytes) -> None:
        super().__init__(origin, word, data)
        self._name = name

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
            return renamed(self._shown, self.word, self._name + self.word) if self._name else self._shown
        word = self._name + self.word
        return b"" if self._found is None else self.origin.verbs.reply_of_cells(word, *self._found, self._now)

    @property
    def size(self) -> int:
        """See `_PlainLookup`."""
        if self._shown is not None:
            return len(self._shown)
        return 0 if self._found is None else len(self._found[1])


class PlainGet(_PlainLookup):
    """Any other get, or gets, of one key, or a binary get.

    Args:
        origin, word, data: see `Plain`.
        key: the key as a value of its column.
        spelling: identity of the key.
        with_cas: it is a gets, or of the binary protocol.

    Attributes:
        row: what was found; only once it is answered and not left.
    """

    __slots__ = ("key", "row", "spelling", "with_cas")

    def __init__(
        self, origin: Origin, word: bytes, data: bytes, key: Cell, spelling: Spelling, *, with_cas: bool = False
    ) -> None:
        super().__init__(origin, word, data)
        self.key = key
        self.spelling = spelling
        self.with_cas = with_cas
        self.row: Row | None = None

    def answer(self, row: Row | None) -> None:
        """Take the row, None where there is none."""
        self.row = row
        self.answered()

    def shown(self) -> bytes:
        """See `_PlainLookup`."""
        if self.row is None or self.origin.verbs.expired(self.row.expiry, int(time.time())):
            return b""
        return self.origin.verbs.hit(self.word, self.row, with_cas=self.with_cas)

    @property
    def found_key(self) -> bytes:
        """See `_PlainLookup`."""
        assert self.row is not None
        return to_bytes(self.row.key)

    @property
    def size(self) -> int:
        """See `_PlainLookup`."""
        values = () if self.row is None else self.row.values
        return sum([MAX_CHARACTER * len(each) if isinstance(each, str) else len(to_bytes(each)) for each in values])


class PlainReads(PlainInRun):
    """A get of several plain words, answered as `PlainRead` is.

    Args:
        origin, data: see `Plain`.
        words: in the order of the reply.
    """

    __slots__ = ("_now", "_rows", "_table", "_whole", "words")

    _rows: list[Cells | bytes | None]
    _whole: bytes | None  # the reply, where each row came as its part of it
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
        self._rows = rows = [*map(found.get, self.words)]
        if not certain and None in rows:
            self.give_up()
            return
        self._table, self._now = table, now
        self._whole = _joined(rows)
        self.left = self._is_too_large()
        self.answered()

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        if self.error is not None:
            return self.error
        if self._whole is None:
            return b"".join([*self._counted(), END])
        self.origin.verbs.counters.looked_up(len(self.words), 0)
        self.origin.verbs.fetched_all(self.words, self._now)
        return self._whole

    @property
    def size(self) -> int:
        """Return how many bytes the values have, at most; only of an answer."""
        return sum([_length(each) for each in self._rows]) if self._whole is None else len(self._whole)

    def _is_too_large(self) -> bool:
        return self.size > MAX_VALUES

    def _counted(self) -> list[bytes]:
        """Return what is shown of each word, and count them."""
        shown = [
            each if isinstance(each, bytes) else b"" if each is None else self._shown(word, each)
            for word, each in zip(self.words, self._rows, strict=True)
        ]
        self.origin.verbs.fetched_all(compress(self.words, shown), self._now)
        self.origin.verbs.count_gets(shown)
        return shown

    def _shown(self, word: bytes, cells: Cells) -> bytes:
        return self.origin.verbs.reply_of_cells(word, *self._table.parts(cells), self._now)


def _joined(rows: list[Any]) -> bytes | None:
    """Return the reply to a get of rows that are replies themselves, None where some are not."""
    try:
        return b"".join([*rows, END])
    except TypeError:
        return None


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
        return [shown + END for shown in self._counted()]

    def _is_too_large(self) -> bool:
        return False  # each reply has one value


class FramedReads(PlainReads):
    """Binary gets of one plain word each, one behind the other, and noops between them.

    Args:
        origin: of them.
        frames: of them.
        words: those of the gets, in their order.
        later: see `LaterFrames`.
    """

    __slots__ = ("_frames", "_later")

    def __init__(self, origin: Origin, frames: list[Frame], words: list[bytes], later: LaterFrames) -> None:
        super().__init__(origin, b"", words)
        self._frames = frames
        self._later = later

    @property
    def primary(self) -> bool:
        """Return True: the replies have CAS numbers."""
        return True

    def give_up(self) -> None:
        """See `Plain`."""
        self._later([], len(self._frames))

    def stop(self, error: Exception) -> None:
        """See `Plain`."""
        self._later(failed(self._frames, ServerError(str(error)), self.origin.verbs), len(self._frames))

    def answer(self, table: PlainTable, found: Mapping[bytes, Cells | bytes], now: int, *, certain: bool) -> None:
        """Reply and count the commands, up to the first whose row is not known, see `PlainReads.answer`."""
        words = iter(self.words)
        rows: list[Row | None] = []
        size = 0
        for frame in self._frames:
            cells = None if frame.opcode == NOOP else found.get(next(words))
            # Of a cached row the cas number is not known.
            if isinstance(cells, bytes) or (cells is None and not certain and frame.opcode != NOOP):
                break
            size += _length(cells)
            if size > MAX_VALUES:
                break
            rows.append(None if cells is None else table.row(cells))
        self._later([*self.origin.verbs.frames(self._frames[: len(rows)], rows, now)], len(self._frames))


class FramedGets:
    """Any other binary gets, and noops between them.

    Args:
        verbs: what the commands mean.
        frames: of them.
        lookups: of the gets, in their order; at least one.
        later: see `LaterFrames`.
    """

    __slots__ = ("_frames", "_later", "_lookups", "_verbs", "_waiting")

    def __init__(self, verbs: PlainVerbs, frames: list[Frame], lookups: list[PlainGet], later: LaterFrames) -> None:
        self._verbs = verbs
        self._frames = frames
        self._lookups = lookups
        self._later = later
        self._waiting = len(lookups)
        for each in lookups:
            each.answered = self._answered

    def _answered(self) -> None:
        self._waiting -= 1
        if self._waiting:
            return
        error = next((each.error for each in self._lookups if each.error is not None), None)
        if error is not None:
            self._later(failed(self._frames, error, self._verbs), len(self._frames))
            return
        rows = self._rows()
        replies = self._verbs.frames(self._frames[: len(rows)], rows, int(time.time()))
        self._later([*replies], len(self._frames))

    def _rows(self) -> list[Row | None]:
        """Return the rows up to the first get that the slow path has to run."""
        rows: list[Row | None] = []
        lookups, size = iter(self._lookups), 0
        for frame in self._frames:
            if frame.opcode == NOOP:
                rows.append(None)
                continue
            lookup = next(lookups)
            size += 0 if lookup.left else lookup.size
            if lookup.left or size > MAX_VALUES:
                break
            rows.append(lookup.row)
        return rows


def failed(frames: list[Frame], error: ServerError, verbs: PlainVerbs) -> list[bytes | ServerError]:
    """Return the replies to binary gets, and noops between them, if no row can be read."""
    return [error if frame.opcode != NOOP else verbs.frames([frame], [None], 0)[0] for frame in frames]


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
        found = [each.found_key for each, item in zip(self.lookups, shown, strict=True) if item]
        self.origin.verbs.fetched_all(found, time.time())
        self.origin.verbs.count_gets(shown)
        return b"".join([*shown, END])

    @property
    def size(self) -> int:
        """Return how many bytes the values have, at most; only of an answer."""
        return sum([each.size for each in self.lookups])

    def _answered(self) -> None:
        self._waiting -= 1
        if self._waiting:
            return
        self.left = any(each.left for each in self.lookups)
        self.error = next((each.error for each in self.lookups if each.error is not None), None)
        if not self.left and self.error is None:
            self.left = self.size > MAX_VALUES
        self.answered()


class PlainChange(PlainInRun):
    """A command that writes a row, or removes it.

    Args:
        origin, data: see `Plain`.
        word: the key.

    Attributes:
        previous: what its connection writes right before it in the same run: it must not be written earlier.
    """

    __slots__ = ("previous",)

    previous: PlainChange | None

    @property
    def size(self) -> int:
        """Return how many bytes it has in a statement, at most."""
        raise NotImplementedError

    def row(self) -> Row:
        """Return the row that it writes; of one that it removes only the key matters."""
        raise NotImplementedError

    def answer(self, reason: str | None, written: bool) -> None:  # noqa: ARG002 - not all writes leave a row as it is
        """Take the outcome.

        Args:
            reason: why the transaction is lost, or that its outcome is not known; None: it is durable.
            written: the command has changed something in it.
        """
        self.error = None if reason is None else ServerError(reason)
        self.answered()


def _shown_error(error: ServerError, noreply: bool) -> ServerError:
    """Return an error as the reply to a command, which `noreply` hides."""
    return HiddenError(error.text) if noreply else error


class PlainDelete(PlainChange):
    """A delete.

    Args:
        origin, word, data: see `PlainChange`.
        command: what the client sent.
    """

    __slots__ = ("_command", "_written")

    def __init__(self, origin: Origin, word: bytes, data: bytes, command: Delete) -> None:
        super().__init__(origin, word, data)
        self._command = command
        self._written = False
        self.previous = None

    def answer(self, reason: str | None, written: bool) -> None:
        """See `PlainChange`; a row that was missing in a transaction that is lost may be there."""
        if reason is not None and not written:
            self.give_up()
            return
        self._written = written
        super().answer(reason, written)

    @property
    def size(self) -> int:
        """See `PlainChange`."""
        return BYTES_OF_DELETE + 2 * len(self.word)

    def row(self) -> Row:
        """See `PlainChange`."""
        return Row(self.word, (), None, None, None)

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        verbs, command = self.origin.verbs, self._command
        if self.error is not None:
            verbs.count(command, self.error)
            return _shown_error(self.error, command.noreply)
        reply = None if self._written else verbs.refusal(command, None, int(time.time()))
        return encode(command, reply or verbs.count(command, Status.DELETED), 0)


class PlainWrite(PlainChange):
    """A set.

    Args:
        origin, word, data: see `PlainChange`.
        cells: key and value as their columns have them.
        flags: as the client sent them.
        expiry: see `PlainVerbs.options`.
        noreply: nothing is sent.
    """

    __slots__ = ("_cells", "_expiry", "_flags", "_noreply")

    def __init__(
        self,
        origin: Origin,
        word: bytes,
        data: bytes,
        cells: tuple[Cell, Cell],
        flags: int,
        expiry: int | None,
        *,
        noreply: bool = False,
    ) -> None:
        super().__init__(origin, word, data)
        self._cells = cells
        self._flags = flags
        self._expiry = expiry
        self._noreply = noreply
        self.previous = None

    @property
    def size(self) -> int:
        """See `PlainChange`."""
        return BYTES_OF_SET + 2 * len(self.data)

    def row(self) -> Row:
        """Return the row that it writes; it takes a cas number."""
        key, value = self._cells
        return Row(key, (value,), *self.origin.verbs.options(self._flags, self._expiry))

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        self.origin.verbs.count_sets(1, stored=self.error is None)
        if self.error is not None:
            return _shown_error(self.error, self._noreply)
        self.origin.verbs.stored(self.word, time.time())
        return b"" if self._noreply else STORED


class FramedWrite(PlainWrite):
    """A binary set.

    Args:
        origin, word, cells, expiry: see `PlainWrite`.
        command: what the client sent.
    """

    __slots__ = ("_cas", "_command")

    _cas: int

    def __init__(
        self, origin: Origin, word: bytes, command: Store, cells: tuple[Cell, Cell], expiry: int | None
    ) -> None:
        super().__init__(origin, word, command.word + command.data, cells, command.flags, expiry)
        self._command = command

    def row(self) -> Row:
        """See `PlainWrite`."""
        row = super().row()
        self._cas = self.origin.verbs.cas_of(row.cas)
        return row

    def reply(self) -> bytes | ServerError:
        """See `PlainInRun`."""
        reply = super().reply()
        return encode(self._command, Status.STORED, self._cas) if isinstance(reply, bytes) else reply


def goes_behind(write: W, writes: dict[bytes, W]) -> bool:
    """Put a write behind others of its connection; return whether it is there, because it writes another row than they.

    Args:
        write: the command.
        writes: the others by their keys, in their order.
    """
    if len(writes) >= MAX_RUN or write.word in writes:
        return False
    write.previous = next(reversed(writes.values()), None)
    writes[write.word] = write
    return True
