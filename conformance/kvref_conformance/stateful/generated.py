"""The chapters whose cases have no steps: what judges them, and where they need the tables of the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.errors import NotRun
from kvref_conformance.judging.verdict import NOT_RUN, Verdict
from kvref_conformance.stateful.case_names import SIMULTANEOUS
from kvref_conformance.stateful.commands import judge_commands
from kvref_conformance.stateful.concurrency import judge_concurrency
from kvref_conformance.stateful.schemas import judge_schemas

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.judging.judge import Judge

JUDGES: Final = {
    "arguments": judge_commands,
    "commands": judge_commands,
    "concurrency": judge_concurrency,
    "schemas": judge_schemas,
}
_MAPPINGS: Final = "generated commands use three mappings of the suite"
_TABLES: Final = "the suite creates its own tables and reads them"


def judge_generated(judge: Judge, case: Case, chapter: str, examples: int, start: int) -> list[Verdict]:
    """Judge a case by drawn conversations; return a verdict on each thing found, or the one on the case.

    Args:
        judge: of the run; gives endpoint, tables and keys.
        case: its id says what is drawn.
        chapter: one of JUDGES.
        examples: how many conversations are drawn, for each thing found.
        start: seed; the same seed, endpoint and suite give the same conversations.
    """
    of_commands = JUDGES[chapter] is judge_commands
    alone = (of_commands or case.id == SIMULTANEOUS) and not judge.endpoint.profile.flag("mapping.supported")
    reason = judge.refuse(case)
    if reason is None and judge.world is None and not alone:
        reason = NOT_RUN, f"needs --sql DSN: {_MAPPINGS if of_commands else _TABLES}"
    if reason is None:
        try:
            judge.prepare(case)
        except NotRun as refusal:
            reason = NOT_RUN, str(refusal)
    if reason is not None:
        return [Verdict(case.id, chapter, case.requirements, *reason)]
    return JUDGES[chapter](judge, case, chapter, examples, start)
