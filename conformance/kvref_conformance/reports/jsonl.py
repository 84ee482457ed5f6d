"""report.jsonl: a header line, one line a verdict, a footer line with the sums, the verdicts by level of
conformance and the profile's known defects.

Bytes are latin-1 characters; where a text is longer than LONGEST its middle is left out and counted.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kvref.specification.deviations import defects
from kvref_conformance.judging.verdict import HOLDS, VERDICTS
from kvref_conformance.reports import levels

if TYPE_CHECKING:
    from pathlib import Path

    from kvref_conformance.judging.conversation import Exchange
    from kvref_conformance.judging.verdict import Tally, Verdict
    from kvref_conformance.reports.header import Header

LONGEST: Final = 4096


def write(path: Path, header: Header, tally: Tally, exercised: dict[str, Any] | None = None) -> None:
    """Write the report of a run to a file.

    Args:
        path: of the file.
        header: its first line.
        tally: the verdicts.
        exercised: what `summary.as_json` says of the run; None or empty: nothing.
    """
    totals = tally.totals()
    footer = {
        "kind": "footer",
        "totals": {word: totals[word] for word in VERDICTS},
        "complaints": tally.complaints,
        "defects": [asdict(row) for row in defects.of(header.profile)],
        "exit_code": tally.exit_code(),
        "conformance_levels": [each.as_json() for each in levels.verdicts(tally, header.profile)],
        **({"exercised": exercised} if exercised else {}),
    }
    lines = [{"kind": "header", **asdict(header)}, *map(_line, tally.verdicts), footer]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _line(verdict: Verdict) -> dict[str, Any]:
    line: dict[str, Any] = {
        "kind": "verdict",
        "case": verdict.case,
        "chapter": verdict.chapter,
        "requirements": list(verdict.requirements),
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "duration": verdict.duration,
    }
    if verdict.conversation or verdict.verdict != HOLDS:
        line["conversation"] = [_shortened(exchange) for exchange in verdict.conversation]
    if verdict.verdict != HOLDS:
        line["text"] = verdict.text
    if verdict.repeated:
        line["repeated"] = verdict.repeated
    return line


def _shortened(exchange: Exchange) -> dict[str, Any]:
    texts = {name: getattr(exchange, name) for name in ("on", "sent", "allowed", "got", "note", "written")}
    cut = {name: _cut(value) if isinstance(value, str) else tuple(map(_cut, value)) for name, value in texts.items()}
    return cut | ({"opening": True} if exchange.opening else {})


def _cut(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... ({len(text) - LONGEST} more) ... {text[-half:]}"
