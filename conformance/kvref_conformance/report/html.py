"""report.html: one page that needs nothing else; filter by verdict and text, open a case to see its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kvref.specification import requirements
from kvref.specification.deviations import defects
from kvref_conformance import pages
from kvref_conformance.verdict import ABOUT, BROKEN, CONFORMS, COULD_NOT_JUDGE, SUITE_ERROR, VERDICTS, counted

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_conformance.report.header import Header
    from kvref_conformance.verdict import Tally, Verdict

OUTCOMES: Final = {CONFORMS: "conforms", COULD_NOT_JUDGE: "could not judge"}


def write(path: Path, header: Header, tally: Tally, exercised: dict[str, Any] | None = None) -> None:
    """Write the page of a run to a file; arguments as of `jsonl.write`."""
    word = OUTCOMES.get(tally.exit_code(), "does not conform")
    totals = tally.totals()
    page = (
        pages.environment("report")
        .get_template("page.html.j2")
        .render(
            header=header,
            about=_about(header),
            outcome={"word": word, "sentence": f"{word}: {counted(totals)}"},
            complaints=tally.complaints,
            words=[word for word in VERDICTS if totals[word]],
            broken=BROKEN | {SUITE_ERROR},
            meaning=ABOUT,
            totals=totals,
            defects=defects.of(header.profile),
            kinds=defects.KINDS,
            exercised=exercised,
            chapters=[_chapter(name, tally) for name in tally.chapters()],
            **pages.inside("report"),
        )
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
    verdicts = [_verdict(verdict) for verdict in tally.verdicts if verdict.chapter == name]
    return {"name": name, "totals": tally.totals(name), "verdicts": verdicts}


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
    }
