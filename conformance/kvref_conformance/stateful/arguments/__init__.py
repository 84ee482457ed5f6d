"""Plain memcached with any arguments: long keys, unusual values, dates, huge numbers, several commands in a packet.

For endpoints without mappings, where an item is as memcached's protocol defines it and no table limits it.
`commands.py` draws the commands, the model in `store.py` returns the expected replies, and `player.py` compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, seed
from hypothesis.errors import Flaky

from kvref_conformance.conversation import render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import Enough, Finding, collect
from kvref_conformance.stateful.arguments.commands import talks
from kvref_conformance.stateful.arguments.player import Holder
from kvref_conformance.stateful.commands.as_case import as_case
from kvref_conformance.stateful.run import example_settings, no_folder_left_behind
from kvref_conformance.verdict import Verdict

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge
    from kvref_conformance.stateful.arguments.commands import Talk


def judge_wild(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Hold drawn conversations with the endpoint until nothing new is found.

    Args:
        judge: of the run.
        case: names the requirement.
        chapter: for the verdicts.
        examples: how many conversations for each thing found.
        start: seed; the same seed, endpoint and suite give the same conversations.
    """
    refused = judge.refuse(case)
    if refused is not None:
        return [Verdict(case.id, chapter, case.requirements, *refused)]
    holder = Holder(judge)

    def look() -> Finding | None:
        holder.search.patience.begin()
        if not _fails(holder, examples, start):
            return None
        holder.shorten()
        last = holder.search.last
        return holder.search.finding(f"seed {start}\n{render(last)}", as_case(case, last, judge))

    return collect(judge, case, chapter, look)


def _fails(holder: Holder, examples: int, start: int) -> bool:
    """Return whether something new is not allowed; the holder has it."""

    @seed(start)
    @example_settings(examples)
    @given(talks(name for name, there in holder.features.items() if not there))
    def run(talk: Talk) -> None:
        holder.hold(talk)

    try:
        with no_folder_left_behind():
            run()
    except (CaseFailed, Enough, Flaky):
        return True
    return False
