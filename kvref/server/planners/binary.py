"""Plan frames of the binary protocol: one check of each header, the first bytes of which most clients repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kvref.engine.plans.deciders import Deciders
from kvref.engine.plans.frames import FrameReads, FrameWrites
from kvref.engine.plans.plan import EXPIRY
from kvref.engine.plans.words import Words
from kvref.protocol import commands as c
from kvref.protocol.binary import is_too_large, miss_frame, reply_frame
from kvref.protocol.command_table import ROWS, binary_form, timed_as
from kvref.protocol.opcodes import HEADER_SIZE, REQUEST, Body, Opcode, header_at
from kvref.protocol.rules import WireRules
from kvref.server.planners.base import MAX_BYTES, MAX_COMMANDS, MAX_READ, MAX_VALUE, Planning, PlanQueue, Stop
from kvref.server.scheduler import Work
from kvref.server.slots import Slots
from kvref.server.telemetry.command_times import CommandTimes
from kvref.storage.planned_rows import KnownRows

_SHAPE: Final = 12  # bytes of a header that decide what its frame is; the opaque and the cas number follow
MAX_SHAPES: Final = 1 << 12
MAX_BURST: Final = 8 << 10  # bytes of input whose gets are answered together
_OPAQUE: Final = slice(12, 16)
_GET: Final = c.Get([], with_cas=True)
_NOOP: Final = c.Noop()


class _Shape(NamedTuple):
    """What frames with the same first bytes of their headers have in common.

    plan: plans one and returns a command that is measured alike, None if the frame is unusual.
    size: of a frame in bytes.
    gets: it is a get.
    """

    plan: Callable[[_Shape, bytes, Slots], c.Command | None]
    size: int
    number: int
    form: Opcode
    gets: bool


class BinaryPlanner(Planning):
    """Plan binary commands of one mapping; `counting` returns the planner while prefixes of keys are counted."""

    gets = tuple(bytes([REQUEST, number]) for number in ROWS[c.Get].binary)

    def __init__(
        self,
        work: Work[KnownRows],
        words: Words,
        scheduler: PlanQueue,
        wire_rules: WireRules,
        deciders: Deciders,
        fresh: Callable[[float], bool],
    ) -> None:
        super().__init__(work, words, scheduler, wire_rules)
        self.fresh = fresh
        self.counting: Callable[[], BinaryPlanner] | None = None
        self._rules = wire_rules
        self._reads = FrameReads(work.bound)
        self._writes = FrameWrites(work.bound, deciders)
        self._shapes: dict[bytes, _Shape] = {}
        self._opcodes = self._bind(deciders)

    def _bind(self, deciders: Deciders) -> dict[int, tuple[Callable[[_Shape, bytes, Slots], c.Command | None], Opcode]]:
        """Return what plans each opcode that the listener does not withhold and the profile has, and its form."""
        families: list[tuple[c.Command, Callable[[_Shape, bytes, Slots], c.Command | None]]] = [
            (_GET, self._get),
            (_NOOP, self._noop),
            (c.Store("set", b"", 0, 0, b""), self._write),
            (c.Delete(b""), self._write),
            (c.GetAndTouch([], 0, with_cas=True), self._write),
        ]
        if deciders.sums.complete:
            families.append((c.Arithmetic(increment=True, word=b"", delta=0), self._write))
        return {
            number: (plan, form)
            for record, plan in families
            if self._words.runs(record)
            for number in ROWS[type(record)].binary
            if (form := binary_form(number, self._rules)) is not None
        }

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to a get of a known row that is alone in input, else None; see `Planner.hit`."""
        shape = self._shapes.get(data[:_SHAPE])
        if shape is None or shape.size != len(data):
            return None
        word = data[HEADER_SIZE:]
        row = self._rows.rows.get(word)
        counters = self._counters
        if row is None or counters.prefixes.counting or not self._source.live:
            return None
        if row[EXPIRY] and self._is_over(row[EXPIRY]):
            return None
        counters.cmd_get += 1
        counters.get_hits += 1
        self._rows.hits += 1
        self._accesses.fetched(word)
        return self._reads.found(row, shape.number, data[_OPAQUE], word if shape.form.with_key else b"")

    def take(self, data: bytes, slots: Slots, times: CommandTimes | None) -> tuple[int, Stop]:
        """Plan the commands at the beginning of the input, see `Planner.take`."""
        if self.counting is not None and self._counters.prefixes.counting:
            return self.counting().take(data, slots, times)
        if not self._source.live:
            return 0, Stop.UNUSUAL
        out = slots.begin()
        if times is not None and out.names is None:
            out.names, out.started = [], times.now()
        stop, length, most = Stop.END, len(data), len(out) + MAX_COMMANDS
        bursts = slots.direct and length <= MAX_BURST and data.startswith(self.gets)
        at = self._burst(data, slots) if bursts else 0
        work = self._work
        planned = len(work.plans)
        while at < length:
            shape = self._shapes.get(data[at : at + _SHAPE]) or self._shape(data, at)
            if shape is None or at + shape.size > length:
                stop = Stop.UNUSUAL if shape is None and length - at >= HEADER_SIZE else Stop.INCOMPLETE
                break
            command = shape.plan(shape, data[at : at + shape.size], slots)
            if command is None:
                stop = Stop.UNUSUAL
                break
            at += shape.size
            if out.names is not None:
                out.names += [timed_as(command)] * (len(out) - len(out.names))
            if len(out) >= most or slots.size > MAX_BYTES or slots.reads * self._rows.largest > MAX_READ:
                stop = Stop.TURN if at < length else Stop.END
                break
        if self._direct or self._misses:
            self._settle_direct()
        if not slots.planned:
            if len(work.plans) > planned:
                self._scheduler.add(work, slots)
            else:
                slots.end_chunk()
        return at, stop

    def _burst(self, data: bytes, slots: Slots) -> int:
        """Answer gets of known rows at the beginning of input; return the offset after them."""
        known, shapes, found = self._rows.rows, self._shapes, self._reads.found
        hits: list[bytes] = []
        words: list[bytes] = []
        at, length = 0, len(data)
        while at < length:
            shape = shapes.get(data[at : at + _SHAPE])
            if shape is None:
                break
            _, size, number, form, gets = shape
            word = data[at + HEADER_SIZE : at + size]
            row = known.get(word)
            if row is None or row[EXPIRY] or not gets or at + size > length:
                break
            hits.append(found(row, number, data[at + _SHAPE : at + _SHAPE + 4], word if form.with_key else b""))
            words.append(word)
            at += size
        return at if self._reply_hits(hits, words, slots) else 0

    def _shape(self, data: bytes, at: int) -> _Shape | None:
        """Return what a frame is, None where it is unusual or must still come."""
        if len(data) < at + HEADER_SIZE:
            return None
        header = header_at(data, at)
        plan, form = self._opcodes.get(header.opcode, (None, None))
        if plan is None or form is None or header.magic != REQUEST or header.vbucket:
            return None
        if header.key_length > self._rules.key_limit or not form.accepts(header):
            return None
        if form.value and (header.value_length > MAX_VALUE or is_too_large(header, self._rules)):
            return None
        if len(self._shapes) >= MAX_SHAPES:
            self._shapes.clear()
        shape = _Shape(plan, HEADER_SIZE + header.body_length, header.opcode, form, header.opcode in ROWS[c.Get].binary)
        self._shapes[data[at : at + _SHAPE]] = shape
        return shape

    def _noop(self, shape: _Shape, data: bytes, slots: Slots) -> c.Command:
        slots.reply(reply_frame(c.Frame(shape.number, data[_OPAQUE])))
        return _NOOP

    def _get(self, shape: _Shape, data: bytes, slots: Slots) -> c.Command | None:
        word = data[HEADER_SIZE:]
        row = self._rows.rows.get(word)
        key = word if row is not None or word in self._rows.missing else self._key(word)
        if key is None:
            return None
        if row is None:
            row = self._rows.rows.get(key)
        if slots.direct and row is not None and not (row[EXPIRY] and self._is_over(row[EXPIRY])):
            self._direct.append(key)
            slots.reply(self._reads.found(row, shape.number, data[_OPAQUE], word if shape.form.with_key else b""))
            return _GET
        frame = c.Frame(shape.number, data[_OPAQUE], word, shape.form.quiet, shape.form.with_key)
        if slots.direct and row is None and word in self._rows.missing:
            self._misses += 1
            slots.reply(miss_frame(frame))
            return _GET
        self._plan_read(self._reads.get, key, c.Get([word], with_cas=True, frame=frame), slots)
        return _GET

    def _write(self, shape: _Shape, data: bytes, slots: Slots) -> c.Command | None:
        header, form = header_at(data, 0), shape.form
        key_at = HEADER_SIZE + header.extras_length
        value_at = key_at + header.key_length
        word = data[key_at:value_at]
        command = form.build(header, Body(data[HEADER_SIZE:key_at], word, data[value_at:]), self._rules)
        command.frame = c.Frame(header.opcode, header.opaque, word, form.quiet, form.with_key)
        switches = self._all_switch if isinstance(command, c.Delete | c.Arithmetic) else True
        key = self._key(word, switches=switches)
        if key is None:
            return None
        match command:
            case c.Delete():
                decide: Callable[..., object] = self._writes.delete
            case c.Store() if command.exptime >= 0:
                decide = self._writes.store
            case c.Arithmetic() if command.exptime >= 0 or command.initial is None:
                decide = self._writes.add
            case c.GetAndTouch() if command.exptime >= 0:
                decide = self._writes.touch
            case _:
                return None  # a time that has passed
        self._plan_write(decide, key, command, slots)
        return command
