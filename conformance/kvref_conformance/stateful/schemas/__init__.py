"""Generated tables: hypothesis draws a table, its rows and commands (`strategies.py`), the model returns the replies.

Three cases, each a loop of examples: any table; any row of `containers`, invalid or unusual, next to a valid one; any
delimiter and separator. A failure shrinks to the smallest table and the fewest commands that reproduce it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Setup, Shape
from kvref_conformance.errors import CaseFailed
from kvref_conformance.judging.conversation import Exchange
from kvref_conformance.judging.findings import Search
from kvref_conformance.model import steps as s
from kvref_conformance.model.model import Model
from kvref_conformance.model.schema import Schema
from kvref_conformance.model.words import Mappings
from kvref_conformance.sql.base import CONTAINER_COLUMNS, literal
from kvref_conformance.stateful.as_case import RELOADED, as_case
from kvref_conformance.stateful.case_names import ANY_CONFIGURATION, ANY_ROW, ANY_TABLE
from kvref_conformance.stateful.command_rules import missing_in
from kvref_conformance.stateful.examples import judge_examples
from kvref_conformance.stateful.modelled import ModelledConversation
from kvref_conformance.stateful.run import example_settings, run_examples
from kvref_conformance.stateful.schemas import strategies
from kvref_conformance.steps import Reload
from kvref_conformance.strategies.palette import MODELLED, SHARDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.judging.findings import Signature
    from kvref_conformance.judging.judge import Judge
    from kvref_conformance.judging.verdict import Verdict
    from kvref_conformance.sql.world import World
    from kvref_conformance.stateful.schemas.strategies import Cells
    from kvref_conformance.strategies.tables import MappedTable

ON: Final = "a"
# Divisors of the number of examples of each case; a configuration costs a reload, so few are tried.
SHARE: Final = {ANY_TABLE: 1, ANY_ROW: 2, ANY_CONFIGURATION: 12}
# What a row of `containers` maps, where the row itself is what is drawn.
USUAL: Final = Shape("k VARCHAR(32) PRIMARY KEY, v0 VARCHAR(40), w VARCHAR(40), f INT", "v0", cas="0", expiry="0")
# The cells of a row behind its name, in their order, as a Shape calls them.
PARTS: Final = ("schema", "table", "key", "values", "flags", "cas", "expiry", "index")


def judge_schemas(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run conversations of one kind, its share of the examples; arguments as of `judge_generated`."""
    assert judge.world is not None, "without --sql it is not run"
    search = Search(judge)
    tables = _Tables(judge, judge.world, search, case)
    palette = SHARDED if judge.world.database.over_sql() == "vitess" else MODELLED
    run_one = tables.run_row if case.id == ANY_ROW else tables.run_table
    settings = example_settings(max(2, examples // SHARE[case.id]), judge.database)

    def run() -> None:
        run_examples(case.id, strategies.drawn(case.id, palette), lambda drawn: run_one(*drawn), settings, start)

    return judge_examples(search, judge, case, chapter, start, run, tables.script)


class _Tables:
    """Conversations with tables of their own, one after the other."""

    def __init__(self, judge: Judge, world: World, search: Search, case: Case) -> None:
        self._judge, self._world, self._search, self._case = judge, world, search, case
        self._missing = missing_in(judge.endpoint)
        self._setup: Setup | None = None
        self._shape = USUAL
        self._own: dict[str, str] = {}
        self._failed: tuple[Setup | None, Shape, dict[str, str]] = None, USUAL, {}

    def script(self) -> Case:
        """Return the conversation that is shown as a case, on its own table."""
        setup, shape, own = self._failed
        return replace(as_case(self._case, self._search.last, self._judge, own), setup=setup, shape=shape)

    def run_table(
        self, table: MappedTable, commands: Sequence[s.Request], delimiter: str = "", separator: str = "|"
    ) -> None:
        """Create the table, insert its rows, send the commands, compare the rows; raises CaseFailed.

        Args:
            table: with its rows.
            commands: on its keys.
            delimiter: with the separator, options in force, and then the table is named by `@@`; empty: those of a run.
            separator: of the values.
        """
        names = self._begin(Setup(delimiter, separator=separator) if delimiter else None, _shape(table))
        mapping, name, key, values = names["m"], names["t"], table.key_column, table.value_columns
        database = self._world.database
        profile, columns = self._judge.endpoint.profile, ", ".join((key.name, *table.values, table.flags))
        schemas = {name: Schema(profile, key, values, separator)}
        default = self._world.default_words()
        mappings = Mappings.of(profile, {mapping: name}, default, schemas=schemas, delimiter=delimiter or ".")
        model = Model(profile, mappings)
        conversation = self._conversation(model)
        try:
            for row in table.table.rows:
                cells = dict(zip((column.name for column in table.table.columns), row, strict=True))
                given = [cells[part] for part in (table.key, *table.values, table.flags)]
                flags = given[-1]
                assert flags is None or isinstance(flags, int), "its column is an integer"
                if model.insert(name, given[0], tuple(given[1:-1]), flags):
                    literals = ", ".join(map(literal, given))
                    statement = f"INSERT INTO {name} ({columns}) VALUES ({literals})"
                    conversation.change(database, statement)
            for on in dict.fromkeys((ON, *(command.on for command in commands))):
                protocol = s.BINARY if on == "b" and "binary" not in self._missing else s.TEXT
                conversation.take(s.Open(on, "" if delimiter else mapping, protocol))
                if delimiter:
                    conversation.take(s.Get(on, (f"@@{mapping}{delimiter}",), protocol=protocol))
            for command in map(self._supported, commands):
                conversation.take(command)
            conversation.compare_rows(database, name, columns)
        finally:
            conversation.close()

    def run_row(self, cells: Cells, usable: bool) -> None:
        """Insert a row of `containers` next to a valid one, and compare whether it is known; raises CaseFailed."""
        names = self._begin(None, USUAL)
        mapping, name = names["m"], self._judge.fresh_key("r")
        if usable:
            odd = {part: text for part, text in cells.items() if text}
            self._judge.exercised.configured(None, replace(USUAL, **odd))
        given = {"schema": "test", "table": names["t"], **cells}
        row = (name, *(given.get(part, getattr(USUAL, part, None)) for part in PARTS))
        known = {mapping: names["t"]} | ({name: names["t"]} if usable else {})
        containers = self._world.database.containers
        conversation = self._conversation(Model(self._judge.endpoint.profile, Mappings(known)))
        try:
            conversation.change(
                self._world.database,
                f"INSERT INTO {containers} ({CONTAINER_COLUMNS}) VALUES ({', '.join(map(literal, row))})",
            )
            conversation.take(s.Open(ON, mapping))
            conversation.take(s.Store(ON, "set", "a", "x"))
            conversation.take(s.Get(ON, (f"@@{name}.a",)))
            conversation.take(s.Bind(ON, name))
            conversation.take(s.Get(ON, ("a",)))
        finally:
            conversation.close()
            self._world.database.execute(f"DELETE FROM {containers} WHERE name = '{name}'")

    def _begin(self, setup: Setup | None, shape: Shape) -> Mapping[str, str]:
        """Put a configuration in force and return the names of mapping and table of a shape."""
        self._search.patience.check()
        self._setup, self._shape, self._own = setup, shape, {}
        try:
            self._world.configure(setup)
        except CaseFailed as failure:
            gone = Exchange("sql", RELOADED, (), str(failure), "", passed=False, step=Reload())
            self._fail((gone,), ("configuration", str(failure)))
        names = self._own = self._world.shaped(shape)
        self._judge.exercised.begin(names, setup, shape)
        return names

    def _conversation(self, model: Model) -> ModelledConversation:
        return ModelledConversation(self._judge.endpoint, model, self._report, exercised=self._judge.exercised)

    def _report(self, conversation: ModelledConversation) -> None:
        assert conversation.wrong is not None, "something is not allowed"
        # Keys are drawn too: what is wrong looks different in each conversation.
        self._fail(tuple(conversation.exchanges), (conversation.wrong.request.split(maxsplit=1)[0],))

    def _fail(self, exchanges: tuple[Exchange, ...], found: Signature) -> None:
        try:
            self._search.fail(self._case.id, exchanges, found)
        finally:
            if self._search.last is exchanges:  # the conversation that is shown
                self._failed = self._setup, self._shape, self._own

    def _supported(self, command: s.Request) -> s.Request:
        """Return a command as text if the endpoint has not its protocol."""
        return replace(command, protocol=s.TEXT) if command.protocol in self._missing else command


def _shape(table: MappedTable) -> Shape:
    """Return a table as a case has it."""
    return Shape(table.table.definition, ",".join(table.values), table.key, table.flags, cas="0", expiry="0")
