"""`get WORD` of an ordinary row over a database server: gathered with others without parser, verb and steps.

Whatever is not plain is left to those, and so is what the common SELECT cannot answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvref.semantics.ports import Cell, Row
from kvref.semantics.session import Session
from kvref.semantics.values import RefusedError
from kvref.wire.plain import END, GET, shown

if TYPE_CHECKING:
    from kvref.semantics.mapping import Mapping
    from kvref.storage.mysql_places import Spelling

# Takes the reply; None: the bytes that asked have to go the long way.
Done = Callable[[bytes | None], None]


@dataclass(slots=True, eq=False)
class PlainGet:
    """One get on its way.

    Args:
        asked: of which mapping, and how its rows are shown.
        word: the client's key.
        key: as the column has it.
        spelling: what tells it from other keys.
        done: takes the reply.
    """

    asked: PlainGets
    word: bytes
    key: Cell
    spelling: Spelling
    done: Done

    def answer(self, row: Row | None) -> None:
        """Reply with a row, or that there is none."""
        self.done(self.asked.shown(self.word, row))

    def give_up(self) -> None:
        """Let it go the long way."""
        self.done(None)


class PlainGets:
    """Plain gets of one mapping.

    Args:
        mapping: in force.
        session: of any connection, for what all share.
        gather: takes one on its way; returns False where it has to go the long way.
    """

    def __init__(self, mapping: Mapping, session: Session, gather: Callable[[Mapping, PlainGet], bool]) -> None:
        self._mapping = mapping
        self._session = Session(session.shared)  # the other one ends with its connection
        self._directory = session.shared.directory
        self._generation = self._directory.generation
        self._counters = session.shared.counters
        self._gather = gather

    @property
    def live(self) -> bool:
        """Tell whether the mapping is still in force."""
        return self._directory.generation == self._generation and not self._mapping.fault

    def take(self, data: bytes, done: Done) -> bool:
        """Take one get, where it is plain and alone in the input; tells whether `done` will be called.

        Args:
            data: what arrived, at the beginning of a command.
            done: takes the reply.
        """
        asked = GET.fullmatch(data)
        if asked is None or not self.live:
            return False
        word = asked[1]
        try:
            key = None if self._counters.prefixes.counting else self._session.looked_up(self._mapping, word)
        except RefusedError:
            return False
        return key is not None and self._gather(self._mapping, PlainGet(self, word, key, 0, done))

    def shown(self, word: bytes, row: Row | None) -> bytes:
        """Return the reply to a get, and count it."""
        self._counters.cmd_get += 1
        if row is None or self._session.expired(row, int(time.time())):
            self._counters.get_misses += 1
            return END
        self._counters.get_hits += 1
        item = self._session.item(word, row)
        return shown(word, item.flags, item.data) + END
