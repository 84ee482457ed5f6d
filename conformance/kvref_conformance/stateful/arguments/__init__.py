"""Any arguments on plain memcached: long keys, unusual values, dates, huge numbers, several commands in a packet.

For endpoints without mappings, where an item is as memcached's protocol defines it and no table limits it.
`strategies.py` draws the commands, `kvref_conformance.model` returns the expected replies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis.errors import Flaky

from kvref_conformance.conversation import render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import Enough, Finding, Search, collect
from kvref_conformance.model import steps as s
from kvref_conformance.model.model import Model
from kvref_conformance.stateful.arguments.strategies import KEYS, LONGEST, conversations, packets
from kvref_conformance.stateful.commands.as_case import as_case
from kvref_conformance.stateful.player import Player
from kvref_conformance.stateful.run import example_settings, run_examples
from kvref_conformance.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge
    from kvref_conformance.stateful.arguments.strategies import Conversation


def judge_arguments(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run drawn conversations on the endpoint until nothing new is found.

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
    search = Search(judge)
    missing = frozenset(name for name, there in judge.endpoint.features.there.items() if not there)

    def run(conversation: Conversation) -> None:
        search.patience.check()
        keys = [judge.fresh_key(f"k{number}") for number in range(KEYS)]
        for number in conversation.long:
            keys[number] = keys[number].ljust(LONGEST, "x")
            judge.keys.append(keys[number])
        player = Player(judge, search, case.id, Model(judge.endpoint.profile), keys)
        try:
            for packet in packets(conversation):
                player.say(*(_named(step, keys) for step in packet))
        finally:
            player.close()

    def look() -> Finding | None:
        search.patience.begin()
        try:
            run_examples(case.id, conversations(missing), run, example_settings(examples, judge.database), start)
        except (CaseFailed, Enough, Flaky):
            return search.finding(f"seed {start}\n{render(search.last)}", as_case(case, search.last, judge))
        return None

    return collect(judge, case, chapter, look)


def _named(step: s.Request, keys: Sequence[str]) -> s.Request:
    """Return a command with the keys in place of their numbers."""
    match step:
        case s.Get():
            return replace(step, words=tuple(keys[int(word)] for word in step.words))
        case s.Store() | s.Count() | s.Delete() | s.Touch():
            return replace(step, word=keys[int(step.word)])
    return step
