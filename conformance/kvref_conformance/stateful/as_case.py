"""A conversation of the machine as a case, so that it can run again: keys, mappings and cas numbers get names."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from kvref_conformance.steps import Reload, Send, Sql
from kvref_conformance.template import CAS, Names, with_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.conversation import Exchange
    from kvref_conformance.judge import Judge
    from kvref_conformance.steps import Step

CAS_WORD = re.compile(r"(?<= )(\d+)(?=(?: noreply)?\r\n)")
SHOWN = re.compile(r"^VALUE \S+ \d+ \d+ (\d+)\r$", re.MULTILINE)
# What is shown for a reload of the configuration.
RELOADED: Final = "(configuration read again)"
# In the place of a name: the number must be none that was shown before.
NEW = "new"


def as_case(case: Case, exchanges: Sequence[Exchange], judge: Judge, own: dict[str, str] | None = None) -> Case:
    """Return a case with the steps of a conversation.

    Args:
        case: whose id, requirements and settings it gets.
        exchanges: what was said; those of a connection are text.
        judge: of the run; knows its keys and mappings.
        own: further names.
    """
    names = Names(judge.names().texts | (own or {}), judge.fresh_key)
    number = count()
    for key in judge.keys:
        if any(key in exchange.sent for exchange in exchanges):
            names.texts[f"k{next(number)}"] = key
    caught, again = _numbers(exchanges), _shown_again(exchanges)
    caught |= {value: f"o{place % 10}" for place, value in enumerate(sorted(again - caught.keys()))}
    steps = [_step(exchange, names, caught) for exchange in exchanges[:-1] if not exchange.opening]
    # The number of an item that has changed should be a new one.
    steps.append(_step(exchanges[-1], names, caught | dict.fromkeys(again, NEW)))
    opened = [exchange.sent for exchange in exchanges if exchange.opening]
    bind = names.put_back(opened[0]).removeprefix("bind {").partition("}")[0] if opened else ""
    return replace(case, steps=tuple(steps), bind=bind)


def _numbers(exchanges: Sequence[Exchange]) -> dict[str, str]:
    """Return the cas numbers that were sent after they had been answered, with a name each."""
    caught: dict[str, str] = {}
    answered: set[str] = set()
    for exchange in exchanges:
        if exchange.sent.startswith("cas "):
            found = CAS_WORD.search(exchange.sent)
            if found and found[1] in answered and found[1] not in caught:
                caught[found[1]] = f"n{len(caught) % 10}"
        answered.update(SHOWN.findall(exchange.got))
    return caught


def _shown_again(exchanges: Sequence[Exchange]) -> set[str]:
    """Return the cas numbers for which the last answer is not allowed: it looks as it should, but they are old."""
    last = exchanges[-1]
    if last.kept or last.note or not any(re.fullmatch(with_numbers(text), last.got) for text in last.allowed):
        return set()
    return {value for exchange in exchanges[:-1] for value in SHOWN.findall(exchange.got)} & set(
        SHOWN.findall(last.got)
    )


def _step(exchange: Exchange, names: Names, caught: dict[str, str]) -> Step:
    if exchange.sent == RELOADED:
        return Reload()
    if exchange.on == "sql":
        # The rows as the text that was compared.
        return Sql(names.put_back(exchange.sent), _rows(exchange.allowed[0], names) if exchange.allowed else None)
    line, _, data = names.put_back(exchange.sent).partition("\r\n")
    for value, name in caught.items():
        line = re.sub(rf"(?<= ){value}(?=( noreply)?$)", f"{{{name}}}", line) if line.startswith("cas ") else line
    allowed = tuple(_with_names(names.put_back(text), exchange.got, caught) for text in exchange.allowed)
    return Send((f"{line}\r\n{data}",), allowed, exchange.on)


def _rows(text: str, names: Names) -> tuple[tuple[object, ...], ...]:
    rows = ast.literal_eval(text)
    return tuple(tuple(names.put_back(c) if isinstance(c, str) else c for c in row) for row in rows)


def _with_names(template: str, got: str, caught: dict[str, str]) -> str:
    """Let the holes of an answer remember the numbers that are sent later."""
    numbers = iter(SHOWN.findall(got))
    parts = template.split(CAS)
    made = parts[0]
    for part in parts[1:]:
        name = caught.get(next(numbers, ""))
        hole = "<new cas z>" if name == NEW else f"<cas {name}>" if name else CAS
        made += hole + part
    return made
