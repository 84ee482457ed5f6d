"""The acceptor: what each step of a history may show, who waits for whom, and when it is served.

It shares no code with a server. What steps do to batches: `batches.py`; the rules of waiting are those of the
transactions page, section 4. Steps that `exclusions.py` refuses must not be given to it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from kvref_conformance.stateful.concurrency import steps as s
from kvref_conformance.stateful.concurrency.batches import Batches, Connection
from kvref_conformance.stateful.concurrency.expected import (
    Answer,
    Closed,
    Expected,
    Numbers,
    Refill,
    Seen,
    Served,
    Silence,
)
from kvref_conformance.stateful.concurrency.rows import Number, Place, Row, Rows
from kvref_conformance.template import CAS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvref_conformance.stateful.concurrency.rules import Limits, Rules

# Cas numbers that SQL writes: beyond what an endpoint counts to.
SQL_NUMBERS: Final = 7 << 56
WRONG_NUMBER: Final = (1 << 62) + 1
FENCE: Final = "fence"
TIMED_OUT: Final = "SERVER_ERROR lock wait timeout\r\n"


class Model:
    """The state of an endpoint in a history.

    Args:
        rules: facts of the profile in force.
        limits: settings in force.
        names: of the mappings at the endpoint.
        words: what a switch word answers, by mapping.
        threads: worker threads of the endpoint, which it deals its connections to in turn.
        rows: committed at the beginning: table, key, value.

    skipped: how many threads in turn were passed over at the last connect.
    sql_open: a SQL transaction is open.
    sql_waits: the row that a SQL statement waits for, and what it makes of it.
    timeouts: how many requests were left to their timeout.
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
        self.rules, self.limits, self.names = rules, limits, names
        self.skipped = 0
        self._words, self.threads = words, threads
        self.rows = Rows()
        self.numbers = Numbers()
        self._batches = Batches(rules, limits, self.rows)
        self.open = self._batches.open
        self.sql_open = False
        self.sql_waits: tuple[Place, Row | None] | None = None
        self.timeouts = 0
        self._connected = 0
        self._sql_numbers = itertools.count(SQL_NUMBERS)
        fences: dict[Place, Row | None] = {
            (table, key): self._of_sql(FENCE) for table in ("t1", "t2") for key in s.FENCES
        }
        self.rows.put(fences | {(table, key): self._of_sql(value) for table, key, value in rows})

    def take(self, step: s.Step) -> list[Expected]:
        """Do a step; returns what may be observed, in the order in which it is to be looked at."""
        match step:
            case s.Open():
                self.open[step.on] = Connection(step.mapping, self._next_slot())
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

    def _next_slot(self) -> int:
        """Take the next thread in turn that serves no other connection, or at least none that waits."""
        for taken in ([c.slot for c in self.open.values()], [c.slot for c in self.open.values() if c.waits]):
            for skipped in range(self.threads):
                if (self._connected + skipped) % self.threads not in taken:
                    self.skipped = skipped
                    self._connected += skipped + 1
                    return (self._connected - 1) % self.threads
        raise AssertionError("a client connects while every thread waits")

    def place(self, step: s.Locking, key: str) -> Place:
        """Return where a request looks for a key."""
        mapping = step.mapping if isinstance(step, s.Store | s.Get) and step.mapping else self.open[step.on].mapping
        return s.TABLES[mapping], key

    def locks(self, step: s.Step) -> list[Place]:
        """Return the rows that a step has to lock."""
        if isinstance(step, s.Store | s.Incr | s.Delete):
            return [self.place(step, step.key)]
        if isinstance(step, s.Get) and self.limits.reads_lock:
            return [self.place(step, key) for key in step.keys]
        return []

    def number(self, step: s.Store) -> int:
        """Return the cas number that a `cas` sends."""
        number = self.open[step.on].seen.get(self.place(step, step.key))
        return WRONG_NUMBER if step.stale or number is None or number.seen is None else number.seen

    def _request(self, step: s.Locking) -> Expected:
        connection = self.open[step.on]
        if isinstance(step, s.Store | s.Get) and step.mapping:
            self._batches.moves(step.on, step.mapping)
        if not isinstance(step, s.Get):
            self._batches.begins_to_write(step.on)
        connection.touched.add(s.TABLES[connection.mapping])
        if not any(self.rows.holder(place, step.on) for place in self.locks(step)):
            return self._carry_out(step)
        if not self.limits.gives_up:
            connection.waits = step
            return Silence(step.on)
        self.timeouts += 1
        self._batches.fail(step.on, None)
        refused = "NOT_FOUND\r\n" if isinstance(step, s.Delete) else "NOT_STORED\r\n"
        return self._answer(step, TIMED_OUT if self.rules.wait_is_error else refused)

    def _carry_out(self, step: s.Locking) -> Answer:
        match step:
            case s.Get():
                return self._get(step)
            case s.Store():
                return self._store(step)
            case s.Incr():
                return self._incr(step)
        place = self.place(step, step.key)
        if self.rows.own(step.on, place) is None:
            self._batches.fail(step.on, place)
            return self._answer(step, "NOT_FOUND\r\n")
        self._batches.writes(step.on, place, None)
        return self._answer(step, "DELETED\r\n")

    def _answer(self, step: s.Locking, *texts: str) -> Answer:
        silent = isinstance(step, s.Store | s.Delete) and step.silent
        return Answer(step.on, ("",) if silent else texts)

    def _get(self, step: s.Get) -> Answer:
        connection = self.open[step.on]
        text, numbers = "", []
        for key in step.keys:
            place = self.place(step, key)
            row = self._batches.visible(step.on, place)
            if row is not None:
                word = f"@@{self.names[step.mapping]}.{key}" if step.mapping else key
                cas = f" {CAS}" if step.cas else ""
                text += f"VALUE {word} {row.flags} {len(row.value)}{cas}\r\n{row.value}\r\n"
                if step.cas:
                    connection.seen[place] = row.number
                    numbers.append(row.number)
            if self.rules.counts_each_key:
                self._batches.count(step.on, reads=1)
        if not self.rules.counts_each_key:
            self._batches.count(step.on, reads=1)
        return Answer(step.on, (f"{text}END\r\n",), tuple(numbers))

    def _store(self, step: s.Store) -> Answer:
        place = self.place(step, step.key)
        row = self.rows.own(step.on, place)
        refusal = self._refusal(step, row)
        if refusal:
            self._batches.fail(step.on, place)
            return self._answer(step, refusal)
        value, flags = step.value, step.flags
        if row is not None and step.verb in {"append", "prepend"}:
            value = row.value + value if step.verb == "append" else value + row.value
            flags = row.flags if self.rules.row_keeps_flags else flags
        self._batches.writes(step.on, place, Row(value, flags, Number()))
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
            self._batches.count(step.on, writes=1)
            return Answer(step.on, ("NOT_FOUND\r\n", *((f"{CAS}\r\n",) if self.rules.makes_up_numbers else ())))
        value = str(int(row.value) + step.amount)
        self._batches.writes(step.on, place, Row(value, row.flags, Number()))
        return Answer(step.on, (f"{value}\r\n",))

    def _bind(self, step: s.Bind) -> Expected:
        if step.mapping not in self.names:
            return Answer(step.on, ("END\r\n" if step.word else "NOT_FOUND\r\n",))
        self._batches.moves(step.on, step.mapping)
        name = self.names[step.mapping]
        shown = (f"VALUE @@{name} 0 {len(text)}\r\n{text}\r\nEND\r\n" for text in self._words[step.mapping])
        return Answer(step.on, tuple(shown) if step.word else ("SUCCEED\r\n",))

    def _close(self, on: str) -> list[Expected]:
        # What is there before is looked at first: then the numbers tell whether the commit has been seen.
        before: list[Expected] = [Seen(self._all())] if self.rows.pending.get(on) else []
        self._batches.end(on)
        del self.open[on]
        return [*before, Closed(on)]

    def _flush(self, on: str) -> list[Expected]:
        for name in self.open if self.rules.flush_commits else (on,):
            self._batches.end(name)
        self.open[on].has_written = False
        table = s.TABLES[self.open[on].mapping]
        self.rows.put(dict.fromkeys(self.rows.places(table)))
        fences = {(table, key): self._of_sql(FENCE) for key in s.FENCES}
        self.rows.put(dict(fences))
        return [Answer(on, ("OK\r\n",)), Refill(table, tuple(fences.items()))]

    def _change(self, step: s.Change) -> list[Expected]:
        place = (step.table, step.key)
        self.sql_open = self.sql_open or step.within
        row = None if step.verb == "delete" else self._of_sql(step.value)
        if step.within:
            self.rows.write(s.SQL, place, row)
            return []
        if self.rows.holder(place, s.AUTOCOMMIT):
            self.sql_waits = place, row
            return [Silence(s.AUTOCOMMIT)]
        self.rows.put({place: row})
        return []

    def _released(self) -> list[Expected]:
        """Run the commands whose wait has ended; that may release further locks."""
        expected: list[Expected] = []
        while True:
            if self.sql_waits and not self.rows.holder(self.sql_waits[0], s.AUTOCOMMIT):
                (place, row), self.sql_waits = self.sql_waits, None
                if self.rows.newest(place) is not None:
                    self.rows.put({place: row})
                expected.append(Served())
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
        return Row(value, 0, Number(next(self._sql_numbers)))
