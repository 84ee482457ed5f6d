"""Any arguments on plain memcached: long keys, unusual values, dates, huge numbers, several commands in a packet.

For endpoints without mappings, where an item is as memcached's protocol defines it and no table limits it.
`strategies.py` draws the commands, `kvref_conformance.model` returns the expected replies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kvref_conformance.findings import Search
from kvref_conformance.model import steps as s
from kvref_conformance.model.model import Model
from kvref_conformance.stateful.arguments.strategies import KEYS, LONGEST, conversations, packets
from kvref_conformance.stateful.as_case import as_case
from kvref_conformance.stateful.examples import judge_examples, refused
from kvref_conformance.stateful.player import Player
from kvref_conformance.stateful.run import example_settings, run_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge
    from kvref_conformance.stateful.arguments.strategies import Conversation
    from kvref_conformance.verdict import Verdict


def judge_arguments(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run drawn conversations on the endpoint until nothing new is found.

    Args:
        judge: of the run.
        case: names the requirement.
        chapter: for the verdicts.
        examples: how many conversations for each thing found.
        start: seed; the same seed, endpoint and suite give the same conversations.
    """
    if verdicts := refused(judge, case, chapter, ""):
        return verdicts
    search = Search(judge)
    missing = frozenset(name for name, there in judge.endpoint.features.there.items() if not there)

    def converse(conversation: Conversation) -> None:
        search.patience.check()
        keys = [judge.fresh_key(f"k{number}") for number in range(KEYS)]
        for number in conversation.long:
            keys[number] = keys[number].ljust(LONGEST, "x")
            judge.keys.append(keys[number])
        judge.exercised.begin(judge.world.names if judge.world else {})
        player = Player(judge, search, case.id, Model(judge.endpoint.profile), keys)
        try:
            for packet in packets(conversation):
                player.send(*(_named(step, keys) for step in packet))
        finally:
            player.close()

    def run() -> None:
        run_examples(case.id, conversations(missing), converse, example_settings(examples, judge.database), start)

    def script() -> Case:
        return as_case(case, search.last, judge)

    return judge_examples(search, judge, case, chapter, start, run, script)


def _named(step: s.Request, keys: Sequence[str]) -> s.Request:
    """Return a command with the keys in place of their numbers."""
    match step:
        case s.Get():
            return replace(step, words=tuple(keys[int(word)] for word in step.words))
        case s.Store() | s.Count() | s.Delete() | s.Touch():
            return replace(step, word=keys[int(step.word)])
    return step
