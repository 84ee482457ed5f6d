"""The rules by which histories are drawn: three connections, two tables under three mappings, three keys, SQL.

A rule whose step may not be done now (`exclusions.py`) does nothing. Only keys with an odd number are used. The even
keys between them always exist: the gap up to the next row, which a transaction locks in addition to the row that it
looked up, then contains no other odd key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition

from kvref_conformance.model import steps as s
from kvref_conformance.stateful.command_rules import (
    MAPPING,
    MOSTLY,
    PROTOCOLS,
    RARE,
    UNMAPPED,
    CommandRules,
    does,
    real_names,
    swarm_rule,
)
from kvref_conformance.strategies.draw import pick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn

    from kvref_conformance.stateful.modelled import ModelledConversation

CONNECTIONS: Final = ("a", "b", "c")
TABLES: Final = {"m1": "t1", "m1b": "t1", "m2": "t2"}
KEYS: Final = ("k1", "k3", "k5")
FENCES: Final = ("k0", "k2", "k4", "k6")
VALUES: Final = ("1", "22", "7", "305")
# Rules of a history; what does nothing counts.
STEPS: Final = 40

CONNECTION: Final = st.sampled_from(CONNECTIONS)
TABLE: Final = st.sampled_from(("t1", "t1", "t2"))
VALUE: Final = st.sampled_from(VALUES)


class Histories(Protocol):
    """Runs histories; see `run.py` for the methods."""

    def begin(self, rows: tuple[tuple[str, str, str], ...]) -> ModelledConversation:
        """Begin a history with rows."""

    def take(self, conversation: ModelledConversation, step: s.Step) -> None:
        """Do a step, unless it may not be done now."""

    def finish(self, conversation: ModelledConversation) -> None:
        """End everything that is open."""


@st.composite
def changes(draw: DrawFn, *verbs: str, within: bool = False) -> list[s.Step]:
    """Draw a change of a row over SQL."""
    self: HistoryMachine = draw(st.runner())
    verb, table, key = pick(draw, verbs or ("update", "delete", "insert")), self.names[draw(TABLE)], self.key(draw)
    return [s.Change(verb, table, key, "" if verb == "delete" else draw(VALUE), within)]


@st.composite
def reads_around_a_change(draw: DrawFn) -> list[s.Step]:
    """Draw a get, a change of the row over SQL, and the get again; each may be left out."""
    self: HistoryMachine = draw(st.runner())
    on, key, model = draw(CONNECTION), self.key(draw), self.conversation.model
    get = self.command(draw, on, "get", UNMAPPED, key)
    steps: list[s.Step] = [get, get]
    if on in model.open:
        place = model.tables[model.open[on].mapping], key
        verb = "insert" if model.rows.newest(place) is None else "update"
        steps.insert(1, s.Change(verb, *place, draw(VALUE)))
    return [step for step in steps if draw(MOSTLY)]


class HistoryMachine(CommandRules):
    """One history.

    histories: begins it, takes its steps, finishes it.
    missing: features that the endpoint has not.
    names: real names of mappings and tables.
    finished: nothing is done any more.
    """

    histories: ClassVar[Histories]
    names: ClassVar[Mapping[str, str]]
    conversation: ModelledConversation
    connections, keys, values = CONNECTIONS, KEYS, VALUES
    finished: bool = False

    @initialize(
        rows=st.dictionaries(st.tuples(TABLE, st.sampled_from(KEYS)), VALUE),
        mappings=st.tuples(MAPPING, MAPPING, MAPPING),
        protocols=PROTOCOLS,
    )
    def begin(
        self, *, rows: dict[tuple[str, str], str], mappings: tuple[int, int, int], protocols: tuple[str, str, str]
    ) -> None:
        """Fill the tables and open the connections."""
        self.mappings = real_names(self.names, TABLES)
        self.conversation = self.histories.begin(
            tuple((self.names[table], key, value) for (table, key), value in sorted(rows.items()))
        )
        self.begin_with(protocols)
        for on, mapping in zip(CONNECTIONS, mappings, strict=True):
            self.do(s.Open(on, self.mappings[mapping], self.protocols[on]))

    close = does("close", st.builds(s.Close, CONNECTION, st.booleans()).map(lambda step: [step]))
    read = does("read", st.builds(s.Read, RARE).map(lambda step: [step]))
    # May wait for a connection; in a transaction, connections wait for it.
    change = does("change", changes())
    change_in_transaction = does("change_in_transaction", changes(within=True))
    update = does("update", changes("update"))
    read_again = does("read_again", reads_around_a_change())

    @swarm_rule(on=CONNECTION, commit=st.booleans(), really=RARE)
    def flush(self, *, on: str, commit: bool, really: bool) -> None:
        """Let the others go first, which flush_all would wait for, and empty the table."""
        model = self.conversation.model
        if really and on in model.open:
            self.do(s.End(commit))
            table = model.tables[model.open[on].mapping]
            for other in [each for each in model.open if each != on and table in model.open[each].touched]:
                self.do(s.Close(other))
            self.do(s.Flush(on, protocol=self.protocols[on]))

    @swarm_rule(ends=st.sampled_from((True, *(False,) * 19)))
    def close_all(self, *, ends: bool) -> None:
        """End the history before its last rule."""
        if ends:
            self.finish()

    @precondition(lambda self: len(self.conversation.model.open) < len(CONNECTIONS))
    @swarm_rule(on=CONNECTION, mapping=MAPPING)
    def connect(self, *, on: str, mapping: int) -> None:
        """Connect again."""
        self.do(s.Open(on, self.mappings[mapping], self.protocols[on]))

    @precondition(lambda self: self.conversation.model.sql_open)
    @swarm_rule(commit=st.booleans())
    def end(self, *, commit: bool) -> None:
        """End the SQL transaction."""
        self.do(s.End(commit))

    def do(self, step: s.Step) -> None:
        """Do a step that may be done now."""
        if not self.finished:
            self.histories.take(self.conversation, self.safe(step))

    def safe(self, step: s.Step) -> s.Step:
        """Return a step with the key alone where `@@mapping.key` is a key, which other keys would surround."""
        if isinstance(step, s.Count | s.Delete) and not self.conversation.model.rules.all_switch:
            return replace(step, word=step.word.rpartition(".")[2])
        return step

    def teardown(self) -> None:
        """End the history, unless the endpoint could not be reached."""
        if hasattr(self, "conversation"):
            self.finish()

    def finish(self) -> None:
        """End what is open, and look at the rows."""
        if not self.finished:
            self.finished = True
            self.histories.finish(self.conversation)
