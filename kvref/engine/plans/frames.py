"""Decide commands of the binary protocol, by the deciders of the text protocol; the command of a plan is its record."""

from __future__ import annotations

from typing import Final

from kvref.engine.items import storage
from kvref.engine.plans.arithmetic import Arithmetic
from kvref.engine.plans.bound import Bound
from kvref.engine.plans.deciders import Deciders
from kvref.engine.plans.plan import CAS, FLAGS, HIT, MAX_CACHED, CachedRow, Decision, Parameters
from kvref.engine.plans.retrieve import FOUND, MISSED
from kvref.engine.plans.store import OUTCOMES
from kvref.engine.values import RefusedError, shown_flags
from kvref.protocol import commands as c
from kvref.protocol.binary import encode, found_frame, miss_frame
from kvref.protocol.hits import data_of
from kvref.protocol.replies import Number, Reply, Status

_TOP: Final = 1 << 64


class FrameReads:
    """Decide binary gets of one mapping."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def get(self, row: CachedRow, word: bytes, command: c.Get) -> Decision:
        bound, frame = self._bound, _frame(command)
        if not row[HIT] or bound.count_expired(row):
            bound.counted.append(MISSED)
            return miss_frame(frame), None, None
        bound.counted.append(FOUND)
        bound.events.append(word)
        if len(row[HIT]) > MAX_CACHED:
            bound.check_reply(word, row)
        return self.shown(row, frame), None, None

    def shown(self, row: CachedRow, frame: c.Frame) -> bytes:
        """Return the reply to a request that has found a row."""
        return self.found(row, frame.opcode, frame.opaque, frame.key if frame.with_key else b"")

    @staticmethod
    def found(row: CachedRow, opcode: int, opaque: bytes, key: bytes) -> bytes:
        """Return what `shown` does to a request with this opcode and opaque; `key`: as the reply has it, or empty."""
        return found_frame(opcode, opaque, key, shown_flags(row[FLAGS]), data_of(row[HIT]), (row[CAS] or 0) % _TOP)


class FrameWrites(FrameReads):
    """Decide the other binary commands of one mapping."""

    def __init__(self, bound: Bound, deciders: Deciders) -> None:
        super().__init__(bound)
        self._stores = deciders.stores
        self._deletion, self._touching = deciders.deletion, deciders.touching
        self._sums = Arithmetic(bound, numbered=True)
        self._stores_any_cas = storage.stores_any_cas(bound.mapping)

    def store(self, row: CachedRow, word: bytes, command: c.Store) -> Decision:
        inner = command.verb, command.flags, command.exptime, command.data, command.cas, False
        shown, new, parameters = self._stores[command.verb](row, word, inner)
        number = 0
        if new is not None:
            number = (new[CAS] or 0) if self._stores_any_cas else self._bound.session.written_cas
        return encode(command, _frame(command), OUTCOMES[shown], number), new, parameters

    def delete(self, row: CachedRow, _word: bytes, command: c.Delete) -> Decision:
        status, new = self._deletion.removed(row, command.cas)
        return encode(command, _frame(command), status, 0), new, None

    def add(self, row: CachedRow, word: bytes, command: c.Arithmetic) -> Decision:
        bound = self._bound
        session = bound.session
        session.written_cas = 0
        result: int | Status = Status.NOT_STORED
        new: CachedRow | None = None
        parameters: Parameters | None = None
        try:
            result, new, parameters = self._sums.sum(row, word, command)
        except RefusedError:
            if not bound.rules.answers_missing_key:
                bound.refused_cas = session.written_cas
                raise
        if isinstance(result, Status) and bound.rules.answers_missing_key:
            if result is not Status.NOT_FOUND:
                bound.counted.append(self._sums.found[command.increment])
            result = 0  # 5.6.14 reports no failure, see `arithmetic.arithmetic`
        reply: Reply = result if isinstance(result, Status) else Number(result)
        return encode(command, _frame(command), reply, session.written_cas), new, parameters

    def touch(self, row: CachedRow, word: bytes, command: c.GetAndTouch) -> Decision:
        frame = _frame(command)
        found, new, parameters = self._touching.retimed(row, word, command.exptime)
        return self.shown(row, frame) if found else miss_frame(frame), new, parameters


def _frame(command: c.Command) -> c.Frame:
    assert command.frame is not None, "of the binary protocol"
    return command.frame
