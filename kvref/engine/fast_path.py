"""Rules for gets and sets of a single row: which commands qualify, and what they do.

The fast paths of all stores bypass the parser, the generators of verbs and the executor. They call this module for the
meaning of a command, and this module calls the functions that the verbs call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kvref.engine import values
from kvref.engine.cache.policies import Policy
from kvref.engine.mapping import Mapping
from kvref.engine.operations import Cell, Row
from kvref.engine.session import Session
from kvref.engine.stats import counted
from kvref.engine.values import key_cell, shown_flags, to_bytes
from kvref.engine.verbs.store import fit_flags, fit_time, new_cas, time_of
from kvref.protocol import commands as c
from kvref.protocol.fast_path import shown
from kvref.protocol.replies import ServerError, Status

_SET: Final = c.Store("set", b"", 0, 0, b"")  # any plain set, for rules that do not depend on its row
_LOST: Final = ServerError("")
MAX_FLAGS_KEPT: Final = 1 << 12  # contents of the flags column, by what clients have sent


def ordinary_mapping(session: Session) -> Mapping | None:
    """Return the mapping on which the plain commands of a session are just that, None where there is none."""
    policies = session.shared.directory.policies
    if policies.get is not Policy.TABLE or policies.set is not Policy.TABLE:
        return None
    mapping = session.plain_mapping
    if mapping is None or mapping.fault or mapping.blind or mapping.beginning:
        return None
    return mapping


class PlainVerbs:
    """`get` and `set` without an expiry time of ordinary rows, by the rules of the verbs.

    Args:
        session: of any connection that may do the same, for what all share.
        mapping: see `ordinary_mapping`.
    """

    def __init__(self, session: Session, mapping: Mapping) -> None:
        self.mapping = mapping
        self.read_only = session.access.refusal(_SET) is not None
        self.shared = session.shared
        self._session = Session(session.shared)  # the other one ends with its connection
        self.counters = session.shared.counters
        self._rules = session.rules
        self._flags: dict[int, tuple[int | None, int]] = {}  # what the column has of them, and what a get then shows
        self._counted = {
            stored: tuple(counted(_SET, Status.STORED if stored else _LOST, missing_counted=False))
            for stored in (True, False)
        }
        self._never = fit_time(mapping, time_of(session, 0, 0))

    @property
    def unobserved(self) -> bool:
        """Tell whether plain commands need no more than the counters of commands: no prefixes of keys are counted."""
        return not self.counters.prefixes.counting

    def looked_up(self, word: bytes) -> Cell:
        """Return the key column's content to look for, None where no row can be found by this key."""
        return self._session.looked_up(self.mapping, word)

    def reply(self, word: bytes, row: Row, now: int) -> bytes:
        """Return what a get answers of a row, without END: nothing where the row is expired.

        Args:
            word: as the client sent it.
            row: looked up.
            now: UNIX time in whole seconds.
        """
        if self._session.finds_expired(row.expiry, now):
            return b""
        item = self._session.item(word, row)
        return shown(word, item.flags, item.data)

    def reply_of_cells(self, word: bytes, flags: int | None, value: bytes, expiry: int | None, now: int) -> bytes:
        """Return what `reply` does of the cells of a row with one value column.

        Args:
            word, now: as of `reply`.
            flags, expiry: None for NULL, or no such column.
            value: what `to_bytes` makes of its cell.
        """
        if self._session.finds_expired(expiry, now):
            return b""
        return shown(word, shown_flags(flags), value)

    def written(self, word: bytes, value: Cell, flags: int) -> bytes:
        """Return what a get answers of a row after a set, without END.

        Args:
            word: as the client sends it.
            value: see `value`.
            flags: as the client sent them.
        """
        return shown(word, self._of_flags(flags)[1], to_bytes(value))

    def count_gets(self, found: Sequence[bytes]) -> None:
        """Count the words of a get.

        Args:
            found: what is answered to each, empty for a miss.
        """
        misses = found.count(b"")
        self.counters.looked_up(hits=len(found) - misses, misses=misses)

    def count_set(self, *, stored: bool) -> None:
        """Count a set, and the item where it is stored."""
        self.counters.add(self._counted[stored])
        if stored:
            self.counters.item_stored()

    def key(self, word: bytes) -> Cell:
        """Return the key that a set writes.

        Raises:
            RefusedError: the key column cannot hold it.
        """
        return key_cell(self.mapping.key, word, self._rules)

    def value(self, data: bytes) -> Cell:
        """Return the content of the value column that a set writes, of a mapping that has only one.

        Raises:
            RefusedError: the column cannot hold it.
        """
        return values.value_cell(self.mapping.values[0], data, self._rules)

    def options(self, flags: int) -> tuple[int | None, int | None, int | None]:
        """Return flags, cas number and expiry that a set writes, None for a column that is not mapped.

        It takes a cas number: nothing may refuse the set any more.

        Args:
            flags: as the client sent them.
        """
        return self._of_flags(flags)[0], new_cas(self._session, self.mapping), self._never

    def _of_flags(self, flags: int) -> tuple[int | None, int]:
        found = self._flags.get(flags)
        if found is None:
            if len(self._flags) >= MAX_FLAGS_KEPT:
                self._flags.clear()
            cell = fit_flags(self.mapping, flags)
            found = self._flags[flags] = cell, shown_flags(cell)
        return found
