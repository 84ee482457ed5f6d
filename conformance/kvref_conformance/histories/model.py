"""The acceptor: what each step of a history may show, and what it does to batches, locks and snapshots.

It shares no code with a server. Sources: transactions page, sections 1 to 5; `innodb_api_cursor_reset` and
`innodb_conn_init` of the plugin. Steps that `care.py` refuses must not be given to it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from kvref_conformance.histories import steps as s
from kvref_conformance.histories.expected import CAS, Answer, Closed, Expected, Numbers, Refill, Seen, Silence
from kvref_conformance.histories.rows import Number, Place, Row, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvref_conformance.histories.rules import Limits, Rules

# Cas numbers that SQL writes: no endpoint counts so far, none begins so low and so high at once.
SQL_NUMBERS: Final = 7 << 56
WRONG_NUMBER: Final = (1 << 62) + 1
FENCE: Final = "fence"
TIMED_OUT: Final = "SERVER_ERROR lock wait timeout\r\n"
Locking: TypeAlias = s.Store | s.Incr | s.Delete | s.Get


@dataclass
class Connection:
    """A memcached connection.

    Args:
        mapping: bound.
        slot: the worker thread that serves it.
        reads: counted since the last commit; `writes` likewise.
        snapshot: the moment its transaction reads at; None: not fixed yet.
        wrote: its transaction has come to a write.
        has_written: it has come to a write since the mapping was bound.
        touched: tables it has read or written since the mapping was bound.
        seen: the cas numbers that `gets` has shown it.
        waits: what it waits with.
    """

    mapping: str
    slot: int
    reads: int = 0
    writes: int = 0
    snapshot: int | None = None
    wrote: bool = False
    has_written: bool = False
    touched: set[str] = field(default_factory=set)
    seen: dict[Place, Number] = field(default_factory=dict)
    waits: Locking | None = None


class Model:
    """The state of an endpoint in a history.

    Args:
        rules: facts of the profile in force.
        limits: settings in force.
        words: what a switch word answers, by mapping; a switch word by its name at the endpoint in `names`.
        names: of the mappings at the endpoint.
        threads: worker threads of the endpoint, served in turn.
        rows: committed at the beginning.
    """

    def __init__(
        self,
        rules: Rules,
        limits: Limits,
        names: Mapping[str, str],
        words: Mapping[str, tuple[str, ...]],
        threads: int,
        rows: Iterable[tuple[str, str, str]],
    ) -> None:
        self.rules, self.limits, self.names, self.words = rules, limits, names, words
        self.threads = threads
        self.rows = Rows()
        self.numbers = Numbers()
        self.open: dict[str, Connection] = {}
        self.sql_open = False
        self.timeouts = 0
        self._connected = 0
        self._sql_numbers = itertools.count(SQL_NUMBERS)
        fences = {(table, key): self._of_sql(FENCE) for table in ("t1", "t2") for key in s.FENCES}
        self.rows.put(fences | {(table, key): self._of_sql(value) for table, key, value in rows})

    def take(self, step: s.Step) -> list[Expected]:
        """Do a step; returns what may be observed, in the order in which it is to be looked at."""
        match step:
            case s.Open():
                self.open[step.on] = Connection(step.mapping, self.next_slot())
                expected: list[Expected] = [Answer(step.on, ("SUCCEED\r\n",))]
            case s.Close():
                expected = self._close(step.on)
            case s.Bind():
                expected = [self._bind(step)]
            case s.Flush():
                expected = self._flush(step.on)
            case s.Look():
                expected = [Seen(self._all(dirty=step.dirty), step.dirty)]
            case s.Change():
                expected = self._change(step)
            case s.End():
                self.sql_open = False
                (self.rows.commit if step.commit else self.rows.roll_back)(s.SQL)
                expected = []
            case _:
                expected = [self._request(step)]
        expected += self._released()
        if isinstance(step, s.Close) and isinstance(expected[0], Seen):
            expected.append(Seen(self._all(), soon=True))
        return expected

    def next_slot(self) -> int:
        """Take the next thread in turn that serves no other connection, or at least none that waits."""
        for taken in ([c.slot for c in self.open.values()], [c.slot for c in self.open.values() if c.waits], []):
            for skipped in range(self.threads):
                if (self._connected + skipped) % self.threads not in taken:
                    self.skipped = skipped
                    self._connected += skipped + 1
                    return (self._connected - 1) % self.threads
        raise AssertionError("the last round takes any thread")

    def place(self, step: Locking, key: str) -> Place:
        """Return where a request looks for a key."""
        mapping = step.mapping if isinstance(step, s.Store | s.Get) and step.mapping else self.open[step.on].mapping
        return s.TABLES[mapping], key

    def locks(self, step: s.Step) -> list[Place]:
        """Return the rows that a step has to lock."""
        if isinstance(step, s.Store | s.Incr | s.Delete):
            return [self.place(step, step.key)]
        if isinstance(step, s.Get) and self.limits.level == 3 and self.limits.reads == 1:
            return [self.place(step, key) for key in step.keys]
        return []

    def number(self, step: s.Store) -> int:
        """Return the cas number that a `cas` sends."""
        number = self.open[step.on].seen.get(self.place(step, step.key))
        return WRONG_NUMBER if step.stale or number is None or number.seen is None else number.seen

    def _request(self, step: Locking) -> Expected:
        connection = self.open[step.on]
        if isinstance(step, s.Store | s.Get) and step.mapping:
            self._moves(step.on, step.mapping)
        if not isinstance(step, s.Get):
            self._begins_to_write(connection)
        connection.touched.add(s.TABLES[connection.mapping])
        if not any(self.rows.holder(place, step.on) for place in self.locks(step)):
            return self._carry_out(step)
        if not self.limits.gives_up:
            connection.waits = step
            return Silence(step.on)
        self.timeouts += 1
        self._fail(step.on)
        refused = "NOT_FOUND\r\n" if isinstance(step, s.Delete) else "NOT_STORED\r\n"
        return self._answer(step, TIMED_OUT if self.rules.wait_is_error else refused)

    def _begins_to_write(self, connection: Connection) -> None:
        if self.rules.first_write_renews and not connection.wrote:
            connection.snapshot = None
        fixes = self.rules.writes_fix == "any" or (self.rules.writes_fix == "first" and not connection.has_written)
        if fixes and connection.snapshot is None:
            connection.snapshot = self.rows.now
        connection.wrote = connection.has_written = True

    def _carry_out(self, step: Locking) -> Answer:
        match step:
            case s.Get():
                return self._get(step)
            case s.Store():
                return self._store(step)
            case s.Incr():
                return self._incr(step)
        place = self.place(step, step.key)
        if self.rows.own(step.on, place) is None:
            self._fail(step.on, place)
            return self._answer(step, "NOT_FOUND\r\n")
        self._writes(step.on, place, None)
        return self._answer(step, "DELETED\r\n")

    def _answer(self, step: Locking, *texts: str) -> Answer:
        silent = isinstance(step, s.Store | s.Delete) and step.silent
        return Answer(step.on, ("",) if silent else texts)

    def _get(self, step: s.Get) -> Answer:
        connection = self.open[step.on]
        text, numbers = "", []
        for key in step.keys:
            place = self.place(step, key)
            row = self._visible(step.on, place)
            if row is not None:
                word = f"@@{self.names[step.mapping]}.{key}" if step.mapping else key
                cas = f" {CAS}" if step.cas else ""
                text += f"VALUE {word} {row.flags} {len(row.value)}{cas}\r\n{row.value}\r\n"
                if step.cas:
                    connection.seen[place] = row.number
                    numbers.append(row.number)
            if self.rules.counts_each_key:
                self._count(step.on, reads=1)
        if not self.rules.counts_each_key:
            self._count(step.on, reads=1)
        return Answer(step.on, (f"{text}END\r\n",), tuple(numbers))

    def _visible(self, on: str, place: Place) -> Row | None:
        connection, level = self.open[on], self.limits.level
        if level == 0 or (level == 3 and self.limits.reads == 1):
            return self.rows.newest(place)
        moment = self.rows.now
        if level > 1 or not self.rules.fresh_level_1:
            if connection.snapshot is None:
                connection.snapshot = moment
            moment = connection.snapshot
        if place in self.rows.pending.get(on, {}):
            return self.rows.own(on, place)
        if self.rules.sees_deletes and self.rows.newest(place) is None:
            return None
        return self.rows.at(place, moment)

    def _store(self, step: s.Store) -> Answer:
        place = self.place(step, step.key)
        row = self.rows.own(step.on, place)
        refusal = self._refusal(step, row)
        if refusal:
            self._fail(step.on, place)
            return self._answer(step, refusal)
        value, flags = step.value, step.flags
        if row is not None and step.verb in {"append", "prepend"}:
            value = row.value + value if step.verb == "append" else value + row.value
            flags = row.flags if self.rules.row_keeps_flags else flags
        self._writes(step.on, place, Row(value, flags, Number()))
        return self._answer(step, "STORED\r\n")

    def _refusal(self, step: s.Store, row: Row | None) -> str:
        if step.verb == "cas":
            if row is None:
                return "NOT_FOUND\r\n"
            return "" if row.number.seen == self.number(step) else "EXISTS\r\n"
        if step.verb != "set" and (step.verb == "add") == (row is not None):
            return "NOT_STORED\r\n"
        return ""

    def _incr(self, step: s.Incr) -> Answer:
        place = self.place(step, step.key)
        row = self.rows.own(step.on, place)
        if row is None:
            # It is no failure and counts as a write (wbatch-034); what it locked, a gap or a dead row, is not seen.
            self.rows.lock(step.on, place, sure=False)
            self._count(step.on, writes=1)
            return Answer(step.on, ("NOT_FOUND\r\n", *((f"{CAS}\r\n",) if self.rules.makes_up_numbers else ())))
        value = str(int(row.value) + step.amount)
        self._writes(step.on, place, Row(value, row.flags, Number()))
        return Answer(step.on, (f"{value}\r\n",))

    def _writes(self, on: str, place: Place, row: Row | None) -> None:
        self.rows.write(on, place, row)
        self._count(on, writes=1)

    def _count(self, on: str, reads: int = 0, writes: int = 0) -> None:
        connection = self.open[on]
        connection.reads += reads
        connection.writes += writes
        if connection.reads >= self.limits.reads or connection.writes >= self.limits.writes:
            self._end(on)

    def _fail(self, on: str, place: Place | None = None) -> None:
        if self.rules.failure_discards or not self.open[on].writes:
            self.rows.roll_back(on)
            self._end(on)
        elif place is not None:
            self.rows.lock(on, place, sure=False)

    def _end(self, on: str) -> None:
        connection = self.open[on]
        self.rows.commit(on)
        connection.reads = connection.writes = 0
        connection.snapshot, connection.wrote = None, False

    def _moves(self, on: str, mapping: str) -> None:
        connection = self.open[on]
        if connection.mapping == mapping:
            return
        reads, writes = connection.reads, connection.writes
        self._end(on)
        connection.mapping = mapping
        connection.touched.clear()
        connection.has_written = False
        if self.rules.switch_keeps_count:
            connection.reads, connection.writes = reads, writes

    def _bind(self, step: s.Bind) -> Expected:
        if step.mapping not in self.names:
            return Answer(step.on, ("END\r\n" if step.word else "NOT_FOUND\r\n",))
        self._moves(step.on, step.mapping)
        name = self.names[step.mapping]
        shown = (f"VALUE @@{name} 0 {len(text)}\r\n{text}\r\nEND\r\n" for text in self.words[step.mapping])
        return Answer(step.on, tuple(shown) if step.word else ("SUCCEED\r\n",))

    def _close(self, on: str) -> list[Expected]:
        # What is there before is looked at first: then the numbers tell whether the commit has been seen.
        before: list[Expected] = [Seen(self._all())] if self.rows.pending.get(on) else []
        self._end(on)
        del self.open[on]
        return [*before, Closed(on)]

    def _flush(self, on: str) -> list[Expected]:
        for name in self.open if self.rules.flush_commits else (on,):
            self._end(name)
        table = s.TABLES[self.open[on].mapping]
        self.rows.put({place: None for place in self.rows.places(table)})
        fences = {(table, key): self._of_sql(FENCE) for key in s.FENCES}
        self.rows.put(fences)
        return [Answer(on, ("OK\r\n",)), Refill(table, tuple(fences.items()))]

    def _change(self, step: s.Change) -> list[Expected]:
        place = (step.table, step.key)
        self.sql_open = self.sql_open or step.within
        row = None if step.verb == "delete" else self._of_sql(step.value)
        if step.verb == "update" and self.rows.newest(place) is None:
            return []
        if step.within:
            self.rows.write(s.SQL, place, row)
        else:
            self.rows.put({place: row})
        return []

    def _released(self) -> list[Expected]:
        """Carry out what waits for nobody any more; that may give further locks back."""
        expected: list[Expected] = []
        while True:
            free = [c for on, c in self.open.items() if c.waits and not self._waits_for(on)]
            if not free:
                return expected
            step, free[0].waits = free[0].waits, None
            assert step is not None, "it waits"
            expected.append(self._carry_out(step))

    def _waits_for(self, on: str) -> str | None:
        step = self.open[on].waits
        return next((h for place in self.locks(step) if (h := self.rows.holder(place, on))), None) if step else None

    def _all(self, *, dirty: bool = False) -> tuple[tuple[Place, Row], ...]:
        read = self.rows.newest if dirty else lambda place: self.rows.at(place, self.rows.now)
        places = (place for table in ("t1", "t2") for place in self.rows.places(table))
        return tuple((place, row) for place in places if (row := read(place)) is not None)

    def _of_sql(self, value: str) -> Row:
        number = Number(next(self._sql_numbers))
        return Row(value, 0, number)
