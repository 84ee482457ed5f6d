"""A conversation of the machine as a case, so that it can run again: keys, mappings and cas numbers get names."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from kvref_conformance.steps import Reload, Send, Sql
from kvref_conformance.template import CAS, NAME, Names, with_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.conversation import Exchange
    from kvref_conformance.judge import Judge
    from kvref_conformance.steps import Step

# The cas number that a request sends: a `cas`, a frame, an `ms`.
SENT_NUMBER: Final = re.compile(r"^cas .* (\d+)(?: noreply)?$|^set.* cas=(\d+)|^ms .* C(\d+)")
# What is shown for a reload of the configuration.
RELOADED: Final = "(configuration read again)"
# In the place of a name: the number must be none that was shown before.
NEW = "new"


def as_case(case: Case, exchanges: Sequence[Exchange], judge: Judge, own: dict[str, str] | None = None) -> Case:
    """Return a case with the steps of a conversation.

    Args:
        case: whose id, requirements and settings it gets.
        exchanges: what was said.
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
    bound = NAME.search(names.put_back(opened[0])) if opened else None
    bind = bound[2] if bound is not None else ""
    return replace(case, steps=tuple(steps), bind=bind)


def _numbers(exchanges: Sequence[Exchange]) -> dict[str, str]:
    """Return the cas numbers that were sent after they had been answered, with a name each."""
    caught: dict[str, str] = {}
    answered: set[str] = set()
    for exchange in exchanges:
        sent = SENT_NUMBER.search(exchange.sent.partition("\r\n")[0])
        number = sent[sent.lastindex or 0] if sent is not None else ""
        if number in answered and number not in caught:
            caught[number] = f"n{len(caught) % 10}"
        answered.update(_shown(exchange))
    return caught


def _shown(exchange: Exchange) -> tuple[str, ...]:
    """Return the cas numbers of a reply that is as allowed, but for them."""
    fits = (re.fullmatch(with_numbers(text), exchange.got) for text in exchange.allowed)
    return next((found.groups() for found in fits if found is not None), ())


def _shown_again(exchanges: Sequence[Exchange]) -> set[str]:
    """Return the cas numbers for which the last answer is not allowed: it looks as it should, but they are old."""
    last = exchanges[-1]
    if last.kept or last.note:
        return set()
    return {value for exchange in exchanges[:-1] for value in _shown(exchange)} & set(_shown(last))


def _step(exchange: Exchange, names: Names, caught: dict[str, str]) -> Step:
    if exchange.sent == RELOADED:
        return Reload()
    if exchange.on == "sql":
        # The rows as the text that was compared.
        return Sql(names.put_back(exchange.sent), _rows(exchange.allowed[0], names) if exchange.allowed else None)
    line, end, data = names.put_back(exchange.sent).partition("\r\n")
    sent = SENT_NUMBER.search(line)
    if sent is not None and (name := caught.get(sent[sent.lastindex or 0])) is not None:
        begin, behind = sent.span(sent.lastindex or 0)
        line = f"{line[:begin]}{{{name}}}{line[behind:]}"
    allowed = tuple(_with_names(names.put_back(text), _shown(exchange), caught) for text in exchange.allowed)
    return Send((f"{line}{end}{data}",), allowed, exchange.on, binary=exchange.binary)


def _rows(text: str, names: Names) -> tuple[tuple[object, ...], ...]:
    rows = ast.literal_eval(text)
    return tuple(tuple(names.put_back(c) if isinstance(c, str) else c for c in row) for row in rows)


def _with_names(template: str, shown: Sequence[str], caught: dict[str, str]) -> str:
    """Let the holes of an answer remember the numbers that are sent later."""
    numbers = iter(shown)
    parts = template.split(CAS)
    made = parts[0]
    for part in parts[1:]:
        name = caught.get(next(numbers, ""))
        hole = "<new cas z>" if name == NEW else f"<cas {name}>" if name else CAS
        made += hole + part
    return made
