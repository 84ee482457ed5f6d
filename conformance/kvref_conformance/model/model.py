"""The model: what each step may show, who waits for whom, and when a command that waits is served.

Steps whose outcome is not certain must not be given to it; `stateful/concurrency/exclusions.py` lists those of
histories. The rules of waiting are those of the transactions page, section 4.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.model import effects, encodings
from kvref_conformance.model import steps as s
from kvref_conformance.model.batches import Batches, Connection
from kvref_conformance.model.effects import Item, Outcome
from kvref_conformance.model.expected import (
    FENCE,
    Answer,
    Closed,
    Expected,
    Numbers,
    Refill,
    Seen,
    Served,
    Silence,
)
from kvref_conformance.model.rows import Number, Row, RowId, Rows
from kvref_conformance.model.rules import ONE_BY_ONE, Limits, Rules
from kvref_conformance.model.schema import RefusedError
from kvref_conformance.model.words import Mappings, Resolved
from kvref_conformance.wire.template import CAS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref.profiles import Profile
    from kvref_conformance.sql.columns import Cell

# Cas numbers that SQL writes: beyond what an endpoint counts to.
SQL_NUMBERS: Final = 7 << 56
WRONG_NUMBER: Final = (1 << 62) + 1
# More than a conversation opens connections: none shares a thread with another.
MANY_THREADS: Final = 1000


class Model:
    """The state of an endpoint in a conversation.

    Args:
        profile: facts in force.
        mappings: of the endpoint.
        limits: settings in force.
        threads: worker threads of the endpoint, which it deals its connections to in turn.
        fences: keys that exist in every table, for the gaps between the keys that are used.
        rows: committed at the beginning: table, key, value.

    skipped: how many threads in turn were passed over at the last connect.
    sql_open: a SQL transaction is open.
    sql_waits: the row that a SQL statement waits for, and what it makes of it.
    timeouts: how many requests were left to their timeout.
    """

    def __init__(
        self,
        profile: Profile,
        mappings: Mappings | None = None,
        *,
        limits: Limits = ONE_BY_ONE,
        threads: int = MANY_THREADS,
        fences: tuple[str, ...] = (),
        rows: Iterable[tuple[str, str, str]] = (),
    ) -> None:
        mappings = mappings or Mappings()
        self.profile, self.tables, self.limits, self.threads = profile, mappings.tables, limits, threads
        self.rules = Rules(profile)
        self.skipped = self.timeouts = 0
        self.rows = Rows()
        self.numbers = Numbers()
        self._batches = Batches(self.rules, limits, self.rows)
        self.open = self._batches.open
        self.sql_open = False
        self.sql_waits: tuple[RowId, Row | None] | None = None
        self._fences, self._mappings, self._schemas = fences, mappings, mappings.schemas
        self._connected = 0
        self._sql_numbers = itertools.count(SQL_NUMBERS)
        begun: dict[RowId, Row | None] = {
            place: row for table in self.all_tables() for place, row in self._fenced(table).items()
        }
        self.rows.put(begun | {(table, key): self._of_sql(value) for table, key, value in rows})

    def take(self, step: s.Step) -> list[Expected]:
        """Do a step; returns what may be observed, in the order in which it is to be looked at."""
        match step:
            case s.Open():
                self.open[step.on] = Connection(step.mapping, self._next_slot())
                bind = s.Bind(step.on, step.mapping, protocol=step.protocol)
                expected: list[Expected] = [self._request(bind)] if step.mapping else []
            case s.Close():
                expected = self._close(step.on)
            case s.Flush():
                expected = self._flush(step)
            case s.Read():
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

    def resolved(self, step: s.Locking) -> list[Resolved]:
        """Return where each word of a command leads."""
        words = step.words if isinstance(step, s.Get) else (step.word,)
        switching = isinstance(step, s.Get | s.Store) or self.rules.all_switch
        return self._mappings.resolve(self.profile, self.open[step.on].mapping, words, switching=switching)

    def places(self, step: s.Locking) -> list[RowId]:
        """Return where a command looks for its keys, but those that their column does not take."""
        places = (self._place(to) for to in self.resolved(step) if to.kind == "key")
        return [place for place in places if not isinstance(place, Outcome)]

    def locks(self, step: s.Step) -> list[RowId]:
        """Return the rows that a step has to lock."""
        if isinstance(step, s.Store | s.Count | s.Delete | s.Touch) or (
            isinstance(step, s.Get) and self.limits.reads_lock
        ):
            return self.places(step)
        return []

    def number(self, step: s.Store) -> int:
        """Return the cas number that a `cas` sends: the last one that its connection has seen of the key."""
        places = self.places(step)
        number = self.open[step.on].seen.get(places[0]) if places else None
        return WRONG_NUMBER if step.stale or number is None or number.seen is None else number.seen

    def all_tables(self) -> list[str]:
        """Return the tables of all mappings."""
        return sorted(set(self.tables.values()))

    def rows_of(self, table: str) -> list[tuple[object, ...]]:
        """Return the cells of the committed rows of a table, sorted: key, values, flags."""
        rows = [
            (*(row.cells or (place[1], row.item.value)), row.item.flags)
            for place, row in self._all()
            if place[0] == table
        ]
        return sorted(rows, key=str)

    def insert(self, table: str, key: Cell, cells: tuple[Cell, ...], flags: int | None) -> bool:
        """Add a row that SQL inserts into a table whose columns are known; return whether the key is new."""
        schema = self._schemas[table]
        place = table, schema.row_of(key)
        if self.rows.newest(place) is not None:
            return False
        self.rows.put({place: Row(Item(schema.shown(cells), flags), Number(), (key, *cells))})
        return True

    def _next_slot(self) -> int:
        """Take the next thread in turn that serves no other connection, or at least none that waits."""
        for taken in ([c.slot for c in self.open.values()], [c.slot for c in self.open.values() if c.waits]):
            for skipped in range(self.threads):
                if (self._connected + skipped) % self.threads not in taken:
                    self.skipped = skipped
                    self._connected += skipped + 1
                    return (self._connected - 1) % self.threads
        raise AssertionError("a client connects while every thread waits")

    def _request(self, step: s.Request) -> Expected:
        if isinstance(step, s.Unknown):
            return self._answer(step, Outcome.UNKNOWN)
        if isinstance(step, s.Bind):
            if step.protocol != s.BINARY:
                return self._bind(step)
            step = s.Get(step.on, (f"@@{step.name}",), protocol=s.BINARY)
        assert not isinstance(step, s.Flush), "take does it"
        first = self.resolved(step)[0]
        self._batches.moves(step.on, first.mapping)
        self.open[step.on].touched.update(table for table, _ in self.places(step))
        if not isinstance(step, s.Get):
            if first.kind == "key" and isinstance(refused := self._place(first), Outcome):
                return self._answer(step, refused if isinstance(step, s.Store) else Outcome.NOT_FOUND)
            if first.kind != "key":
                unknown = first.kind == "unknown" or not isinstance(step, s.Store)
                return self._answer(step, Outcome.NOT_FOUND if unknown else Outcome.NOT_STORED)
            self._batches.begins_to_write(step.on)
        if not any(self.rows.holder(place, step.on) for place in self.locks(step)):
            return self._carry_out(step)
        if not self.limits.gives_up:
            self.open[step.on].waits = step
            return Silence(step.on)
        self.timeouts += 1
        self._batches.fail(step.on, None)
        refused = Outcome.NOT_FOUND if isinstance(step, s.Delete) else Outcome.NOT_STORED
        return self._answer(step, Outcome.TIMED_OUT if self.rules.wait_is_error else refused)

    def _bind(self, step: s.Bind) -> Answer:
        if step.name not in self.tables:
            return self._answer(step, Outcome.NOT_FOUND)
        self._batches.moves(step.on, step.name)
        return self._answer(step, Outcome.BOUND)

    def _carry_out(self, step: s.Locking) -> Answer:
        if isinstance(step, s.Get):
            return self._get(step)
        place = self.places(step)[0]
        row = self.rows.own(step.on, place)
        if isinstance(step, s.Count) and row is None and step.initial is None:
            return self._count_missing(step, place)
        same = isinstance(step, s.Store) and row is not None and row.number.seen == self.number(step)
        effect = effects.of(self.rules, row.item if row is not None else None, step, same=same)
        if isinstance(step, s.Store) and place[0] in self._schemas and effect.item is not None:
            return self._store_cells(step, place, row, effect.item)
        number = row.number if isinstance(step, s.Touch) and row is not None else Number()
        if effect.writes:
            self._batches.writes(step.on, place, Row(effect.item, number) if effect.item is not None else None)
        elif not isinstance(step, s.Count):
            self._batches.fail(step.on, place)
        answer = self._answer(step, effect.outcome, effect.total, number=number)
        if answer.numbers:
            self.open[step.on].seen[place] = number
        return answer

    def _store_cells(self, step: s.Store, place: RowId, old: Row | None, item: Item) -> Answer:
        schema = self._schemas[place[0]]
        key = schema.cell_of(self.resolved(step)[0].key)
        try:
            cells = schema.cells_of(item.value)
        except RefusedError as refused:
            if step.verb == "set" and schema.refusal_removes:
                self._batches.writes(step.on, place, None)
            return self._answer(step, refused.outcome)
        spelling = key if old is None or self.profile.flag("store.renames_key") else old.cells[0]
        stored = Item(schema.shown(cells), item.flags)
        self._batches.writes(step.on, place, Row(stored, Number(), (spelling, *cells)))
        return self._answer(step, Outcome.STORED)

    def _count_missing(self, step: s.Count, place: RowId) -> Answer:
        outcome = effects.of(self.rules, None, step, same=False).outcome
        if self.rules.failure_discards:
            # In the plugin it counts as a write (wbatch-034); what it locked, a gap or a dead row, is not seen.
            self.rows.lock(step.on, place, sure=False)
            self._batches.count(step.on, writes=1)
        else:
            self._batches.fail(step.on, place)
        answer = self._answer(step, outcome)
        made_up = (encodings.made_up(step),) if self.rules.makes_up_numbers else ()
        return replace(answer, texts=(*answer.texts, *made_up))

    def _answer(
        self, step: s.Request, outcome: Outcome, total: int | None = None, *, number: Number | None = None
    ) -> Answer:
        texts = encodings.replies(self.rules, step, outcome, total)
        return Answer(step.on, texts, (number,) if number is not None and CAS in texts[0] else ())

    def _get(self, step: s.Get) -> Answer:
        texts, numbers, read, ended = [""], [], 0, False
        for word, to in zip(step.words, self.resolved(step), strict=True):
            self._batches.moves(step.on, to.mapping)
            ended = to.kind == "key"
            blocks = [encodings.miss(step, word)]
            if to.kind == "switch":
                named = (Item(text, 0) for text in self._mappings.words[to.mapping])
                blocks = [encodings.hit(step, word, item, "") for item in named]
            elif to.kind == "key":
                place = self._place(to)
                row = self._read(step, place) if not isinstance(place, Outcome) else None
                if row is not None:
                    numbered = self.tables[to.mapping] not in self._schemas
                    blocks = [encodings.hit(step, word, row.item, CAS if numbered else "")]
                    numbers += [row.number] if numbered and encodings.shows_numbers(step) else []
                read += 1
                if self.rules.counts_each_key:
                    self._batches.count(step.on, reads=1)
            texts = [text + block for text in texts for block in blocks]
        if read and not self.rules.counts_each_key and (ended or not self.rules.counts_ended_gets):
            self._batches.count(step.on, reads=1)
        end = "END\r\n" if step.protocol == s.TEXT else ""
        return Answer(step.on, tuple(f"{text}{end}" for text in texts), tuple(numbers))

    def _read(self, step: s.Get, place: RowId) -> Row | None:
        connection = self.open[step.on]
        connection.touched.add(place[0])
        row = self._batches.visible(step.on, place)
        if row is not None and encodings.shows_numbers(step):
            connection.seen[place] = row.number
        if row is not None and step.expiry is not None and effects.is_over(step.expiry):
            # The item goes with its first mention.
            self._batches.writes(step.on, place, None)
        return row

    def _close(self, on: str) -> list[Expected]:
        # What is there before is looked at first: then the numbers tell whether the commit has been seen.
        before: list[Expected] = [Seen(self._all())] if self.rows.pending.get(on) else []
        self._batches.end(on)
        del self.open[on]
        return [*before, Closed(on)]

    def _flush(self, step: s.Flush) -> list[Expected]:
        on = step.on
        for name in self.open if self.rules.flush_commits else (on,):
            self._batches.end(name)
        self.open[on].has_written = False
        table = self.tables[self.open[on].mapping]
        self.rows.put(dict.fromkeys(self.rows.places(table)))
        fences = self._fenced(table)
        self.rows.put(dict(fences))
        return [self._answer(step, Outcome.FLUSHED), Refill(table, tuple(fences.items()))]

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

    def _all(self, *, dirty: bool = False) -> tuple[tuple[RowId, Row], ...]:
        read = self.rows.newest if dirty else lambda place: self.rows.at(place, self.rows.now)
        places = (place for table in self.all_tables() for place in self.rows.places(table))
        return tuple((place, row) for place in places if (row := read(place)) is not None)

    def _place(self, to: Resolved) -> RowId | Outcome:
        """Return where a key is, or the outcome of a store where its column does not take it."""
        table = self.tables[to.mapping]
        schema = self._schemas.get(table)
        if schema is None:
            return table, to.key
        try:
            return table, schema.row_of(schema.cell_of(to.key))
        except RefusedError as refused:
            return refused.outcome

    def _fenced(self, table: str) -> dict[RowId, Row]:
        return {(table, key): self._of_sql(FENCE) for key in self._fences}

    def _of_sql(self, value: str) -> Row:
        return Row(Item(value, 0), Number(next(self._sql_numbers)))
