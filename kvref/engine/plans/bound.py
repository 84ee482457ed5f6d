"""What the deciders of one mapping share: bound once for its columns, the rights and the rules of the profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from kvref.engine import values
from kvref.engine.access_log import Event
from kvref.engine.counters import STORED_ITEM
from kvref.engine.items import storage
from kvref.engine.mapping import Column, Kind, Mapping
from kvref.engine.operations import Cell
from kvref.engine.plans.plan import EXPIRY, HIT, VALUES, CachedRow, Parameters
from kvref.engine.session import Session
from kvref.engine.values import shown_flags, to_bytes
from kvref.protocol import commands as c
from kvref.protocol.hits import SHOWN, data_of
from kvref.protocol.replies import ITEM_OVERHEAD

EXPIRED: Final = ("get_expired",)


def counts_itself(command: c.Command) -> bool:
    """Return whether the decider of a command counts it; by steps, the others are counted by their reply."""
    return isinstance(command, c.MetaRequest)


class Bound:
    """A mapping with the rules by which commands read and write its rows.

    Counters and accesses are collected until `settle`, so that a group that fails can be decided again.

    Args:
        session: of any connection with the same rights, for what all share.

    Attributes:
        now: UNIX time in whole seconds, set once for each group.
        counted: names of the counters that the decided commands add to, see `counters.counted`.
        events: accesses of the decided commands.
        effects: what else the decided commands do once they are carried out.
        refused_cas: number that the next command to be rejected has taken, which a binary reply shows.
        writing: the command that is decided has come to its row, and counts as a write of its batch, failed or not. Its
            decider sets it, and whoever has batches resets it; `ProbedBound` decides commands up to there.
        succeeded: whether it counts as a write that has not failed; None: if it writes. Set and reset alike.
        undo: what takes back the marks that the decided commands have set.
        further: contents of columns that are not mapped, of the row of a command by steps, which incr and decr need.
        key: returns the key column's content for a word; raises RefusedError where the column cannot hold it.
        next_cas: takes a cas number, as the column keeps it; None without cas column.
        one_text: there is one value column, of text or bytes; `value` returns its cell, see `key`.
        all_mapped: there are columns for flags, cas and expiry.
    """

    def __init__(self, session: Session, mapping: Mapping) -> None:
        self.session = session.clone()  # the other one ends with its connection
        self.mapping = mapping
        self.rules = session.rules
        self.now = 0
        self.counted: list[tuple[str, ...]] = []
        self.events: list[Event] = []
        self.effects: list[Callable[[], None]] = []
        self.refused_cas = 0
        self.writing = False
        self.succeeded: bool | None = None
        self.undo: list[Callable[[], None]] = []
        self.further: dict[Column, Cell] = {}
        self.counters = session.shared.counters
        self.accesses = session.shared.marks.log(mapping)
        self.key: Callable[[bytes], Cell] = values.key_reader(mapping.key, session.rules)
        self.next_cas = storage.cas_numbers(self.session, mapping)
        self._separator = session.shared.directory.separator
        first = mapping.values[0]
        self.one_text = len(mapping.values) == 1 and first.kind is not Kind.INTEGER
        self.value = values.value_reader(first, session.rules)
        self._mapped = [column is not None for column in mapping.options.values()]
        self.all_mapped = all(self._mapped)

    def settle(self) -> None:
        """Add what the decided commands count to the counters of `stats`, and their accesses to the log."""
        if self.counted:
            first = self.counted[0]
            times = self.counted.count(first)
            if times == len(self.counted):
                self.counters.add(first, times)
            else:
                for names, times in Counter(self.counted).items():
                    self.counters.add(names, times)
            self.counted.clear()
        if self.events:
            self.accesses.at(self.now)
            self.accesses.noted_all(self.events)
            self.events.clear()
        self.undo.clear()
        while self.effects:
            self.effects.pop(0)()

    def discard(self) -> None:
        """Forget what was counted, and take marks back: the group failed and is decided again."""
        self.counted.clear()
        self.events.clear()
        self.effects.clear()
        while self.undo:
            self.undo.pop()()

    def keep_refused(self, command: c.Command) -> None:
        """Forget what the only decided command has counted, but what counts although the table refuses its write."""
        by_decider = counts_itself(command)
        names = (*EXPIRED, "cmd_set") if by_decider else EXPIRED
        stored = next((n for n, each in enumerate(self.counted, 1) if STORED_ITEM[0] in each), None)
        counted = [tuple([name for name in each if name in names]) for each in self.counted[:stored]]
        effects = [*self.effects] if by_decider else []
        self.discard()
        self.counted += filter(None, counted)
        self.effects += effects

    def count_expired(self, row: CachedRow) -> bool:
        """Return whether a row is expired, and count that, see `Session.count_expired`."""
        if not row[EXPIRY] or not self.rules.is_expired(row[EXPIRY], self.now):
            return False
        self.counted.append(EXPIRED)
        return True

    def is_missing(self, row: CachedRow) -> bool:
        """Return whether a write finds no row, see `Session.expired_for_write`."""
        return not row[HIT] or (bool(row[EXPIRY]) and self.rules.writes_check_expiry and self.count_expired(row))

    def values_of(self, data: bytes) -> tuple[Cell, ...]:
        """Return the cells of the value columns for a value; raises RefusedError, see `split_value`."""
        if self.one_text:
            return (self.value(data),)
        return values.split_value(self.mapping, data, self._separator, self.rules)

    def cells(self, row: CachedRow) -> tuple[Cell, ...]:
        """Return the cells of the value columns of a row; text may be bytes."""
        cells = row[VALUES]
        return (data_of(row[HIT]),) if cells is None else cells

    def data(self, row: CachedRow) -> bytes:
        return data_of(row[HIT])

    def check_reply(self, word: bytes, row: CachedRow) -> None:
        """Bound the reply to a get of a row above MAX_CACHED; raises RefusedError, see `Session.check_reply`."""
        self.session.check_reply(len(word) + len(self.data(row)) + ITEM_OVERHEAD)

    def row(
        self, word: bytes, cells: tuple[Cell, ...], rowid: int, flags: int | None, cas: int | None, expiry: int | None
    ) -> CachedRow:
        """Return a row."""
        if self.one_text and cells[0] is not None:
            cell = cells[0]
            data = cell if isinstance(cell, bytes) else to_bytes(cell)
            return SHOWN % (word, shown_flags(flags), len(data), data), rowid, flags, cas, expiry, None
        data = values.join_value(cells, self._separator)
        return SHOWN % (word, shown_flags(flags), len(data), data), rowid, flags, cas, expiry, cells

    def parameters(self, cells: tuple[Cell, ...], flags: int | None, cas: int | None, expiry: int | None) -> Parameters:
        """Return the cells of a write, see `Parameters`."""
        if self.all_mapped:
            return *cells, flags, cas, expiry
        options = zip((flags, cas, expiry), self._mapped, strict=True)
        return *cells, *(cell for cell, mapped in options if mapped)


class WriteBegunError(Exception):
    """A command comes to its row, which it may write: raised in its decider, see `ProbedBound`."""


class ProbedBound(Bound):
    """A mapping as `Bound`, whose commands can be decided up to where they come to their row.

    Attributes:
        probing: setting `writing` raises WriteBegunError.
    """

    def __init__(self, session: Session, mapping: Mapping) -> None:
        self.probing = False
        super().__init__(session, mapping)

    def reaches_row(self, decide: Callable[[], object]) -> bool:
        """Return whether a command comes to its row when it is decided, up to there; raises RefusedError as it does."""
        self.probing = True
        try:
            decide()
        except WriteBegunError:
            return True
        finally:
            self.probing = False
        return False

    @property
    def writing(self) -> bool:
        return self._writing

    @writing.setter
    def writing(self, begun: bool) -> None:
        if begun and self.probing:
            raise WriteBegunError
        self._writing = begun
