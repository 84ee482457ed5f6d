"""Decide incr and decr, in profiles that count with nothing but digits."""

from __future__ import annotations

from kvref.engine.counters import counted
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.plan import EXPIRY, FLAGS, ROWID, CachedRow, Decision
from kvref.engine.values import RefusedError
from kvref.engine.verbs import arithmetic
from kvref.engine.verbs.store import retained_numbers
from kvref.protocol import commands as c
from kvref.protocol.replies import Number, Status

_ZERO = Number(0)


class Arithmetic:
    """Decide incr and decr of one mapping, by the rules of `kvref.engine.verbs.arithmetic`.

    Args:
        bound: the mapping.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        missing_counted = bound.rules.answers_missing_key
        records = {increment: c.Arithmetic(increment, b"", 0) for increment in (True, False)}
        self._found = {key: tuple(counted(each, _ZERO, missing_counted=False)) for key, each in records.items()}
        self._missed = {
            key: tuple(counted(each, Status.NOT_FOUND, missing_counted=missing_counted))
            for key, each in records.items()
        }

    def add(self, row: CachedRow, word: bytes, command: c.Arithmetic) -> Decision:
        """Decide an incr or decr."""
        bound = self._bound
        if bound.hides(row):
            bound.counted.append(self._missed[command.increment])
            return b"" if command.noreply else b"NOT_FOUND\r\n", None, None
        old = bound.data(row)
        number = arithmetic.all_digits(old)
        if number is None:
            raise RefusedError(arithmetic.NON_NUMERIC)
        result = arithmetic.sum_of(bound.session, command, number)
        cas = bound.next_cas()  # taken before the column is looked at (bin-int-202)
        cells = arithmetic.cells_of_sum(bound.session, bound.mapping, result, 0)
        flags, expiry = retained_numbers(bound.mapping, row[FLAGS], row[EXPIRY])
        bound.counted.append(self._found[command.increment])
        bound.events.append((word, arithmetic.change_of_sum(old, result)))
        new = bound.row(word, cells, row[ROWID], flags, cas, expiry)
        reply = b"" if command.noreply else b"%d\r\n" % result
        return reply, new, bound.parameters(cells, flags, cas, expiry)
