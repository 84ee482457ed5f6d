"""What changed since a case was tried last: regressions, what was fixed, and what is no longer judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref_conformance.judging.verdict import CRASH, DEVIATES, FAILS, FLAKY, HANG, HOLDS, NON_STRICT, QUIRK, TRIED
from kvref_conformance.reports import column
from kvref_conformance.reports.grid import parting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from kvref_conformance.reports.column import Column, Outcome
    from kvref_conformance.reports.history.run import Run

REGRESSION: Final = "regression"
LOST: Final = "no longer judged"
FIXED: Final = "fixed"
KINDS: Final = (REGRESSION, LOST, FIXED)
# Rank of a verdict; both verdicts of a requirement that is kept have the same rank.
_BADNESS: Final = {HOLDS: 0, QUIRK: 0, NON_STRICT: 1, DEVIATES: 2, FLAKY: 3, FAILS: 4, HANG: 5, CRASH: 6}


@dataclass(frozen=True, slots=True)
class Side:
    """A case in one run.

    Args:
        run: the run.
        verdict: of the case.
        reason: of the verdict; may be empty.
        sent: what was sent in the exchange at which both conversations part; empty where none is in the report.
        got: what was received in it.
    """

    run: Run
    verdict: str
    reason: str
    sent: str
    got: str


@dataclass(frozen=True, slots=True)
class Change:
    """A case with another result than before.

    Args:
        kind: one of KINDS.
        endpoint: its name.
        case: its id.
        requirements: that it tests.
        before: in the last of the earlier runs with the same profile that tried it.
        after: in the last run.
    """

    kind: str
    endpoint: str
    case: str
    requirements: tuple[str, ...]
    before: Side
    after: Side


def changes(runs: Sequence[Run]) -> list[Change]:
    """Compare the last run of an endpoint with those before it, case by case.

    A case is compared with the last earlier run that tried it, as far as that judged by the same profile: a run of some
    chapters hides no regression in the others. Cases that the last run was not to run are left out.

    Args:
        runs: of one endpoint, the oldest first.

    Returns:
        The changes, sorted by KINDS, and within one kind by case.

    Raises:
        SuiteError: a report is gone meanwhile.
    """
    last = runs[-1]
    before: dict[str, Run] = {}
    for run in runs[:-1]:
        if run.profile == last.profile:
            before.update((case, run) for case, word in run.verdicts.items() if word in TRIED)
    found = {
        case: (kind, run)
        for case, run in before.items()
        if case in last.verdicts and (kind := _kind(run.verdicts[case], last.verdicts[case]))
    }
    made = list(_with_conversations(last, found)) if found else []
    return sorted(made, key=lambda each: (KINDS.index(each.kind), each.case))


def _kind(before: str, after: str) -> str:
    if after not in TRIED:
        return LOST
    worse = _BADNESS[after] - _BADNESS[before]
    return REGRESSION if worse > 0 else FIXED if worse < 0 else ""


def _with_conversations(last: Run, found: Mapping[str, tuple[str, Run]]) -> Iterator[Change]:
    reports: dict[Path, Column] = {}

    def outcome(run: Run, case: str) -> Outcome:
        if run.path not in reports:
            reports[run.path] = column.read(run.path)
        return reports[run.path].outcomes[case]

    for case, (kind, run) in found.items():
        one, other = outcome(run, case), outcome(last, case)
        place = parting(one, other)
        sides = (_side(each, of, place) for each, of in ((one, run), (other, last)))
        yield Change(kind, last.endpoint, case, other.requirements, *sides)


def _side(outcome: Outcome, run: Run, place: int | None) -> Side:
    # Without a second conversation to compare with, the last exchange is the one that decided.
    at = len(outcome.steps) - 1 if place is None else outcome.place(place)
    shown = outcome.steps[at] if 0 <= at < len(outcome.steps) else None
    sent, got = (shown.sent, shown.got) if shown else ("", "")
    return Side(run, outcome.verdict, outcome.reason, sent, got)
