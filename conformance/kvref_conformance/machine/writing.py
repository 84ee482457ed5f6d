"""A conversation of the machine as a case, so that it can be held again: keys, mappings and cas numbers get names."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from kvref_conformance.case import Say, Sql
from kvref_conformance.machine.model import CAS
from kvref_conformance.template import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case, Step
    from kvref_conformance.conversation import Exchange
    from kvref_conformance.judge import Judge

CAS_WORD = re.compile(r"(?<= )(\d+)(?=(?: noreply)?\r\n)")


def as_case(case: Case, exchanges: Sequence[Exchange], judge: Judge) -> Case:
    """Return a case with the steps of a conversation.

    Args:
        case: whose id, requirements and settings it gets.
        exchanges: what was said; those of a connection are text.
        judge: of the run; knows its keys and mappings.
    """
    names = Names(judge.names().texts, judge.fresh_key)
    number = count()
    for key in judge.keys:
        if any(key in exchange.sent for exchange in exchanges):
            names.texts[f"k{next(number)}"] = key
    caught = _numbers(exchanges)
    steps = [_step(exchange, names, caught) for exchange in exchanges]
    # What opens a connection binds the mapping itself.
    return replace(case, steps=tuple(steps), bind="")


def _numbers(exchanges: Sequence[Exchange]) -> dict[str, str]:
    """Return the cas numbers that were sent after they had been answered, with a name each."""
    caught: dict[str, str] = {}
    answered: set[str] = set()
    for exchange in exchanges:
        if exchange.sent.startswith("cas "):
            found = CAS_WORD.search(exchange.sent)
            if found and found[1] in answered and found[1] not in caught:
                caught[found[1]] = f"n{len(caught) % 10}"
        answered.update(re.findall(r"^VALUE \S+ \d+ \d+ (\d+)\r$", exchange.got, re.MULTILINE))
    return caught


def _step(exchange: Exchange, names: Names, caught: dict[str, str]) -> Step:
    if exchange.on == "sql":
        # The rows as the text that was compared.
        return Sql(names.put_back(exchange.sent), _rows(exchange.allowed[0], names))
    line, _, data = names.put_back(exchange.sent).partition("\r\n")
    for value, name in caught.items():
        line = re.sub(rf"(?<= ){value}(?=( noreply)?$)", f"{{{name}}}", line) if line.startswith("cas ") else line
    allowed = tuple(_with_names(names.put_back(text), exchange.got, caught) for text in exchange.allowed)
    return Say((f"{line}\r\n{data}",), allowed, exchange.on)


def _rows(text: str, names: Names) -> tuple[tuple[object, ...], ...]:
    rows = ast.literal_eval(text)
    return tuple(tuple(names.put_back(c) if isinstance(c, str) else c for c in row) for row in rows)


def _with_names(template: str, got: str, caught: dict[str, str]) -> str:
    """Let the holes of an answer remember the numbers that are sent later."""
    numbers = iter(re.findall(r"^VALUE \S+ \d+ \d+ (\d+)\r$", got, re.MULTILINE))
    parts = template.split(CAS)
    made = parts[0]
    for part in parts[1:]:
        name = caught.get(next(numbers, ""))
        made += (f"<cas {name}>" if name else CAS) + part
    return made
