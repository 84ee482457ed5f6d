"""Plan the commands of one mapping from the text that a connection receives: one check of each usual line.

The planner takes commands at the beginning of the input, in the one spelling that every profile parses in the same
way, and stops at the first other one (`Stop`): that and what follows is for the parser. Bound once for a mapping, the
rights and the rules of the profile: a verb that a listener withholds has no planner, and is rejected by the parser's
path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kvref.engine.plans.deciders import Deciders
from kvref.engine.plans.plan import EXPIRY, HIT
from kvref.engine.plans.retrieve import Retrieval, SeveralTouched, with_cas
from kvref.engine.plans.store import VERBS
from kvref.engine.plans.words import Words
from kvref.protocol import commands as c
from kvref.protocol.command_table import TIMED_VERBS, text_form
from kvref.protocol.hits import END, renamed
from kvref.protocol.rules import MAX_KEY, WireRules
from kvref.server.planners.base import (
    INCOMPLETE,
    MAX_BYTES,
    MAX_COMMANDS,
    MAX_READ,
    MAX_VALUE,
    UNUSUAL,
    Planning,
    PlanQueue,
    Stop,
)
from kvref.server.planners.binary import BinaryPlanner
from kvref.server.planners.meta import MetaLines
from kvref.server.planners.prefixes import CountingQueue, CountingWork, WordsWithoutMapping
from kvref.server.scheduler import Work
from kvref.server.slots import Slots
from kvref.server.telemetry.command_times import CommandTimes
from kvref.storage.planned_rows import KnownRows

MAX_WORDS: Final = 100  # of a get; the rows of more are read in parts, with turns for the other connections
MAX_DIGITS: Final = 9  # of flags, exptime and length in the usual spelling
MAX_OPEN_LINE: Final = 1024  # bytes of a line whose end has not arrived
MAX_BURST: Final = 2 << 10  # bytes of consecutive gets that are answered together
_NUMBERS: Final = {b"%d" % number: number for number in range(1 << 12)}  # most that commands have
_INCOMPLETE: Final = INCOMPLETE
_UNUSUAL: Final = UNUSUAL
_Planner = Callable[[list[bytes], bytes, int, Slots], int]


class Planner(Planning):
    """Plan commands of one mapping, for all connections that have it in force with the same rights.

    Args:
        fresh: returns whether cached rows are valid at a loop time; called before input is planned.
        counts: prefixes of keys are counted.

    Attributes:
        frames: plans the binary commands of the same connections.
    """

    gets = b"get "

    def __init__(
        self,
        work: Work[KnownRows],
        words: Words,
        scheduler: PlanQueue,
        wire_rules: WireRules,
        fresh: Callable[[float], bool],
        *,
        counts: bool = False,
    ) -> None:
        super().__init__(work, words, scheduler, wire_rules)
        self.fresh = fresh
        self._counts = counts
        self._counter: Planner | None = None
        self._wire_rules = wire_rules
        self._bound = work.bound
        self._ends_data = wire_rules.checks_data_end
        self._retrieval = Retrieval(work.bound)
        self._planners = self._bind(wire_rules)

    def _bind(self, wire_rules: WireRules) -> dict[bytes, _Planner]:
        """Return the planner of each verb that the listener does not withhold and the profile has."""
        deciders = Deciders(self._bound)
        self._deletion, self._sums, self._touching = deciders.deletion, deciders.sums, deciders.touching
        self._storage_verbs = {verb.encode(): (verb, decide) for verb, decide in deciders.stores.items()}
        families: list[tuple[c.Command, _Planner, Sequence[bytes]]] = [
            (c.Get([], with_cas=False), self._get, (b"get", b"gets", b"bget")),
            (c.Store("set", b"", 0, 0, b""), self._set, [verb.encode() for verb in VERBS if verb != "cas"]),
            (c.Store("cas", b"", 0, 0, b""), self._cas, (b"cas",)),
            (c.Delete(b""), self._delete, (b"delete",)),
            (c.Touch(b"", 0), self._touch, (b"touch",)),
            (c.GetAndTouch([], 0, with_cas=False), self._get_and_touch, (b"gat", b"gats")),
        ]
        if self._sums.complete:
            families.append((c.Arithmetic(increment=True, word=b"", delta=0), self._add, (b"incr", b"decr")))
        self.frames = BinaryPlanner(self._work, self._words, self._scheduler, wire_rules, deciders, self.fresh)
        if not self._counts:
            self.frames.counting = lambda: self._counting().frames
        self._meta = MetaLines(self._work, self._words, self._scheduler, wire_rules, deciders)
        return self._meta.planners | {
            verb: planner
            for record, planner, verbs in families
            if self._words.runs(record)
            for verb in verbs
            if text_form(verb, wire_rules) is not None
        }

    @property
    def verbs(self) -> frozenset[bytes]:
        return frozenset(self._planners)

    @property
    def live(self) -> bool:
        """Return whether mapping and settings are as they were."""
        return self._source.live

    def _counting(self) -> Planner:
        """Return the planner of the same commands while prefixes of keys are counted."""
        if self._counter is None:
            work: Any = CountingWork(self._work)
            words: Any = WordsWithoutMapping(self._words)
            self._counter = Planner(
                work, words, CountingQueue(self._scheduler), self._wire_rules, self.fresh, counts=True
            )
        return self._counter

    def hit(self, data: bytes) -> bytes | None:
        """Return the reply to a get of a known row that is not expired, alone in input that begins so; else None.

        The shortest of the answers without a plan: it shows the rows that the scheduler reads and writes.
        """
        word = data[4:-2]
        key = word
        row = self._rows.rows.get(word)
        if row is None:
            name = self._words.name
            if not (name and word.startswith(name)) or len(word) > self._max_word:
                return None
            key = word[len(name) :]
            row = self._rows.rows.get(key)
        if row is None or data[-2:] != b"\r\n":
            return None
        counters = self._counters
        if counters.prefixes.counting or not self._source.live:
            return None
        if row[EXPIRY] and self._is_over(row[EXPIRY]):
            return None
        counters.cmd_get += 1
        counters.get_hits += 1
        self._rows.hits += 1
        self._accesses.fetched(key)  # at the time of the last tick: reading the clock takes longer than all else
        return (row[HIT] if key is word else renamed(row[HIT], key, word)) + END

    def take(self, data: bytes, slots: Slots, times: CommandTimes | None) -> tuple[int, Stop]:
        """Plan or answer the commands at the beginning of the input; return how many bytes, and why no more."""
        if not self._source.live or (self._counters.prefixes.counting and not self._counts):
            return self._counting().take(data, slots, times) if self._source.live else (0, Stop.UNUSUAL)
        out = slots.begin()
        if times is not None and out.names is None:
            out.names, out.started = [], times.now()
        stop, length, most = Stop.END, len(data), len(out) + MAX_COMMANDS
        bursts = slots.direct and data[:4] == b"get " and b"\r\nget " in data[: 2 * MAX_KEY]
        at = self._burst(data, 0, slots) if bursts else 0
        planners, work, line_limit = self._planners, self._work, self._wire_rules.line_limit
        planned = len(work.plans)
        while at < length:
            end = data.find(b"\r\n", at)
            if end < 0:
                waits = length - at <= MAX_OPEN_LINE and data.find(b"\n", at) < 0  # else the line ends without CR
                stop = Stop.INCOMPLETE if waits else Stop.UNUSUAL
                break
            if end - at >= line_limit:  # the parser rejects it
                stop = Stop.UNUSUAL
                break
            words = data[at:end].split(b" ")
            next_at = planners.get(words[0], _unusual)(words, data, end + 2, slots)
            if next_at < 0:
                stop = Stop.INCOMPLETE if next_at == _INCOMPLETE else Stop.UNUSUAL
                break
            at = next_at
            if out.names is not None:
                out.names += [TIMED_VERBS[words[0]]] * (len(out) - len(out.names))
            if len(out) >= most or slots.size > MAX_BYTES or slots.reads * self._rows.largest > MAX_READ:
                stop = Stop.TURN if at < length else Stop.END
                break
        if self._direct or self._misses:
            self._settle_direct()
        self.direct_reads += self._meta.direct_reads
        self._meta.direct_reads = 0
        if not slots.planned:
            if len(work.plans) > planned:
                self._scheduler.add(work, slots)
            else:
                slots.end_chunk()
        return at, stop

    def _burst(self, data: bytes, next_at: int, slots: Slots) -> int:
        """Answer consecutive gets of one known row each; return the offset after them."""
        window = data[next_at + 4 : next_at + MAX_BURST]
        words = window.split(b"\r\nget ")
        last = words.pop()  # it may be cut off, or precede another command
        if last.endswith(b"\r\n") and next_at + MAX_BURST >= len(data):
            words.append(last[:-2])
        known, keys, name = self._rows.rows, words, self._words.name
        hits: list[bytes] = []
        for word in words:
            row = known.get(word)
            if row is None:
                if not (name and word.startswith(name)) or len(word) > self._max_word:
                    break
                key = word[len(name) :]
                row = known.get(key)
                if row is None:
                    break
                if keys is words:
                    keys = words[:]
                keys[len(hits)] = key
                hits.append(renamed(row[HIT], key, word) + END)
            else:
                hits.append(row[HIT] + END)
            if row[EXPIRY] and self._is_over(row[EXPIRY]):
                hits.pop()
                break
        if not hits or not self._reply_hits(hits, keys, slots):
            return next_at
        del words[len(hits) :]
        return next_at + sum(map(len, words)) + len(hits) * len(b"get \r\n")

    def _get(self, words: list[bytes], data: bytes, next_at: int, slots: Slots) -> int:
        if len(words) != 2:
            return self._get_many(words, next_at, slots)
        verb, word = words
        row = self._rows.rows.get(word)
        key = word
        if row is None:
            if word in self._rows.missing and slots.direct:
                self._misses += 1
                slots.reply(END)
                return next_at
            if not self._is_word(word):
                named = self._named_key(word)
                if named is None:
                    return _UNUSUAL
                key = named
                row = self._rows.rows.get(key)
        if row is None or not slots.direct or (row[EXPIRY] and self._is_over(row[EXPIRY])):
            self._plan_read(self._retrieval.gets if verb == b"gets" else self._retrieval.get, key, word, slots)
            return next_at
        self._direct.append(key)
        hit = with_cas(row[HIT], row) if verb == b"gets" else row[HIT]
        slots.reply((hit if key is word else renamed(hit, key, word)) + END)
        return self._burst(data, next_at, slots) if data.startswith(b"get ", next_at) else next_at

    def _get_many(self, words: list[bytes], next_at: int, slots: Slots) -> int:
        sought = words[1:]
        if not sought or len(sought) > MAX_WORDS:
            return _UNUSUAL
        known, missing = self._rows.rows, self._rows.missing
        hits: list[bytes] = []
        found: list[bytes] = []
        for word in sought:
            row = known.get(word)
            if row is None or row[EXPIRY]:
                if row is not None or word not in missing:
                    break
            else:
                hits.append(row[HIT])
                found.append(word)
        else:
            if slots.direct and words[0] != b"gets" and sum(map(len, hits)) < MAX_BYTES:
                self._misses += len(sought) - len(hits)
                self._further += 0 if self._counts_each_key else len(sought) - 1
                self._direct += found
                hits.append(END)
                slots.reply(b"".join(hits))
                return next_at
        shown = keys = tuple(sought)
        if not all(word in known or self._is_word(word) for word in sought):
            named = [self._key(word) for word in sought]
            keys = tuple([key for key in named if key is not None])
            if len(keys) < len(named):
                return _UNUSUAL
        self._plan_read(self._retrieval.get_many, keys, (words[0] == b"gets", shown), slots)
        return next_at

    def _set(self, words: list[bytes], data: bytes, next_at: int, slots: Slots, number: int = 0) -> int:
        """Plan a storage command; `number`: the cas number of a cas, which is not among the words."""
        quiet = len(words) == 6 and words[5] == b"noreply"
        if len(words) != 5 and not quiet:
            return _UNUSUAL
        verb, word, flags, exptime, size = words[:5] if quiet else words
        flag_bits, time, length = _NUMBERS.get(flags), _NUMBERS.get(exptime), _NUMBERS.get(size)
        if flag_bits is None or time is None or length is None:
            flag_bits, time, length = _number(flags), _number(exptime), _number(size)
            if flag_bits < 0 or time < 0 or length < 0:
                return _UNUSUAL
        key = word if word in self._rows.rows or self._is_word(word) else self._key(word, switches=True)
        if key is None or length > MAX_VALUE or not (self._takes_all or self._lines.takes(word, length)):
            return _UNUSUAL  # the parser may reject it before the data is there
        end = next_at + length
        if data[end : end + 2] != b"\r\n":
            waits = len(data) < (end + 2 if self._ends_data else end)
            return _INCOMPLETE if waits else _UNUSUAL
        name, decide = self._storage_verbs[verb]
        self._rows.plan_write(key)
        out = slots.current
        assert out is not None, "called while input is planned"
        self._work.writers.add(out)
        self._work.plans.append((decide, key, (name, flag_bits, time, data[next_at:end], number, quiet), out, len(out)))
        out.append(b"")
        return end + 2

    def _cas(self, words: list[bytes], data: bytes, next_at: int, slots: Slots) -> int:
        if len(words) < 6 or not _is_number(words[5], 19):
            return _UNUSUAL
        return self._set(words, data, next_at, slots, int(words.pop(5)))

    def _delete(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        quiet = len(words) == 3 and words[2] == b"noreply"
        key = self._key(words[1], switches=self._all_switch) if quiet or len(words) == 2 else None
        if key is None:
            return _UNUSUAL
        self._plan_write(self._deletion.delete, key, quiet, slots)
        return next_at

    def _add(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        quiet = len(words) == 4 and words[3] == b"noreply"
        if not (quiet or len(words) == 3) or not _is_number(words[2], 19):
            return _UNUSUAL
        key = self._key(words[1], switches=self._all_switch)
        if key is None:
            return _UNUSUAL
        command = c.Arithmetic(words[0] == b"incr", words[1], int(words[2]), quiet)
        self._plan_write(self._sums.add, key, command, slots)
        return next_at

    def _touch(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        quiet = len(words) == 4 and words[3] == b"noreply"
        if not (quiet or len(words) == 3) or not _is_number(words[2], 9):
            return _UNUSUAL
        key = self._key(words[1], switches=True)
        if key is None:
            return _UNUSUAL
        self._plan_write(self._touching.touch, key, (int(words[2]), quiet), slots)
        return next_at

    def _get_and_touch(self, words: list[bytes], _data: bytes, next_at: int, slots: Slots) -> int:
        count = len(words) - 2
        if not 0 < count <= MAX_WORDS or not _is_number(words[1], 9):
            return _UNUSUAL
        exptime, cas = int(words[1]), words[0] == b"gats"
        keys = [self._key(word, switches=True) for word in words[2:]]
        if None in keys:
            return _UNUSUAL
        if count == 1:
            assert keys[0] is not None, "it was checked"
            self._plan_write(self._touching.get_and_touch, keys[0], (exptime, cas, words[2]), slots)
            return next_at
        several = SeveralTouched(count, exptime, cas=cas)
        for place, (key, word) in enumerate(zip(keys, words[2:], strict=True)):
            assert key is not None, "it was checked"
            self._plan_write(self._touching.get_and_touch_one, key, (several, place, word), slots)
        return next_at


def _unusual(_words: list[bytes], _data: bytes, _next_at: int, _slots: Slots) -> int:
    return _UNUSUAL


def _is_number(word: bytes, digits: int) -> bool:
    return len(word) <= digits and word.isdigit()


def _number(word: bytes) -> int:
    """Return a number of digits alone, -1 for any other word."""
    return int(word) if len(word) <= MAX_DIGITS and word.isdigit() else -1
