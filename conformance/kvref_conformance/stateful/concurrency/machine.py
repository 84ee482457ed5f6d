"""The rules by which histories are drawn: three connections, two tables under three mappings, three keys, SQL.

A rule whose step may not be done now (`exclusions.py`) does nothing. Only keys with an odd number are used. The even
keys between them always exist: the gap up to the next row, which a transaction locks in addition to the row that it
looked up, then contains no other odd key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from kvref_conformance.model import steps as s
from kvref_conformance.stateful.command_rules import (
    BOTH,
    KEY,
    MANNER,
    MAPPING,
    ON,
    PROTOCOLS,
    SELDOM,
    VALUE,
    CommandRules,
    at,
    real_names,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.stateful.command_rules import Manner
    from kvref_conformance.stateful.player import Player

CONNECTIONS: Final = ("a", "b", "c")
TABLES: Final = {"m1": "t1", "m1b": "t1", "m2": "t2"}
KEYS: Final = ("k1", "k3", "k5")
FENCES: Final = ("k0", "k2", "k4", "k6")
VALUES: Final = ("1", "22", "7", "305")
# Rules of a history; what does nothing counts.
STEPS: Final = 40

TABLE = st.sampled_from(("t1", "t1", "t2"))
CHANGES = st.sampled_from(("update", "delete", "insert"))


class Histories(Protocol):
    """Runs histories; see `run.py` for the methods."""

    def begin(self, rows: tuple[tuple[str, str, str], ...]) -> Player:
        """Begin a history with rows."""

    def take(self, player: Player, step: s.Step) -> None:
        """Do a step, unless it may not be done now."""

    def finish(self, player: Player) -> None:
        """End everything that is open."""


def has_closed(machine: HistoryMachine) -> bool:
    """Return whether a connection is closed."""
    return len(machine.player.model.open) < len(CONNECTIONS)


def has_transaction(machine: HistoryMachine) -> bool:
    """Return whether a SQL transaction is open."""
    return machine.player.model.sql_open


class HistoryMachine(CommandRules):
    """One history.

    histories: begins it, takes its steps, finishes it.
    missing: features that the endpoint has not.
    names: real names of mappings and tables.
    finished: nothing is done any more.
    """

    histories: ClassVar[Histories]
    names: ClassVar[Mapping[str, str]]
    player: Player
    connections, keys, values = CONNECTIONS, KEYS, VALUES
    finished: bool = False

    @initialize(
        rows=st.fixed_dictionaries({}, optional={(table, key): VALUE for table in ("t1", "t2") for key in KEYS}),
        mappings=st.tuples(MAPPING, MAPPING, MAPPING),
        protocols=PROTOCOLS,
    )
    def begin(
        self, *, rows: dict[tuple[str, str], int], mappings: tuple[int, int, int], protocols: tuple[str, str, str]
    ) -> None:
        """Fill the tables and open the connections."""
        self.mappings = real_names(self.names, TABLES)
        self.player = self.histories.begin(
            tuple((self.names[table], key, at(VALUES, rows[table, key])) for table, key in sorted(rows))
        )
        self.begin_with(protocols)
        for on, mapping in zip(CONNECTIONS, mappings, strict=True):
            self.do(s.Open(on, self.mappings[mapping], self.protocols[on]))

    @rule(on=ON, quits=st.booleans())
    def close(self, *, on: int, quits: bool) -> None:
        """Close a connection."""
        self.do(s.Close(at(CONNECTIONS, on), quits))

    @rule(on=ON, commit=st.booleans(), really=SELDOM)
    def flush(self, *, on: int, commit: bool, really: bool) -> None:
        """Let the others go first, which flush_all would wait for, and empty the table."""
        model, name = self.player.model, at(CONNECTIONS, on)
        if really and name in model.open:
            self.do(s.End(commit))
            table = model.tables[model.open[name].mapping]
            for other in [each for each in model.open if each != name and table in model.open[each].touched]:
                self.do(s.Close(other))
            self.do(s.Flush(name, protocol=self.protocols[name]))

    @rule(ends=st.sampled_from((True, *(False,) * 19)))
    def close_all(self, *, ends: bool) -> None:
        """End the history before its last rule."""
        if ends:
            self.finish()

    @precondition(has_closed)
    @rule(on=ON, mapping=MAPPING)
    def connect(self, *, on: int, mapping: int) -> None:
        """Connect again."""
        name = at(CONNECTIONS, on)
        self.do(s.Open(name, self.mappings[mapping], self.protocols[name]))

    @rule(dirty=SELDOM)
    def look(self, *, dirty: bool) -> None:
        """Read all rows over SQL."""
        self.do(s.Look(dirty))

    @rule(verb=CHANGES, table=TABLE, key=KEY, value=VALUE)
    def change(self, *, verb: str, table: str, key: int, value: int) -> None:
        """Change a row over SQL, which may wait for a connection."""
        self.do(self.changed(verb, table, key, value))

    @rule(table=TABLE, key=KEY, value=VALUE)
    def update(self, *, table: str, key: int, value: int) -> None:
        """Change a row that is there."""
        self.do(self.changed("update", table, key, value))

    @rule(on=ON, key=KEY, value=VALUE, manner=MANNER, changed=st.sampled_from((False, True, True)), both=BOTH)
    def read_again(
        self, *, on: int, key: int, value: int, manner: Manner, changed: bool, both: tuple[bool, bool]
    ) -> None:
        """Read a row before and behind a change over SQL."""
        model, name = self.player.model, at(CONNECTIONS, on)
        if both[0]:
            self.read(on, [(None, key)], manner)
        if changed and name in model.open:
            place = model.tables[model.open[name].mapping], self.keys[key]
            self.do(s.Change("insert" if model.rows.newest(place) is None else "update", *place, at(VALUES, value)))
        if both[1]:
            self.read(on, [(None, key)], manner)

    @rule(verb=CHANGES, table=TABLE, key=KEY, value=VALUE)
    def change_in_transaction(self, *, verb: str, table: str, key: int, value: int) -> None:
        """Change a row over SQL in a transaction, for which connections wait."""
        self.do(replace(self.changed(verb, table, key, value), within=True))

    @precondition(has_transaction)
    @rule(commit=st.booleans())
    def end(self, *, commit: bool) -> None:
        """End the SQL transaction."""
        self.do(s.End(commit))

    def changed(self, verb: str, table: str, key: int, value: int) -> s.Change:
        """Return a change of a row over SQL."""
        return s.Change(verb, self.names[table], self.keys[key], "" if verb == "delete" else at(VALUES, value))

    def do(self, *steps: s.Step) -> None:
        """Do steps that may be done now, one after the other."""
        for step in steps:
            if not self.finished:
                self.histories.take(self.player, self.safe(step))

    def safe(self, step: s.Step) -> s.Step:
        """Return a step with the key alone where `@@mapping.key` is a key, which other keys would surround."""
        if isinstance(step, s.Count | s.Delete) and not self.player.model.rules.all_switch:
            return replace(step, word=step.word.rpartition(".")[2])
        return step

    def teardown(self) -> None:
        """End the history, unless the endpoint could not be reached."""
        if hasattr(self, "player"):
            self.finish()

    def finish(self) -> None:
        """End what is open, and look at the rows."""
        if not self.finished:
            self.finished = True
            self.histories.finish(self.player)
