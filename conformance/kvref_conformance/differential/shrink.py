"""Make a conversation with a difference smaller while the same kind of difference stays."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from kvref_conformance.corpus.conversation import Talk
from kvref_conformance.differential.shrink_frames import shorter_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kvref_conformance.corpus.conversation import Step
    from kvref_conformance.differential.generate import Script
    from kvref_conformance.differential.world import Container, Table

T = TypeVar("T")
_DATA: Final = re.compile(r"((?:set|add|replace|append|prepend|cas) \S+ \S+ \S+ )(\d+)([^\r\n]*\r\n)", re.ASCII)


def shrink(script: Script, differs: Callable[[Script], bool]) -> Script:
    """Return a smaller script that still differs.

    Args:
        script: a script that differs.
        differs: runs a script and returns whether the same kind of difference occurs.
    """
    while True:
        before = script
        script = _with_fewer_steps(script, differs)
        script = _with_shorter_steps(script, differs)
        script = _with_fewer_rows(script, differs)
        if script == before:
            return script


def shrink_world(script: Script, differs: Callable[[Script], bool]) -> Script:
    """Return a script that still differs in a world with fewer mappings and tables; each try takes a second or two."""
    containers = fewer(
        script.world.containers, lambda kept: differs(_in_world(script, tuple(kept), script.world.tables))
    )
    tables = tuple(table for table in script.world.tables if any(each.cells[2] == table.name for each in containers))
    smaller = _in_world(script, tuple(containers), tables)
    return smaller if differs(smaller) else _in_world(script, tuple(containers), script.world.tables)


def _in_world(script: Script, containers: tuple[Container, ...], tables: tuple[Table, ...]) -> Script:
    world = replace(script.world, containers=containers, tables=tables)
    rows = tuple(row for row in script.rows if any(_fills(row, table) for table in tables))
    return replace(script, world=world, rows=rows)


def _fills(statement: str, table: Table) -> bool:
    return re.match(rf"(?:DELETE FROM|INSERT INTO) test\.{table.name}\b", statement) is not None


def _with_fewer_steps(script: Script, differs: Callable[[Script], bool]) -> Script:
    steps = fewer(script.steps, lambda kept: differs(replace(script, steps=tuple(kept))))
    return replace(script, steps=tuple(steps))


def _with_fewer_rows(script: Script, differs: Callable[[Script], bool]) -> Script:
    rows = fewer(
        script.rows, lambda kept: differs(replace(script, rows=tuple(kept))), lambda text: text.startswith("INSERT")
    )
    return replace(script, rows=tuple(rows))


def fewer(
    items: Sequence[T], differs: Callable[[list[T]], bool], may_go: Callable[[T], bool] = lambda _: True
) -> list[T]:
    """Drop pieces of halving size as long as the difference stays (delta debugging, Zeller 1999).

    Args:
        items: items that differ.
        differs: returns whether fewer of them still do.
        may_go: returns whether an item may be dropped at all.
    """
    kept = list(items)
    size = max(1, len(kept) // 2)
    while size:
        place = 0
        while place < len(kept):
            piece = kept[place : place + size]
            shorter = kept[:place] + kept[place + size :]
            if all(map(may_go, piece)) and differs(shorter):
                kept = shorter
            else:
                place += size
        size //= 2
    return kept


def _with_shorter_steps(script: Script, differs: Callable[[Script], bool]) -> Script:
    for number, step in enumerate(script.steps):
        if not isinstance(step, Talk):
            continue
        for shorter in _shorter_steps(step):
            candidate = _put(script, number, shorter)
            if differs(candidate):
                return _with_shorter_steps(candidate, differs)
    return script


def _shorter_steps(step: Talk) -> Iterator[Talk]:
    if step.hex is not None:
        yield from (replace(step, hex=shorter) for shorter in shorter_frames(step.hex))
    elif isinstance(step.send, str):
        yield from (replace(step, send=shorter) for shorter in _shorter(step.send))


def _shorter(text: str) -> Iterator[str]:
    """Yield shorter forms of what is sent: without a command, without a word, with a shorter data block."""
    commands = list(_commands(text))
    for number, command in enumerate(commands):
        before, after = "".join(commands[:number]), "".join(commands[number + 1 :])
        if len(commands) > 1:
            yield before + after
        for shorter in _shorter_data(command) if _DATA.match(command) else _shorter_line(command):
            yield before + shorter + after


def _commands(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        found = _DATA.match(text, place)
        end = found.end() + int(found[2]) + 2 if found else text.find("\n", place) + 1 or len(text)
        yield text[place:end]
        place = end


def _shorter_data(command: str) -> Iterator[str]:
    found = _DATA.match(command)
    assert found is not None, "the command has a data block"
    data = command[found.end() : found.end() + int(found[2])]
    for shorter in dict.fromkeys((data[: len(data) // 2], data[1:], data[:-1])):
        if shorter != data:
            yield f"{found[1]}{len(shorter)}{found[3]}{shorter}\r\n"


def _shorter_line(command: str) -> Iterator[str]:
    words = command.rstrip("\r\n").split(" ")
    for place in range(1, len(words)):
        yield " ".join(words[:place] + words[place + 1 :]) + "\r\n"


def _put(script: Script, number: int, step: Step) -> Script:
    return replace(script, steps=(*script.steps[:number], step, *script.steps[number + 1 :]))
