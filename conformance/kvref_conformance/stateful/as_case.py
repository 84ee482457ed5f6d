"""A generated conversation as a case, so that it can run again: keys, mappings and tables get names."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from kvref_conformance.steps import By, Send, Sql
from kvref_conformance.template import NAME, Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.conversation import Exchange
    from kvref_conformance.judge import Judge
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
    steps = [_with_names(each.step, names) for each in exchanges if each.step is not None and not each.opening]
    opened = [exchange.sent for exchange in exchanges if exchange.opening]
    bound = NAME.search(names.put_back(opened[0])) if opened else None
    bind = bound[2] if bound is not None else ""
    return replace(case, steps=tuple(steps), bind=bind)


def _with_names(step: Step, names: Names) -> Step:
    """Return a step with the names of keys, mappings and tables; cas numbers have theirs."""
    if isinstance(step, Send):
        assert not isinstance(step.allow, By), "the model knows the facts"
        packets, allow = (tuple(map(names.put_back, texts)) for texts in (step.packets, step.allow))
        return replace(step, packets=packets, allow=allow)
    if not isinstance(step, Sql):
        return step
    cells = ((names.put_back(cell) if isinstance(cell, str) else cell for cell in row) for row in step.rows or ())
    rows = None if step.rows is None else tuple(map(tuple, cells))
    return replace(step, statement=names.put_back(step.statement), rows=rows)
