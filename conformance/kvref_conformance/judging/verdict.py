"""The words of a judgement, and the record of one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kvref_conformance.judging.budget import TIME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvref.specification.requirements import Requirement
    from kvref_conformance.case import Case
    from kvref_conformance.judging.conversation import Exchange

HOLDS: Final = "holds"
QUIRK: Final = "quirk"
NON_STRICT: Final = "non-strict"
DEVIATES: Final = "deviates"
FLAKY: Final = "flaky"
FAILS: Final = "fails"
HANG: Final = "hang"
CRASH: Final = "crash"
UNSUPPORTED: Final = "unsupported"
DISABLED: Final = "disabled"
NOT_RUN: Final = "not-run"
SUITE_ERROR: Final = "suite-error"
ABOUT: Final = {
    HOLDS: "every answer was allowed",
    QUIRK: "every answer was that of the plugin, against its manual or the protocol",
    NON_STRICT: "a requirement is not met, but its level is below the --level of the run",
    DEVIATES: "breaks the requirement as documented",
    FLAKY: "breaks the requirement at times: the same bytes were answered otherwise when sent again",
    FAILS: "breaks the requirement",
    HANG: "breaks the requirement: no complete answer came",
    CRASH: "breaks the requirement: the endpoint was gone afterwards, or had started again",
    UNSUPPORTED: "the requirement does not apply to this profile, or the probe found no such feature",
    DISABLED: "the file of --profile declares that the endpoint lacks the feature",
    NOT_RUN: "this run could not try it; the reason says what it takes",
    SUITE_ERROR: "the suite itself failed",
}
VERDICTS: Final = tuple(ABOUT)
PASSING: Final = frozenset({HOLDS, QUIRK})
# Verdicts with which an endpoint does not conform.
BROKEN: Final = frozenset({FLAKY, FAILS, HANG, CRASH})
# What counts as failed where passed and failed are counted.
FAILED: Final = BROKEN | {SUITE_ERROR}
# Verdicts for which requests were sent.
TRIED: Final = PASSING | BROKEN | {NON_STRICT, DEVIATES}

# Verdicts that say that a case does not apply to the endpoint.
NOT_APPLICABLE: Final = frozenset({UNSUPPORTED, DISABLED})

# What a run may demand, and the levels of requirements that it then counts.
DEMANDS: Final = {"must": ("MUST",), "should": ("MUST", "SHOULD", "MAY"), "quirk": ("MUST", "SHOULD", "MAY", "QUIRK")}

# The verdict that counts most first, where several are about one subject.
WORST: Final = (
    *(CRASH, HANG, FAILS, FLAKY, SUITE_ERROR, DEVIATES, NON_STRICT, NOT_RUN),
    *(QUIRK, HOLDS, DISABLED, UNSUPPORTED),
)

CONFORMS: Final = 0
DOES_NOT_CONFORM: Final = 1
COULD_NOT_JUDGE: Final = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case judged.

    Args:
        case: case id; `id~2` for the second thing that a generated case found.
        chapter: chapter it belongs to.
        requirements: ids it tests.
        verdict: one of VERDICTS.
        reason: why, in one line; empty for `holds`.
        duration: seconds.
        conversation: the exchanges.
        text: the whole failure text; empty unless it is broken.
        repeated: the result of the repetitions; empty if there were none.
        script: the conversation as a case of its own, where a generated one broke; None: it is the case.
    """

    case: str
    chapter: str
    requirements: tuple[str, ...]
    verdict: str
    reason: str = ""
    duration: float = 0.0
    conversation: tuple[Exchange, ...] = ()
    text: str = ""
    repeated: str = ""
    script: Case | None = None


@dataclass
class Tally:
    """The verdicts of a run."""

    verdicts: list[Verdict] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def totals(self, chapter: str | None = None) -> Counter[str]:
        """Count verdicts, of one chapter or of all."""
        return Counter(v.verdict for v in self.verdicts if chapter in {None, v.chapter})

    def chapters(self) -> list[str]:
        """Return the chapters in the order they were judged."""
        return list(dict.fromkeys(v.chapter for v in self.verdicts))

    def exit_code(self) -> int:
        """Return 0 conforms, 1 does not, 2 could not judge (a suite error, the time limit, or nothing was tried)."""
        totals = self.totals()
        if totals[SUITE_ERROR]:
            return COULD_NOT_JUDGE
        if self.complaints or any(totals[word] for word in BROKEN):
            return DOES_NOT_CONFORM
        if any(v.verdict == NOT_RUN and v.reason.startswith(TIME_LIMIT) for v in self.verdicts):
            return COULD_NOT_JUDGE
        return CONFORMS if any(totals[word] for word in TRIED) else COULD_NOT_JUDGE


def base(case: str) -> str:
    """Return the case behind `case~2`, the second thing that a generated case found."""
    return case.partition("~")[0]


def counted(totals: Counter[str], words: Iterable[str] = VERDICTS) -> str:
    """Return `21 holds, 2 deviates`, without the words that do not occur."""
    return ", ".join(f"{totals[word]} {word}" for word in words if totals[word]) or "nothing judged"


def outcome_counts(totals: Counter[str]) -> str:
    """Return `7 passed, 0 failed, 3 not applicable`, and behind it the other verdicts that occur.

    Args:
        totals: cases by verdict.
    """
    counts = {
        "passed": sum(totals[word] for word in PASSING),
        "failed": sum(totals[word] for word in FAILED),
        "not applicable": sum(totals[word] for word in NOT_APPLICABLE),
    }
    rest = [word for word in VERDICTS if word not in PASSING | FAILED | NOT_APPLICABLE and totals[word]]
    return ", ".join(
        [*(f"{count} {name}" for name, count in counts.items()), *(f"{totals[word]} {word}" for word in rest)]
    )


def at_level(word: str, tested: Sequence[Requirement], demand: str) -> str:
    """Return a verdict in the light of the levels of what the case tests.

    Args:
        word: HOLDS, or one of BROKEN. A crash or a hang counts at every level.
        tested: the requirements; the strictest of them decides.
        demand: one of DEMANDS.
    """
    levels = {requirement.level for requirement in tested}
    if word == HOLDS and levels == {"QUIRK"}:
        return QUIRK
    if word in {FAILS, FLAKY} and not levels & set(DEMANDS[demand]):
        return NON_STRICT
    return word
