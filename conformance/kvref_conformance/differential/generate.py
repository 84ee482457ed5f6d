"""From a seed and a number to a world and a conversation, the same ones whatever was drawn before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus.conversation import Query, Sleep, Talk
from kvref_conformance.differential import exclusions
from kvref_conformance.differential.cells import draw_cell, draw_row
from kvref_conformance.differential.draw import chance, weighted
from kvref_conformance.differential.lines import Speaker
from kvref_conformance.differential.requests import Caller
from kvref_conformance.differential.shapes import BINARY, MIXED
from kvref_conformance.differential.world import CONFIGURATION, Container, World, literal
from kvref_conformance.differential.worlds import draw_world

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_conformance.corpus.conversation import Step
    from kvref_conformance.corpus.holes import Json
    from kvref_conformance.differential.shapes import Ground
    from kvref_conformance.frames import Parts

# Conversations that share a world: making one takes a second or two on MySQL.
IN_ONE_WORLD: Final = 100
NUMBER_READ: Final = "verbosity 1\r\n"
SQL: Final = "s"
# For a player that does not see the server close a connection; see `Sleep` in exchange.py.
UNTIL_CLOSED: Final = 0.1


@dataclass(frozen=True, slots=True)
class Script:
    """One conversation.

    Args:
        number: number in its seed.
        world: world that it runs in.
        steps: in order.
        rows: statements that fill the tables first.
        restless: it changes `containers`, which servers read once: they must read it again afterwards.
    """

    number: int
    world: World
    steps: tuple[Step, ...]
    rows: tuple[str, ...]
    restless: bool = False


def world_of(seed: int, number: int, ground: Ground) -> World:
    """Draw the world in which a conversation runs.

    Args:
        seed: seed of the run.
        number: number of the conversation, from 0.
        ground: configuration of the run.
    """
    mine = number // IN_ONE_WORLD
    return draw_world(Random(f"{seed} world {mine}"), mine, ground)


def script_of(seed: int, number: int, steps: int, ground: Ground, world: World) -> Script:
    """Draw a conversation of so many steps, or a few more; the other arguments as in `world_of`."""
    # The last one of a world, since to have everything read again takes seconds.
    restless = number % IN_ONE_WORLD == IN_ONE_WORLD - 1 and not ground.batches
    return _Conversation(Random(f"{seed} conversation {number}"), world, ground, restless=restless).script(
        number, steps
    )


_FLUSHES: Final = {
    "flush_all": 8.0, "flush_all 0": 1, "flush_all 10": 1, "flush_all -1": 0.3, "flush_all abc": 0.5,
    "flush_all 0 1 2": 0.2, "flush_all noreply": 1, "flush_all 0 noreply": 0.5,
}  # fmt: skip
_STEPS: Final = {
    "command": 80.0, "pipeline": 8, "bind": 6, "split": 2.5, "sql": 5, "close": 1.5, "flush": 0.8, "quit": 0.3,
}  # fmt: skip


# With batches one connection writes and another one reads: locked rows of a batch block no other connection.
_WRITER: Final = "a"
_NOT_IN_BATCHES: Final = ("sql",)
_READS: Final = {"command": 12.0, "bind": 1, "close": 0.3}


class _Conversation:
    def __init__(self, rnd: Random, world: World, ground: Ground, *, restless: bool) -> None:
        self._rnd = rnd
        self._world = world
        self._ground = ground
        self._speaker = Speaker(rnd, world, ground)
        self._restless = restless
        self._default = _default(world)
        self._bound: dict[str, Container] = {}
        self._names = weighted(rnd, {"a": 3.0, "aab": 1} if ground.batches else {"a": 4.0, "aab": 4.0, "abc": 2.0})
        self._caller = Caller(rnd, world, self._speaker)
        self._binary = _binary(rnd, ground.protocol)

    def script(self, number: int, steps: int) -> Script:
        drawn: list[Step] = []
        while len(drawn) < steps:
            drawn += self._step()
        return Script(number, self._world, tuple(drawn), self._world.fill(), self._restless)

    def _step(self) -> list[Step]:
        name = self._rnd.choice(self._names)
        bound = self._bound.setdefault(name, self._default)
        weights = dict(_READS if self._only_reads(name) else _STEPS)
        if self._ground.batches:
            weights = {kind: weight for kind, weight in weights.items() if kind not in _NOT_IN_BATCHES}
        if self._restless:
            weights["containers"] = 8
        if name in self._binary and not self._only_reads(name):
            weights["wrong"] = 2.5
        kind = weighted(self._rnd, weights)
        if kind == "bind" and name not in self._binary:
            self._bound[name], line = self._speaker.bind()
            return [Talk(name, line.decode("latin-1"))]
        if kind == "sql":
            return [self._change()]
        if kind == "containers":
            return [self._containers()]
        if kind == "close":
            self._bound.pop(name)
            return [Talk(name, close=True)]
        if kind == "quit":
            self._bound.pop(name)
            parts: Parts = self._caller.quit() if name in self._binary else [b"quit\r\n"]
            return [self._talk(name, parts), Talk(name, close=True)]
        if kind == "flush":
            return self._flush(name)
        while True:
            said = self._said(kind, name, bound)
            if exclusions.are_safe(
                said, self._ground.care, secondary=self._world.secondary, delimiter=self._world.delimiter
            ):
                return said

    def _said(self, kind: str, name: str, bound: Container) -> list[Step]:
        if kind == "bind":
            self._bound[name], parts = self._caller.bind()
            return [self._talk(name, parts)]
        if kind == "wrong":
            said: list[Step] = [self._talk(name, self._caller.wrong(bound))]
            return [*said, Talk(name, close=True)] if chance(self._rnd, 0.8) else said
        if kind == "split":
            return self._split(name, bound)
        speaker = self._caller if name in self._binary else self._speaker
        draw = speaker.read if self._only_reads(name) else speaker.command
        commands = [draw(bound) for _ in range(1 if kind == "command" else self._rnd.randint(2, 4))]
        return [self._talk(name, [part for command in commands for part in command])]

    def _only_reads(self, name: str) -> bool:
        return self._ground.batches and name != _WRITER

    def _split(self, name: str, bound: Container) -> list[Step]:
        whole = (self._caller if name in self._binary else self._speaker).command(bound)
        first = whole[0]
        assert isinstance(first, bytes), "a command begins with its verb"
        place = self._rnd.randint(1, max(1, len(first) - 1))
        rest: Parts = [first[place:], *whole[1:]]
        return [replace(self._talk(name, [first[:place]]), quiet=True), self._talk(name, rest)]

    def _talk(self, name: str, parts: Parts) -> Talk:
        if name in self._binary:
            return Talk(name, hex=_json(parts, bytes.hex))
        return Talk(name, _json(parts, _latin))

    def _flush(self, name: str) -> list[Step]:
        if name in self._binary:
            flush = self._talk(name, self._caller.flush())
        else:
            line = weighted(self._rnd, _FLUSHES)
            # A get that reads a number first decides whether a flush_all with a number is rejected, on any connection
            # (more:errno-001).
            flush = Talk(name, f"{NUMBER_READ if ' ' in line else ''}{line}\r\n")
        if exclusions.FLUSH_BESIDE_READERS not in self._ground.care and not self._ground.batches:
            return [flush]
        others = [each for each in self._bound if each != name]
        for each in others:
            del self._bound[each]
        closing: list[Step] = [Talk(each, close=True) for each in others]
        return [*closing, *([Sleep(UNTIL_CLOSED)] if closing else []), flush]

    def _change(self) -> Query:
        """Draw a change by SQL of a row that a mapping shows."""
        container = self._rnd.choice(self._speaker.favourites)
        table = container.table
        assert table is not None, "a usable row maps a table"
        key = container.key
        keys = [row[table.columns.index(key)] for row in table.rows]
        chosen = self._rnd.choice(keys) if keys else draw_cell(self._rnd, key, self._world.version)
        where = f"{key.name} IS NULL" if chosen is None else f"{key.name} = {literal(chosen)}"
        kind = weighted(self._rnd, {"UPDATE": 4.0, "DELETE": 2, "INSERT": 3})
        if kind == "DELETE":
            return Query(SQL, f"DELETE FROM test.{table.name} WHERE {where}")
        if kind == "INSERT":
            row = draw_row(self._rnd, table, self._world.version, self._rnd.randint(100, 999))
            return Query(SQL, f"INSERT INTO test.{table.name} VALUES ({', '.join(map(literal, row))})")
        column = self._rnd.choice([column for column in table.columns if column.name not in {key.name, "id"}])
        cell = literal(draw_cell(self._rnd, column, self._world.version))
        return Query(SQL, f"UPDATE test.{table.name} SET {column.name} = {cell} WHERE {where}")

    def _containers(self) -> Query:
        """Draw a change of `containers`."""
        container, other = self._rnd.choice(self._speaker.favourites), self._rnd.choice(self._world.containers)
        name, kind = (
            literal(container.name),
            weighted(self._rnd, {"UPDATE": 2.0, "DELETE": 1, "INSERT": 3, "rename": 0.5}),
        )
        table = f"{CONFIGURATION}.containers"
        if kind == "DELETE":
            return Query(SQL, f"DELETE FROM {table} WHERE name = {name}")
        if kind == "rename":
            return Query(SQL, f"UPDATE {table} SET name = 'renamed' WHERE name = {name}")
        if kind == "UPDATE":
            columns = ("db_table", "key_columns", "value_columns", "unique_idx_name_on_key")
            cells = [literal(other.cells[place]) for place in (2, 3, 4, 8)]
            changes = ", ".join(f"{column} = {cell}" for column, cell in zip(columns, cells, strict=True))
            return Query(SQL, f"UPDATE {table} SET {changes} WHERE name = {name}")
        new = self._rnd.choice(["nope", "new", "zz", *(each.name for each in self._world.containers)])
        return Query(SQL, f"INSERT INTO {table} VALUES ({', '.join(map(literal, (new, *other.cells[1:])))})")


def _default(world: World) -> Container:
    named = [each for each in world.usable if each.name == "default"]
    return (named or sorted(world.usable, key=lambda each: each.name.lower()))[0]


def _binary(rnd: Random, protocol: str) -> frozenset[str]:
    """Draw which connections use the binary protocol."""
    if protocol == MIXED:
        return frozenset(name for name in "abc" if chance(rnd, 0.6))
    return frozenset("abc" if protocol == BINARY else "")


def _latin(part: bytes) -> str:
    return part.decode("latin-1")


def _json(parts: Parts, written: Callable[[bytes], str]) -> Json:
    """Return the JSON of what is sent, for a script; `written` encodes bytes."""
    joined: list[Json] = []
    for part in parts:
        if isinstance(part, int):
            joined.append({"cas": part})
        elif joined and isinstance(joined[-1], str):
            joined[-1] += written(part)
        else:
            joined.append(written(part))
    return joined[0] if len(joined) == 1 else joined
