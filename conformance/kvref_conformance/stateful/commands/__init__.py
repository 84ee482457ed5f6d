"""Any order of commands: a hypothesis state machine (`rules.py`), judged by `kvref_conformance.model`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.findings import Search
from kvref_conformance.stateful.as_case import as_case
from kvref_conformance.stateful.commands.rules import CommandMachine
from kvref_conformance.stateful.examples import judge_examples, refused
from kvref_conformance.stateful.run import example_settings, run_machine

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge
    from kvref_conformance.verdict import Verdict

STEPS: Final = 30
NEEDS: Final = "generated commands use three mappings of the suite"


def judge_commands(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run drawn conversations on the endpoint until nothing new is found, or MOST things are.

    Args:
        judge: of the run; gives endpoint, tables and keys.
        case: names the requirement.
        chapter: for the verdict.
        examples: how many conversations, of at most STEPS commands each, for each thing found.
        start: seed; the same seed, endpoint and suite give the same conversations.
    """
    needs = NEEDS if judge.endpoint.profile.flag("mapping.supported") else ""
    if verdicts := refused(judge, case, chapter, needs):
        return verdicts
    if judge.world is not None:
        judge.world.configure(None)
    search = Search(judge)
    machine: type[CommandMachine] = type(case.id, (CommandMachine,), {"judge": judge, "search": search})
    settings = example_settings(examples, judge.database, stateful_step_count=STEPS)

    def script() -> Case:
        return as_case(case, search.last, judge)

    return judge_examples(search, judge, case, chapter, start, lambda: run_machine(machine, settings, start), script)
