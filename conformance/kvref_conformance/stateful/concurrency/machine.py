"""The rules by which histories are drawn: three connections, two tables under three mappings, three keys, SQL.

A rule whose step may not be done now (`exclusions.py`) does nothing. Only keys with an odd number are used. The even
keys between them always exist: the gap up to the next row, which a transaction locks in addition to the row that it
looked up, then contains no other odd key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kvref_conformance.errors import CaseFailed
from kvref_conformance.model import steps as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.findings import Patience
    from kvref_conformance.stateful.concurrency.player import Course, Player

CONNECTIONS: Final = ("a", "b", "c")
TABLES: Final = {"m1": "t1", "m1b": "t1", "m2": "t2"}
KEYS: Final = ("k1", "k3", "k5")
FENCES: Final = ("k0", "k2", "k4", "k6")
NO_MAPPING: Final = "no-such-mapping"
VALUES: Final = ("1", "22", "7", "305")
# Rules of a history; what does nothing counts.
STEPS: Final = 40

ON = st.sampled_from(CONNECTIONS)
# The first key is drawn most often: what meets, waits.
KEY = st.sampled_from(("k1",) * 5 + ("k3",) * 3 + ("k5",) * 2)
MAPPING = st.sampled_from(("m1", "m1", "m1b", "m2"))
TABLE = st.sampled_from(("t1", "t1", "t2"))
VALUE = st.sampled_from(VALUES)
FLAGS = st.integers(0, 3)
SELDOM = st.sampled_from((False, False, False, True))


def has_closed(machine: HistoryMachine) -> bool:
    """Return whether a connection is closed."""
    return len(machine.course.model.open) < len(CONNECTIONS)


def has_transaction(machine: HistoryMachine) -> bool:
    """Return whether a SQL transaction is open."""
    return machine.course.model.sql_open


class HistoryMachine(RuleBasedStateMachine):
    """One history.

    player: runs it.
    limit: ends the search for a smaller history.
    names: real names of mappings and tables.
    last: the last history that failed.
    finished: nothing is done any more.
    """

    player: ClassVar[Player]
    limit: ClassVar[Patience]
    names: ClassVar[Mapping[str, str]]
    last: ClassVar[Course | None] = None
    finished: bool = False

    @initialize(
        rows=st.fixed_dictionaries({}, optional={(table, key): VALUE for table in ("t1", "t2") for key in KEYS}),
        mappings=st.tuples(MAPPING, MAPPING, MAPPING),
    )
    def begin(self, *, rows: dict[tuple[str, str], str], mappings: tuple[str, str, str]) -> None:
        """Fill the tables and open the connections."""
        self.limit.check()
        self.course = self.player.begin(
            tuple((self.names[table], key, rows[table, key]) for table, key in sorted(rows))
        )
        for on, mapping in zip(CONNECTIONS, mappings, strict=True):
            self.do(s.Open(on, self.names[mapping]))

    @rule(on=ON, key=KEY, value=VALUE, flags=FLAGS, silent=SELDOM)
    def set_key(self, *, on: str, key: str, value: str, flags: int, silent: bool) -> None:
        """Store without conditions."""
        self.do(s.Store(on, "set", key, value, flags, silent=silent))

    @rule(on=ON, verb=st.sampled_from(s.STORES), key=KEY, value=VALUE, flags=FLAGS, silent=SELDOM)
    def store(self, *, on: str, verb: str, key: str, value: str, flags: int, silent: bool) -> None:
        """Store by any verb."""
        self.do(s.Store(on, verb, key, value, flags, silent=silent))

    @rule(on=ON, mapping=MAPPING, key=KEY, value=VALUE)
    def store_mapped(self, *, on: str, mapping: str, key: str, value: str) -> None:
        """Store under the name of a mapping."""
        self.do(s.Store(on, "set", f"@@{self.names[mapping]}.{key}", value))

    @rule(on=ON, key=KEY)
    def get(self, *, on: str, key: str) -> None:
        """Read a key."""
        self.do(s.Get(on, (key,)))

    @rule(on=ON, key=KEY, value=VALUE, flags=FLAGS)
    def set_again(self, *, on: str, key: str, value: str, flags: int) -> None:
        """Store: most histories need writes."""
        self.do(s.Store(on, "set", key, value, flags))

    @rule(on=ON, key=KEY)
    def get_again(self, *, on: str, key: str) -> None:
        """Read a key: most histories need reads."""
        self.do(s.Get(on, (key,)))

    @rule(on=ON, keys=st.lists(st.sampled_from(KEYS), min_size=2, max_size=3, unique=True), cas=st.booleans())
    def get_several(self, *, on: str, keys: list[str], cas: bool) -> None:
        """Read several keys."""
        self.do(s.Get(on, tuple(keys), cas))

    @rule(on=ON, mapping=MAPPING, key=KEY)
    def get_mapped(self, *, on: str, mapping: str, key: str) -> None:
        """Read under the name of a mapping."""
        self.do(s.Get(on, (f"@@{self.names[mapping]}.{key}",)))

    @rule(on=ON, key=KEY)
    def gets(self, *, on: str, key: str) -> None:
        """Read a key with its number."""
        self.do(s.Get(on, (key,), cas=True))

    @rule(on=ON, key=KEY, value=VALUE, stale=SELDOM)
    def cas(self, *, on: str, key: str, value: str, stale: bool) -> None:
        """Store with the number seen."""
        self.do(s.Store(on, "cas", key, value, stale=stale))

    @rule(on=ON, key=KEY, amount=st.integers(0, 20))
    def incr(self, *, on: str, key: str, amount: int) -> None:
        """Count."""
        self.do(s.Count(on, "incr", key, str(amount)))

    @rule(on=ON, key=KEY, silent=SELDOM)
    def delete(self, *, on: str, key: str, silent: bool) -> None:
        """Delete."""
        self.do(s.Delete(on, key, silent))

    @rule(on=ON, mapping=st.sampled_from(("m1", "m1b", "m2", NO_MAPPING)), word=st.booleans())
    def bind(self, *, on: str, mapping: str, word: bool) -> None:
        """Bind a mapping by its command or by its word."""
        name = self.names.get(mapping, mapping)
        self.do(s.Get(on, (f"@@{name}",)) if word else s.Bind(on, name))

    @rule(on=ON, quits=st.booleans())
    def close(self, *, on: str, quits: bool) -> None:
        """Close a connection."""
        self.do(s.Close(on, quits))

    @rule(on=ON, commit=st.booleans(), really=SELDOM)
    def flush(self, *, on: str, commit: bool, really: bool) -> None:
        """Let the others go first, which flush_all would wait for, and empty the table."""
        model = self.course.model
        if really and on in model.open:
            self.do(s.End(commit))
            table = model.tables[model.open[on].mapping]
            for other in [each for each in model.open if each != on and table in model.open[each].touched]:
                self.do(s.Close(other))
            self.do(s.Flush(on))

    @rule(ends=st.sampled_from((True, *(False,) * 19)))
    def close_all(self, *, ends: bool) -> None:
        """End the history before its last rule.

        Hypothesis prefers the rule with the fewest arguments and the first name. Without such a rule a failure that is
        seen at the end needs all STEPS rules.
        """
        if ends:
            self.finish()

    @precondition(has_closed)
    @rule(on=ON, mapping=MAPPING)
    def connect(self, *, on: str, mapping: str) -> None:
        """Connect again."""
        self.do(s.Open(on, self.names[mapping]))

    @rule(dirty=SELDOM)
    def look(self, *, dirty: bool) -> None:
        """Read all rows over SQL."""
        self.do(s.Look(dirty))

    @rule(verb=st.sampled_from(("update", "delete", "insert")), table=TABLE, key=KEY, value=VALUE)
    def change(self, *, verb: str, table: str, key: str, value: str) -> None:
        """Change a row over SQL, which may wait for a connection."""
        self.do(s.Change(verb, self.names[table], key, "" if verb == "delete" else value))

    @rule(table=TABLE, key=KEY, value=VALUE)
    def update(self, *, table: str, key: str, value: str) -> None:
        """Change a row that is there."""
        self.do(s.Change("update", self.names[table], key, value))

    @rule(verb=st.sampled_from(("update", "insert", "delete")), table=TABLE, key=KEY, value=VALUE)
    def change_in_transaction(self, *, verb: str, table: str, key: str, value: str) -> None:
        """Change a row over SQL in a transaction, for which connections wait."""
        self.do(s.Change(verb, self.names[table], key, "" if verb == "delete" else value, within=True))

    @precondition(has_transaction)
    @rule(commit=st.booleans())
    def end(self, *, commit: bool) -> None:
        """End the SQL transaction."""
        self.do(s.End(commit))

    def do(self, step: s.Step) -> None:
        """Do a step if it may be done now."""
        if not self.finished:
            self.player.take(self.course, step)
            self.fail_if_refused()

    def teardown(self) -> None:
        """End the history, unless the endpoint could not be reached."""
        if hasattr(self, "course"):
            self.finish()

    def finish(self) -> None:
        """End what is open, and look at the rows."""
        if not self.finished:
            self.finished = True
            self.player.finish(self.course)
            self.fail_if_refused()

    def fail_if_refused(self) -> None:
        """Raise where something was not allowed, once."""
        if self.course.failed and not self.course.reported:
            self.course.reported = True
            type(self).last = self.course
            self.limit.found()
            self.player.shorten()
            raise CaseFailed(str(self.course))
