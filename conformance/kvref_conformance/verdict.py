"""The words of a judgement, and the record of one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_conformance.conversation import Exchange

HOLDS: Final = "holds"
DEVIATES: Final = "deviates"
FAILS: Final = "fails"
UNSUPPORTED: Final = "unsupported"
NOT_JUDGED: Final = "not judged"
SUITE_ERROR: Final = "suite error"
VERDICTS: Final = (HOLDS, DEVIATES, FAILS, UNSUPPORTED, NOT_JUDGED, SUITE_ERROR)
ABOUT: Final = {
    HOLDS: "every answer was allowed",
    DEVIATES: "breaks the requirement as documented, with evidence",
    FAILS: "breaks the requirement",
    UNSUPPORTED: "the requirement does not apply to this profile",
    NOT_JUDGED: "this run could not try it; the reason says what it takes",
    SUITE_ERROR: "the suite itself failed",
}

CONFORMS: Final = 0
DOES_NOT_CONFORM: Final = 1
COULD_NOT_JUDGE: Final = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case judged.

    Args:
        case: case id.
        chapter: chapter it belongs to.
        requirements: ids it tests.
        verdict: one of VERDICTS.
        reason: why, in one line; empty for `holds`.
        duration: seconds.
        conversation: what was said.
        text: the whole failure text; empty unless it fails.
    """

    case: str
    chapter: str
    requirements: tuple[str, ...]
    verdict: str
    reason: str = ""
    duration: float = 0.0
    conversation: tuple[Exchange, ...] = ()
    text: str = ""


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
        """Return 0 conforms, 1 does not, 2 could not judge (suite error, or nothing that holds, deviates or fails)."""
        totals = self.totals()
        if totals[SUITE_ERROR]:
            return COULD_NOT_JUDGE
        if totals[FAILS] or self.complaints:
            return DOES_NOT_CONFORM
        return CONFORMS if totals[HOLDS] + totals[DEVIATES] else COULD_NOT_JUDGE


def counted(totals: Counter[str], words: Iterable[str] = VERDICTS) -> str:
    """Return `21 holds, 2 deviates`, without the words that do not occur."""
    return ", ".join(f"{totals[word]} {word}" for word in words if totals[word]) or "nothing judged"
