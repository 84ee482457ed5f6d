"""Plan the lines of the meta commands mg, ms, md, ma and mn.

The flags of a line are parsed once for all lines that have the same ones: only word, length and data are read of each.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from kvref.engine.plans.deciders import Deciders
from kvref.engine.plans.meta import MetaReads, MetaWrites
from kvref.engine.plans.plan import ABSENT, EXPIRY, HIT
from kvref.engine.plans.words import Words
from kvref.protocol import commands as c
from kvref.protocol import meta
from kvref.protocol.grammar import Block, Parsed
from kvref.protocol.replies import Status
from kvref.protocol.rules import WireRules
from kvref.server.planners.base import INCOMPLETE, MAX_VALUE, UNUSUAL, Planning, PlanQueue
from kvref.server.scheduler import Work
from kvref.server.slots import Slots
from kvref.storage.planned_rows import KnownRows

MAX_SHAPES: Final = 1 << 10  # of the flags of lines
MAX_DIGITS: Final = 9  # of a length
_USUAL: Final = re.compile(rb"[!-~]+").fullmatch  # a verb or a flag
_BASE64: Final = b"b"
_ANY: Final = b"YQ=="  # a word, in base64 or not
# Commands like those in meta commands.
_PARTS: Final[tuple[c.Command, ...]] = c.Get([], with_cas=False), c.Store("set", b"", 0, 0, b""), c.Delete(b"")

Parse = Callable[[list[bytes], WireRules], Parsed]
Planner = Callable[[list[bytes], bytes, int, Slots], int]


class MetaLines(Planning):
    """Plan meta commands of one mapping."""

    def __init__(
        self, work: Work[KnownRows], words: Words, scheduler: PlanQueue, wire_rules: WireRules, deciders: Deciders
    ) -> None:
        super().__init__(work, words, scheduler, wire_rules)
        self._rules = wire_rules
        self._bound = work.bound
        self._reads = MetaReads(work.bound, words.session, meta.encode)
        self._writes = MetaWrites(work.bound, words.session, deciders, meta.encode)
        self._counts = deciders.sums.complete
        self._may_write = words.runs(c.MetaSet(b"", []))
        # By verb and flags: the record of a line with any word and no data; None for unusual lines.
        self._shapes: dict[tuple[bytes, ...], c.MetaRequest | None] = {}

    @property
    def planners(self) -> dict[bytes, Planner]:
        """Return what plans each verb; none if the items of some may be elsewhere than in the table."""
        if not self._rules.beyond_plugin or not all(self._words.leads_to_table(each) for each in _PARTS):
            return {}
        writing: dict[bytes, Planner] = {b"ms": self._set, b"md": self._delete}
        if self._counts:
            writing[b"ma"] = self._add
        return {b"mg": self._get, b"mn": self._noop} | (writing if self._may_write else {})

    def _noop(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        if len(words) > 1:
            return UNUSUAL
        slots.reply(Status.NOOP.value)
        return next_at

    def _get(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        word, shape = self._parsed(words, words[2:], meta.get)
        key = self._key(word)
        if not isinstance(shape, c.MetaGet) or key is None:
            return UNUSUAL
        command = c.MetaGet(word, shape.options, shape.exptime, shape.vivify, shape.recache)
        if shape.exptime is not None or shape.vivify is not None:
            if not self._may_write or _is_negative(shape.exptime, shape.vivify):
                return UNUSUAL
            self._plan_write(self._writes.get_and_write, key, command, slots)
            return next_at
        shows_access = command.shows_access
        row = ABSENT if key in self._rows.missing else self._rows.rows.get(key)
        if row is None or row[EXPIRY] or shows_access or not slots.direct:
            self._plan_read(self._reads.get, key, command, slots, passes=not shows_access)
            return next_at
        self._bound.now = int(time.time())
        reply, _, _ = self._reads.get(row, key, command)
        self._bound.settle()
        self._rows.hits += bool(row[HIT])
        self.direct_reads += 1
        slots.reply(reply)
        return next_at

    def _set(self, words: list[bytes], data: bytes, next_at: int, slots: Slots) -> int:
        if len(words) < 3 or not words[2].isdigit() or len(words[2]) > MAX_DIGITS:
            return UNUSUAL
        length = int(words[2])
        word, shape = self._parsed(words, words[3:], meta.set_)
        key = self._key(word)
        if not isinstance(shape, c.MetaSet) or key is None or _is_negative(shape.exptime):
            return UNUSUAL
        if length > MAX_VALUE or not (self._takes_all or self._lines.takes(word, length)):
            return UNUSUAL
        end = next_at + length
        if data[end : end + 2] != b"\r\n":
            return INCOMPLETE if len(data) < end + 2 else UNUSUAL
        command = c.MetaSet(
            word, shape.options, shape.verb, shape.flags, shape.exptime, shape.cas, shape.stale, data[next_at:end]
        )
        self._plan_write(self._writes.set, key, command, slots)
        return end + 2

    def _delete(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        word, shape = self._parsed(words, words[2:], meta.delete)
        key = self._key(word)
        if not isinstance(shape, c.MetaDelete) or key is None or _is_negative(shape.exptime):
            return UNUSUAL
        command = c.MetaDelete(word, shape.options, shape.cas, shape.exptime, shape.stale)
        self._plan_write(self._writes.delete, key, command, slots)
        return next_at

    def _add(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        word, shape = self._parsed(words, words[2:], meta.arithmetic)
        key = self._key(word)
        if not isinstance(shape, c.MetaArithmetic) or key is None or _is_negative(shape.exptime, shape.vivify):
            return UNUSUAL
        command = c.MetaArithmetic(
            word, shape.options, shape.increment, shape.delta, shape.initial, shape.vivify, shape.cas, shape.exptime
        )
        self._plan_write(self._writes.add, key, command, slots)
        return next_at

    def _parsed(self, words: list[bytes], flags: list[bytes], parse: Parse) -> tuple[bytes, c.MetaRequest | None]:
        """Return the word of a line and its record, in which word and data do not count; None if it is unusual."""
        if len(words) < 2:
            return b"", None
        shape = (words[0], *flags)
        if shape not in self._shapes:
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            self._shapes[shape] = self._record([words[0], _ANY, *words[2:]], parse) if all(map(_USUAL, shape)) else None
        record = self._shapes[shape]
        if record is not None and _BASE64 in flags:
            record = self._record(words, parse)  # the word is another one
            return b"" if record is None else record.word, record
        return words[1], record

    def _record(self, words: list[bytes], parse: Parse) -> c.MetaRequest | None:
        parsed = parse(words, self._rules)
        record = parsed.store if isinstance(parsed, Block) else parsed
        return record if isinstance(record, c.MetaRequest) else None


def _is_negative(*times: int | None) -> bool:
    return any(time is not None and time < 0 for time in times)
