"""Decide incr and decr."""

from __future__ import annotations

from functools import cache, partial

from kvref.engine.access_log import Change
from kvref.engine.counters import STORED_ITEM, counted
from kvref.engine.items import storage, sums, times
from kvref.engine.operations import Cell
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import ABSENT, CAS, EXPIRY, FLAGS, HIT, ROWID, CachedRow, Parameters
from kvref.engine.values import only_column, to_bytes, value_cell
from kvref.protocol import commands as c
from kvref.protocol.replies import Number, Status

_ZERO = Number(0)
# The sum, or why there is none; the rest as of `Decision`.
Sum = tuple[int | Status, CachedRow | None, Parameters | None]


@cache
def _counted(increment: bool, missing_counted: bool | None = None) -> tuple[str, ...]:
    """Return the counters of a sum, or with `missing_counted`, of a key without a row, see `counters.counted`."""
    record = c.Arithmetic(increment, b"", 0)
    if missing_counted is None:
        return tuple(counted(record, _ZERO, missing_counted=False))
    return tuple(counted(record, Status.NOT_FOUND, missing_counted=missing_counted))


class Arithmetic:
    """Decide incr and decr of one mapping, by the rules of `kvref.engine.items.sums`.

    Args:
        numbered: `Session.written_cas` is the number of the last sum.

    Attributes:
        complete: a row says all about its number, which may go on in columns behind it.
        found: the counters of a sum, by whether it is an incr.
    """

    def __init__(self, bound: Bound, *, numbered: bool = False) -> None:
        self._bound = bound
        missing_counted = bound.rules.answers_missing_key
        self.found = {increment: _counted(increment) for increment in (True, False)}
        self._missed = {increment: _counted(increment, missing_counted) for increment in (True, False)}
        mapping = bound.mapping
        mapped = {*mapping.values, *mapping.options.values()}
        self.complete = not bound.rules.counts_leading_number or all(map(mapped.issuperset, mapping.following))
        self._next_cas = partial(storage.new_cas, bound.session, mapping) if numbered else bound.next_cas

    def add(
        self, row: CachedRow, word: bytes, command: c.Arithmetic
    ) -> tuple[bytes, CachedRow | None, Parameters | None]:
        """Decide an incr or decr of the text protocol."""
        result, new, parameters = self.sum(row, word, command)
        if command.noreply:
            return b"", new, parameters
        return result.value if isinstance(result, Status) else b"%d\r\n" % result, new, parameters

    def sum(self, row: CachedRow, word: bytes, command: c.Arithmetic) -> Sum:
        bound = self._bound
        bound.writing = True
        if not row[HIT] or (row[EXPIRY] and bound.is_missing(row)):
            sums.check_missing(bound.session, bound.mapping, word, command)
            if command.initial is not None:
                return self._created(row, word, command, command.initial)
            bound.counted.append(self._missed[command.increment])
            return Status.NOT_FOUND, None, None
        if command.cas and bound.session.is_another(row[CAS], command.cas):
            return Status.EXISTS, None, None
        if bound.rules.counts_leading_number:
            index, old, number = self._leading(row)
        else:
            index, old = 0, bound.data(row)
            number = sums.whole_number(old)
        result = sums.sum_of(bound.session, command, number)
        cas = self._next_cas()  # taken before the column is looked at (binary:bin-int-202)
        cells = sums.cells_of_sum(bound.session, bound.mapping, result, index)
        flags, expiry = storage.retained_numbers(bound.mapping, row[FLAGS], row[EXPIRY])
        bound.counted.append(self.found[command.increment])
        bound.events.append((word, sums.change_of_sum(old, result)))
        new = bound.row(word, cells, row[ROWID], flags, cas, expiry)
        parameters = (*cells, flags, cas, expiry) if bound.all_mapped else bound.parameters(cells, flags, cas, expiry)
        return result, new, parameters

    def _leading(self, row: CachedRow) -> tuple[int, bytes, int]:
        """Return the place of the column that is counted in, its content, and the number at its beginning."""
        bound, mapping = self._bound, self._bound.mapping
        cells = bound.cells(row)
        index = sums.column_used(mapping, row[FLAGS])
        along: tuple[Cell, ...] = ()
        if sums.reads_along(mapping, index, cells[index]):
            known = dict(zip(mapping.values, cells, strict=True))
            options = ((mapping.flags, FLAGS), (mapping.cas, CAS), (mapping.expiry, EXPIRY))
            known |= {column: row[index] for column, index in options if column is not None}  # type: ignore[misc]
            known |= bound.further
            along = tuple(known[column] for column in mapping.following[index] if column in known)
        number = sums.leading(bound.session, mapping, index, cells[index], along)
        return index, to_bytes(cells[index]), number

    def _created(self, row: CachedRow, word: bytes, command: c.Arithmetic, initial: int) -> Sum:
        bound, mapping = self._bound, self._bound.mapping
        bound.key(word)
        bound.is_missing(row)  # the add looks at the time again
        exptime = command.exptime if bound.rules.stores_created_expiry else 0  # columns:arith-011
        number = sums.first_number(bound.session, mapping, initial)
        text = b"%d" % number
        storage.check_numbers(bound.session, mapping, c.Store("add", word, 0, exptime, text), bound.now)
        flags = storage.fit_flags(mapping, 0)
        expiry = times.fit_time(mapping, times.time_of(bound.session, exptime, bound.now))
        cas = self._next_cas()  # taken before the value is looked at (columns:cas-017)
        cells = only_column(mapping, 0, value_cell(mapping.values[0], text, bound.rules))
        bound.counted += (STORED_ITEM, self.found[command.increment])
        bound.events.append((word, Change.STORED))
        if exptime < 0 and times.keeps_no_item(bound.session, mapping, exptime):
            return initial, ABSENT if row[HIT] else None, None
        new = bound.row(word, cells, row[ROWID], flags, cas, expiry)
        return initial, new, bound.parameters(cells, flags, cas, expiry)
