"""A generated conversation as a case, so that it can run again: keys, mappings and tables get names."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from kvref_conformance.steps import AwaitReply, By, Eventually, Send, Sql, StartRequest, StartSql
from kvref_conformance.wire.template import NAME, Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.judging.judge import Judge
    from kvref_conformance.steps import Step

# What is shown for a reload of the configuration.
RELOADED: Final = "(configuration read again)"


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
    bind = _bound(exchanges, names)
    steps = [
        _with_names(each.step, names) for each in exchanges if each.step is not None and not (bind and each.opening)
    ]
    return replace(case, steps=tuple(steps), bind=bind)


def _bound(exchanges: Sequence[Exchange], names: Names) -> str:
    """Return the name of the mapping that each connection binds first; "" if not all bind the same one."""
    opened = {each.on: names.put_back(each.sent) for each in exchanges if each.opening}
    on = {each.on for each in exchanges if isinstance(each.step, Send | StartRequest)}
    bound = {found[2] for found in map(NAME.search, opened.values()) if found is not None}
    return bound.pop() if len(bound) == 1 and opened.keys() == on else ""


def _with_names(step: Step, names: Names) -> Step:
    """Return a step with the names of keys, mappings and tables; cas numbers have theirs."""
    if isinstance(step, Send | AwaitReply):
        assert not isinstance(step.allow, By), "the model knows the facts"
        step = replace(step, allow=tuple(map(names.put_back, step.allow)))
    if isinstance(step, Send | StartRequest):
        return replace(step, packets=tuple(map(names.put_back, step.packets)))
    if isinstance(step, StartSql):
        return replace(step, statement=names.put_back(step.statement))
    if isinstance(step, Eventually):
        inner = _with_names(step.step, names)
        assert isinstance(inner, Send | Sql), "it stays what it is"
        return replace(step, step=inner)
    if not isinstance(step, Sql):
        return step
    cells = ((names.put_back(cell) if isinstance(cell, str) else cell for cell in row) for row in step.rows or ())
    rows = None if step.rows is None else tuple(map(tuple, cells))
    return replace(step, statement=names.put_back(step.statement), rows=rows)
