"""Any order of commands: a hypothesis state machine (`rules.py`), judged by `kvref_conformance.model`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis.errors import Flaky

from kvref_conformance.conversation import render
from kvref_conformance.errors import CaseFailed
from kvref_conformance.findings import Enough, Finding, Search, collect
from kvref_conformance.stateful.commands.as_case import as_case
from kvref_conformance.stateful.commands.rules import CommandMachine
from kvref_conformance.stateful.run import example_settings, run_machine
from kvref_conformance.verdict import NOT_RUN, Verdict

if TYPE_CHECKING:
    from hypothesis import settings

    from kvref_conformance.case import Case
    from kvref_conformance.judge import Judge

STEPS: Final = 30


def judge_commands(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Run drawn conversations on the endpoint until nothing new is found, or MOST things are.

    Args:
        judge: of the run; gives endpoint, tables and keys.
        case: names the requirement.
        chapter: for the verdict.
        examples: how many conversations, of at most STEPS commands each, for each thing found.
        start: seed; the same seed, endpoint and suite give the same conversations.
    """
    refused = judge.refuse(case)
    if refused is None and judge.world is None and judge.endpoint.profile.flag("mapping.supported"):
        refused = NOT_RUN, "needs --sql DSN: generated commands use three mappings of the suite"
    if refused is not None:
        return [Verdict(case.id, chapter, case.requirements, *refused)]
    if judge.world is not None:
        judge.world.configure(None)
    search = Search(judge)
    own = {"judge": judge, "search": search}
    machine: type[CommandMachine] = type(case.id, (CommandMachine,), own)

    def look() -> Finding | None:
        search.patience.begin()
        failure = _run(machine, example_settings(examples, judge.database, stateful_step_count=STEPS), start)
        if not failure:
            return None
        return search.finding(failure, as_case(case, search.last, judge))

    return collect(judge, case, chapter, look)


def _run(machine: type[CommandMachine], examples: settings, start: int) -> str:
    """Return the failure text of a run, empty if it succeeded."""
    try:
        run_machine(machine, examples, start)
    except CaseFailed as failure:
        return f"seed {start}\n{failure}"
    except Enough:
        return f"seed {start}; perhaps not the shortest\n{render(machine.search.last)}"
    except Flaky:
        text = f"seed {start}; the same bytes, sent again, were answered otherwise"
        return f"{text}\n{render(machine.search.last)}"
    return ""
