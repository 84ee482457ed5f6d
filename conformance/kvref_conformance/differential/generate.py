"""Strategies of worlds and conversations, and which of them a seed and a number stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from kvref.errors import SuiteError
from kvref_conformance.corpus.templates import bytes_of, escaped
from kvref_conformance.differential import exclusions
from kvref_conformance.differential.commands import KINDS, READS, Commands
from kvref_conformance.differential.configuration import BINARY, MIXED
from kvref_conformance.differential.worlds import draw_world
from kvref_conformance.model import encodings
from kvref_conformance.model import steps as s
from kvref_conformance.sql.base import literal
from kvref_conformance.stateful.run import example_settings, run_examples
from kvref_conformance.steps import Disconnect, Pause, Send, Sql
from kvref_conformance.strategies.cells import draw_cell, draw_row
from kvref_conformance.strategies.draw import between, chance, pick, weighted
from kvref_conformance.strategies.world import CONFIGURATION, Container, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.database import ExampleDatabase
    from hypothesis.strategies import DrawFn, SearchStrategy

    from kvref_conformance.differential.configuration import Configuration
    from kvref_conformance.steps import Step

T = TypeVar("T")
# Conversations that share a world: making one takes a second or two on MySQL.
IN_ONE_WORLD: Final = 100
SQL: Final = "s"
# For a player that does not see the server close a connection; see `Pause` in exchange.py.
UNTIL_CLOSED: Final = 0.1
# Hypothesis runs the simplest example before the first one of the seed.
SIMPLEST_AND_ONE: Final = 2


@dataclass(frozen=True, slots=True)
class Script:
    """One conversation.

    Args:
        number: number in its seed.
        world: world that it runs in.
        steps: in order.
        rows: statements that fill the tables first.
        changes_containers: it changes `containers`, which servers read once: they must read it again afterwards.
    """

    number: int
    world: World
    steps: tuple[Step, ...]
    rows: tuple[str, ...]
    changes_containers: bool = False


def run_one(
    draws: SearchStrategy[T],
    start: str,
    test: Callable[[T], None],
    database: ExampleDatabase | None = None,
    kind: bytes = b"",
) -> None:
    """Run a test with the example of a seed, after the simplest example of the strategy.

    Args:
        draws: the examples.
        start: seed.
        test: if it raises, smaller examples are tried.
        database: keeps failing examples, which are tried first.
        kind: distinguishes examples of the same seed in the database.

    Raises:
        SuiteError: the example has more draws than hypothesis allows.
        what the test raises for the smallest failing example, and what hypothesis raises.
    """
    phases = [*([Phase.reuse] if database is not None else []), Phase.generate, Phase.shrink]
    every = list(HealthCheck)
    limits = example_settings(SIMPLEST_AND_ONE, database, phases=phases, suppress_health_check=every)
    try:
        run_examples(f"{kind.decode()} {start}", draws, test, limits, start)
    except Unsatisfiable as error:
        raise SuiteError("a conversation has too many draws: --steps with a smaller number makes fewer") from error


def drawn(draws: SearchStrategy[T], start: str) -> T:
    """Return the example of a seed."""
    found: list[T] = []
    run_one(draws, start, found.append)
    return found[-1]


def world_of(seed: int, number: int, configuration: Configuration) -> World:
    """Draw the world in which a conversation runs.

    Args:
        seed: seed of the run.
        number: number of the conversation, from 0.
        configuration: of the run.
    """
    mine = number // IN_ONE_WORLD
    return drawn(st.composite(draw_world)(mine, configuration), f"{seed} world {mine}")


def start_of(seed: int, number: int) -> str:
    """Return the seed of a conversation."""
    return f"{seed} conversation {number}"


def script_of(seed: int, number: int, steps: int, configuration: Configuration, world: World) -> Script:
    """Draw a conversation of so many steps, or a few more; the other arguments as in `world_of`."""
    return drawn(conversations(number, steps, configuration, world), start_of(seed, number))


@st.composite
def conversations(draw: DrawFn, number: int, steps: int, configuration: Configuration, world: World) -> Script:
    """Draw conversations; the simplest one has neither steps nor rows. Arguments as in `script_of`."""
    # The last one of a world, since to have everything read again takes seconds.
    changes_containers = number % IN_ONE_WORLD == IN_ONE_WORLD - 1 and not configuration.batches
    conversation = _Conversation(draw, world, configuration, changes_containers=changes_containers)
    one = st.composite(conversation.step)()
    steps_drawn = [step for _ in range(steps) for step in draw(one)]
    tables = [
        replace(table, rows=tuple(row for row in table.rows if chance(draw, KEEP_PROBABILITY)))
        for table in world.mapped
    ]
    rows = tuple(statement for table in tables for statement in table.fill())
    return Script(number, world, tuple(steps_drawn), rows, changes_containers)


@st.composite
def parts_of(draw: DrawFn, world: World) -> World:
    """Draw worlds with some of the mappings of a world, and the tables that these name."""
    containers = tuple(each for each in world.containers if chance(draw, 0.75))
    names = {each.cells[2] for each in containers}
    return replace(world, containers=containers, tables=tuple(table for table in world.tables if table.name in names))


def in_world(script: Script, world: World) -> Script:
    """Return a script in a part of its world."""
    fills = tuple(f"{words} test.{table.name}" for table in world.tables for words in ("DELETE FROM", "INSERT INTO"))
    rows = tuple(row for row in script.rows if f"{row} ".startswith(tuple(f"{fill} " for fill in fills)))
    return replace(script, world=world, rows=rows)


# Requests in a packet, after which no command is added.
MAX_REQUESTS: Final = 8
# How often a step, a row, or one of several commands in a packet is there.
KEEP_PROBABILITY: Final = 0.97
_STEPS: Final = {
    "command": 88.0, "bind": 6, "split": 2.5, "sql": 5, "close": 1.5, "flush": 0.8, "quit": 0.3,
}  # fmt: skip


# With batches one connection writes and another one reads: locked rows of a batch block no other connection.
_WRITER: Final = "a"
_NOT_IN_BATCHES: Final = ("sql",)
_READS: Final = {"command": 12.0, "bind": 1, "close": 0.3}


class _Conversation:
    def __init__(self, draw: DrawFn, world: World, configuration: Configuration, *, changes_containers: bool) -> None:
        self._draw = draw
        self._world = world
        self._configuration = configuration
        self._commands = Commands(draw, world, configuration)
        self._changes_containers = changes_containers
        self._default = _default(world)
        self._bound: dict[str, Container] = {}
        self._names = weighted(
            draw, {"a": 3.0, "aab": 1} if configuration.batches else {"a": 4.0, "aab": 4.0, "abc": 2.0}
        )
        self._binary = _binary(draw, configuration.protocol)

    def step(self, draw: DrawFn) -> list[Step]:
        """Draw a step, or a few that belong together; none is simplest, so that every step can go."""
        return self._step() if chance(draw, KEEP_PROBABILITY) else []

    def _step(self) -> list[Step]:
        name = pick(self._draw, self._names)
        protocol = s.BINARY if name in self._binary else s.TEXT
        bound = self._bound.setdefault(name, self._default)
        weights = dict(_READS if self._only_reads(name) else _STEPS)
        if self._configuration.batches:
            weights = {kind: weight for kind, weight in weights.items() if kind not in _NOT_IN_BATCHES}
        if self._changes_containers:
            weights["containers"] = 8
        if protocol == s.BINARY and not self._only_reads(name):
            weights["wrong"] = 2.5
        kind = weighted(self._draw, weights)
        if kind == "sql":
            return [self._change()]
        if kind == "containers":
            return [self._containers()]
        if kind in {"close", "quit"}:
            self._bound.pop(name)
            quits = [_send(name, protocol, [self._commands.quit(protocol)])] if kind == "quit" else []
            return [*quits, Disconnect(name, "close")]
        if kind == "flush":
            return self._flush(name, protocol)
        others = [Send(("",), (), each) for each in self._bound if each != name]
        drawn = self._requests(kind, name, protocol, bound)
        world = self._world
        taken = [*others, *drawn]
        if exclusions.are_safe(taken, self._configuration.rules, secondary=world.secondary, delimiter=world.delimiter):
            return drawn
        self._bound[name] = bound
        return []

    def _requests(self, kind: str, name: str, protocol: str, bound: Container) -> list[Step]:
        if kind == "bind":
            self._bound[name], request = self._commands.bind(protocol)
            return [_send(name, protocol, [request])]
        if kind == "wrong":
            wrong: list[Step] = [_send(name, protocol, self._commands.wrong(bound))]
            return [*wrong, Disconnect(name, "close")] if chance(self._draw, 0.8) else wrong
        kinds = READS if self._only_reads(name) else KINDS
        commands = [self._commands.requests(bound, protocol, kinds)]
        if kind == "split":
            return [self._split(_send(name, protocol, commands[0]))]
        # Now and then several in one packet, each of which can go.
        more = chance(self._draw, 0.09 if protocol == s.TEXT else 0.2)
        while more and sum(map(len, commands)) < MAX_REQUESTS:
            commands.append(self._commands.requests(bound, protocol, kinds))
            more = chance(self._draw, 0.5)
        if len(commands) > 1:
            commands = [each for each in commands if chance(self._draw, KEEP_PROBABILITY)]
        return [_send(name, protocol, [request for each in commands for request in each])] if commands else []

    def _only_reads(self, name: str) -> bool:
        return self._configuration.batches and name != _WRITER

    def _split(self, send: Send) -> Send:
        """Return a step whose requests are sent in two packets."""
        (text,) = send.packets
        if send.binary:
            return replace(send, cuts=(between(self._draw, 1, len(bytes_of(send)) - 1),))
        # Not within the name of a cas number.
        place = between(self._draw, 1, max(1, len(text.partition("{")[0]) - 1))
        return replace(send, packets=(text[:place], text[place:]))

    def _flush(self, name: str, protocol: str) -> list[Step]:
        flush = _send(name, protocol, [self._commands.flush(protocol)])
        if exclusions.FLUSH_DURING_READS not in self._configuration.rules and not self._configuration.batches:
            return [flush]
        others = [each for each in self._bound if each != name]
        for each in others:
            del self._bound[each]
        closing: list[Step] = [Disconnect(each, "close") for each in others]
        return [*closing, *([Pause(UNTIL_CLOSED)] if closing else []), flush]

    def _change(self) -> Sql:
        """Draw a change by SQL of a row that a mapping shows."""
        container = pick(self._draw, self._commands.favourites)
        table = container.table
        assert table is not None, "a usable row maps a table"
        key = container.key
        keys = [row[table.columns.index(key)] for row in table.rows]
        chosen = pick(self._draw, keys) if keys else draw_cell(self._draw, key, self._world.palette)
        where = f"{key.name} IS NULL" if chosen is None else f"{key.name} = {literal(chosen)}"
        kind = weighted(self._draw, {"UPDATE": 4.0, "DELETE": 2, "INSERT": 3})
        if kind == "DELETE":
            return _sql(f"DELETE FROM test.{table.name} WHERE {where}")
        if kind == "INSERT":
            row = draw_row(self._draw, table, self._world.palette, between(self._draw, 100, 999))
            return _sql(f"INSERT INTO test.{table.name} VALUES ({', '.join(map(literal, row))})")
        column = pick(self._draw, [column for column in table.columns if column.name not in {key.name, "id"}])
        cell = literal(draw_cell(self._draw, column, self._world.palette))
        return _sql(f"UPDATE test.{table.name} SET {column.name} = {cell} WHERE {where}")

    def _containers(self) -> Sql:
        """Draw a change of `containers`."""
        container, other = pick(self._draw, self._commands.favourites), pick(self._draw, self._world.containers)
        name, kind = (
            literal(container.name),
            weighted(self._draw, {"UPDATE": 2.0, "DELETE": 1, "INSERT": 3, "rename": 0.5}),
        )
        table = f"{CONFIGURATION}.containers"
        if kind == "DELETE":
            return _sql(f"DELETE FROM {table} WHERE name = {name}")
        if kind == "rename":
            return _sql(f"UPDATE {table} SET name = 'renamed' WHERE name = {name}")
        if kind == "UPDATE":
            columns = ("db_table", "key_columns", "value_columns", "unique_idx_name_on_key")
            cells = [literal(other.cells[place]) for place in (2, 3, 4, 8)]
            changes = ", ".join(f"{column} = {cell}" for column, cell in zip(columns, cells, strict=True))
            return _sql(f"UPDATE {table} SET {changes} WHERE name = {name}")
        new = pick(self._draw, ["nope", "new", "zz", *(each.name for each in self._world.containers)])
        return _sql(f"INSERT INTO {table} VALUES ({', '.join(map(literal, (new, *other.cells[1:])))})")


def _default(world: World) -> Container:
    named = [each for each in world.usable if each.name == "default"]
    return (named or sorted(world.usable, key=lambda each: each.name.lower()))[0]


def _binary(draw: DrawFn, protocol: str) -> frozenset[str]:
    """Draw which connections use the binary protocol."""
    if protocol == MIXED:
        return frozenset(name for name in "abc" if chance(draw, 0.6))
    return frozenset("abc" if protocol == BINARY else "")


def _sql(statement: str) -> Sql:
    return Sql(escaped(statement), on=SQL)


def _send(on: str, protocol: str, requests: list[str]) -> Send:
    return Send((encodings.joined(protocol, requests),), (), on, binary=protocol == s.BINARY)
