"""Hold a drawn conversation: make its table, say its commands, compare every answer and at last the rows behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvref_conformance.case import Setup, Shape
from kvref_conformance.conversation import Exchange, render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.sql.base import CONTAINER_COLUMNS, literal
from kvref_conformance.stateful.schemas.model import Table
from kvref_conformance.steps import Say, Sql
from kvref_conformance.template import Names

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.connection import Connection
    from kvref_conformance.judge import Judge
    from kvref_conformance.sql.world import World
    from kvref_conformance.stateful.schemas.strategies import Cells, Command, Drawn
    from kvref_conformance.steps import Step

PATIENCE: Final = 3.0
# What a row of `containers` maps, where the row itself is what is drawn.
PLAIN: Final = Shape("k VARCHAR(32) PRIMARY KEY, v0 VARCHAR(40), w VARCHAR(40), f INT", "v0", cas="0", expiry="0")


class Talk:
    """Conversations with one endpoint, one after the other.

    Args:
        judge: of the run.
        world: the suite's tables.
    """

    def __init__(self, judge: Judge, world: World) -> None:
        self.last: list[Exchange] = []
        self._steps: list[Step] = []
        self._setup: Setup | None = None
        self._shape = PLAIN
        self._own: dict[str, str] = {}
        self._judge = judge
        self._world = world
        self._names = Names({}, judge.fresh_key)

    def hold_table(self, table: Drawn, commands: list[Command]) -> None:
        """Make the table, insert its rows, say the commands.

        Raises:
            CaseFailed: an answer, or a row at the end, is not what the model says; so the other methods.
        """
        self._begin(None)
        self._hold(table, commands, "|")

    def hold_row(self, drawn: tuple[Cells, bool]) -> None:
        """Insert a row of `containers` next to a valid one, and require that it is known or unknown."""
        cells, usable = drawn
        self._begin(None)
        names = self._table(PLAIN)
        name = self._judge.fresh_key("r")
        self._own[name] = "{k}"
        self._judge.exercised.begin(names, None, PLAIN)
        given = {"schema": "test", "table": names["t"], **cells}
        row = (name, *(given.get(part, getattr(PLAIN, part, None)) for part in PARTS))
        if usable:
            self._judge.exercised.configured(None, replace(PLAIN, **{n: text for n, text in cells.items() if text}))
        containers = self._world.database.containers
        self._sql(f"INSERT INTO {containers} ({CONTAINER_COLUMNS}) VALUES ({', '.join(map(literal, row))})")  # noqa: S608
        with self._judge.endpoint.connect() as connection:
            self._say(connection, f"bind {names['m']}\r\n", "SUCCEED\r\n")
            self._say(connection, "set a 0 0 1\r\nx\r\n", "STORED\r\n")
            found = f"VALUE @@{name}.a 0 1\r\nx\r\nEND\r\n" if usable else "END\r\n"
            self._say(connection, f"get @@{name}.a\r\n", found)
            self._say(connection, f"bind {name}\r\n", "SUCCEED\r\n" if usable else "NOT_FOUND\r\n")
            self._say(connection, "get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n")
        self._sql(f"DELETE FROM {containers} WHERE name = '{name}'")  # noqa: S608 - own names

    def hold_configuration(self, delimiter: str, separator: str, table: Drawn, commands: list[Command]) -> None:
        """Put the options in force, reach the table by `@@`, say the commands."""
        self._begin(Setup(delimiter, separator=separator))
        self._hold(table, commands, separator, delimiter)

    def script(self, case: Case) -> Case:
        """Return a case with the steps of the last conversation, on a table of its own."""
        return replace(case, steps=tuple(self._steps), setup=self._setup, shape=self._shape, bind="")

    def _begin(self, setup: Setup | None) -> None:
        self.last, self._steps, self._setup = [], [], setup
        self._world.configure(setup)

    def _table(self, shape: Shape) -> dict[str, str]:
        self._shape = shape
        names = self._world.shaped(shape)
        self._own = {names["t"]: "{t}", names["m"]: "{m}"}
        return names

    def _named(self, text: str) -> str:
        for own, name in self._own.items():
            text = text.replace(own, name)
        return text

    def _hold(self, table: Drawn, commands: list[Command], separator: str, delimiter: str = "") -> None:
        names = self._table(table.shape)
        self._judge.exercised.begin(names, self._setup, table.shape)
        model = Table(self._judge.endpoint.profile, table.key, table.values, separator)
        self._insert(table, names["t"], model)
        with self._judge.endpoint.connect() as connection:
            if delimiter:
                word = f"@@{names['m']}{delimiter}"
                self._say(connection, f"get {word}\r\n", f"VALUE {word} 0 <number>\r\n<text>\r\nEND\r\n")
            else:
                self._say(connection, f"bind {names['m']}\r\n", "SUCCEED\r\n")
            for command in commands:
                self._say(connection, command.line, _answer(model, command))
        self._compare(table, names["t"], model)

    def _insert(self, table: Drawn, name: str, model: Table) -> None:
        columns = ", ".join(("k", *(column.name for column in table.values), "f"))
        for key, cells, flags in table.rows:
            if model.insert(key, cells, flags):
                literals = ", ".join(map(literal, (key, *cells, flags)))
                self._sql(f"INSERT INTO {name} ({columns}) VALUES ({literals})")  # noqa: S608 - own names

    def _compare(self, table: Drawn, name: str, model: Table) -> None:
        columns = ", ".join(("k", *(column.name for column in table.values), "f"))
        statement = f"SELECT {columns} FROM {name}"  # noqa: S608 - own names
        wanted = sorted(map(str, model.content()))
        got = sorted(str(tuple(row)) for row in self._world.database.query(statement))
        self.last.append(Exchange("sql", statement, (" ".join(wanted),), " ".join(got), "", got == wanted))
        ordered = tuple(sorted(model.content(), key=lambda row: str(row[0])))
        self._steps.append(Sql(self._named(f"{statement} ORDER BY k"), ordered))
        if got != wanted:
            raise CaseFailed(render(self.last))

    def _sql(self, statement: str) -> None:
        self._world.database.execute(statement)
        self.last.append(Exchange("sql", statement, (), ""))
        self._steps.append(Sql(self._named(statement), None))

    def _say(self, connection: Connection, line: str, allowed: str) -> None:
        reply = connection.ask((line.encode("latin-1"),), patience=PATIENCE)
        got = reply.data.decode("latin-1")
        self._judge.exercised.say("a", line.encode("latin-1"), got)
        note = reply.note(PATIENCE)
        kept = not note and self._names.match(allowed, got)
        self.last.append(Exchange("a", line, (allowed,), got, note, kept))
        self._steps.append(Say((self._named(line),), (self._named(allowed),), patience=PATIENCE))
        if not kept:
            raise CaseFailed(render(self.last))


# The cells of a row behind its name, in their order, as a Shape calls them.
PARTS: Final = ("schema", "table", "key", "values", "flags", "cas", "expiry", "index")


def _answer(model: Table, command: Command) -> str:
    if command.verb == "get":
        return model.get(list(command.words))
    if command.verb == "delete":
        return model.delete(command.words[0])
    return model.store(command.verb, command.words[0], command.flags, command.value)
