"""report.html: one page that needs nothing else, with the failures first; filter by verdict and text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kvref.specification import requirements
from kvref.specification.deviations import defects
from kvref_conformance.judging.verdict import (
    ABOUT,
    BROKEN,
    CONFORMS,
    COULD_NOT_JUDGE,
    SUITE_ERROR,
    UNSUPPORTED,
    VERDICTS,
    counted,
)
from kvref_conformance.reports import pages
from kvref_conformance.reports.difference import first_difference
from kvref_conformance.reports.groups import grouped
from kvref_conformance.reports.levels import verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_conformance.judging.verdict import Tally, Verdict
    from kvref_conformance.reports.groups import Group
    from kvref_conformance.reports.header import Header

# Lines of a failure's text that are commands to copy, see `triage/follow_up.py`.
COMMANDS: Final = ("again: ", "by hand: ")
FAILURES: Final = BROKEN | {SUITE_ERROR}
OUTCOMES: Final = {CONFORMS: "conforms", COULD_NOT_JUDGE: "could not judge"}


def write(path: Path, header: Header, tally: Tally, exercised: dict[str, Any] | None = None) -> None:
    """Write the page of a run to a file; arguments as of `jsonl.write`."""
    word = OUTCOMES.get(tally.exit_code(), "does not conform")
    totals = tally.totals()
    page = pages.render(
        "report/page.html.j2",
        header=header,
        about=_about(header),
        outcome={"word": word, "sentence": f"{word}: {counted(totals)}"},
        complaints=tally.complaints,
        words=[word for word in VERDICTS if totals[word]],
        broken=FAILURES,
        meaning=ABOUT,
        totals=totals,
        levels=verdicts(tally, header.profile),
        defects=defects.of(header.profile),
        kinds=defects.KINDS,
        exercised=exercised,
        failures=[_failures(group) for group in grouped(tally.verdicts)],
        chapters=[_chapter(name, tally) for name in tally.chapters()],
    )
    path.write_text(page, encoding="utf-8")


def _about(header: Header) -> list[tuple[str, str]]:
    return [
        ("profile", f"{header.profile} ({header.profile_reason})"),
        ("sql", f"{header.sql}: {header.database}" if header.sql else "none"),
        ("counts", f"level {header.level}; {_features(header)}"),
        ("machine", f"{header.examples} examples, seed {header.seed}"),
        ("suite", f"{header.suite}, report format {header.format}"),
        ("started", header.started),
        ("on", header.platform),
    ]


def _features(header: Header) -> str:
    missing = [name for name, there in header.features.items() if not there]
    return f"the endpoint has no {', '.join(missing)}" if missing else "the endpoint has every probed feature"


def _chapter(name: str, tally: Tally) -> dict[str, Any]:
    """Return what the page shows of a chapter, without its failures."""
    verdicts = [each for each in tally.verdicts if each.chapter == name and each.verdict not in FAILURES]
    return {
        "name": name,
        "totals": tally.totals(name),
        "verdicts": [_verdict(each) for each in verdicts if each.verdict != UNSUPPORTED],
        "unsupported": [_verdict(each) for each in verdicts if each.verdict == UNSUPPORTED],
    }


def _failures(group: Group) -> dict[str, Any]:
    return {
        "cause": group.cause,
        "count": len(group.verdicts),
        "requirements": ", ".join(f"{name} ({count})" for name, count in group.requirements()),
        "verdicts": [_verdict(each) for each in group.verdicts],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    named = [requirements.load()[name] for name in verdict.requirements]
    return {
        "case": verdict.case,
        "verdict": verdict.verdict,
        "requirements": verdict.requirements,
        "sentences": " ".join(requirement.statement for requirement in named),
        "sources": [f"{r.id} {r.level} · {'; '.join(r.sources)} · evidence {', '.join(r.evidence)}" for r in named],
        "reason": verdict.reason,
        "duration": verdict.duration,
        "conversation": verdict.conversation,
        "text": verdict.text,
        "repeated": verdict.repeated,
        "marked": _marked(verdict),
        "commands": [line.partition(": ")[2] for line in verdict.text.splitlines() if line.startswith(COMMANDS)],
    }


def _marked(verdict: Verdict) -> tuple[str, str, str] | None:
    """Return the last reply cut at the first byte that is not allowed; None if there is no such reply."""
    if verdict.verdict not in BROKEN or not verdict.conversation or verdict.conversation[-1].passed:
        return None
    last = verdict.conversation[-1]
    place = first_difference(last.got, last.allowed)
    return last.got[:place], last.got[place : place + 1], last.got[place + 1 :]
