"""The history for machines: JSON (`history.schema.json`), and a badge for each endpoint and level of conformance."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kvref.specification import conformance_levels
from kvref_conformance.reports.levels import COLORS, NOT_JUDGED, LevelVerdict, write_badges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kvref_conformance.reports.history.changes import Change, Side
    from kvref_conformance.reports.history.run import Run

FORMAT: Final = 1


def as_json(runs: Mapping[str, Sequence[Run]], changes: Mapping[str, Sequence[Change]], folder: Path) -> str:
    """Return the history as JSON.

    Args:
        runs: as `archive.read` returns them.
        changes: since the last run, by endpoint.
        folder: of the history; the paths of reports are relative to it.
    """
    endpoints = [
        {
            "name": name,
            "runs": [_run(run, folder) for run in each],
            "levels": [level.as_json() for level in levels(each)],
            "changes": [_change(change, folder) for change in changes[name]],
        }
        for name, each in runs.items()
    ]
    return json.dumps({"format": FORMAT, "endpoints": endpoints}, indent=1) + "\n"


def levels(runs: Sequence[Run]) -> list[LevelVerdict]:
    """Return for each level of conformance the verdict of the last run that judged it.

    Args:
        runs: of one endpoint, the oldest first.
    """
    found = {}
    for run in runs:
        for name in conformance_levels.NAMES:
            level = run.levels.get(name)
            if (
                level is not None
                and level["verdict"] in COLORS
                and (level["verdict"] != NOT_JUDGED or name not in found)
            ):
                found[name] = LevelVerdict.from_json(level)
    return [found[name] for name in conformance_levels.NAMES if name in found]


def badges(runs: Mapping[str, Sequence[Run]], folder: Path) -> None:
    """Write FOLDER/ENDPOINT/LEVEL.svg and LEVEL.json, the latter in the form that shields.io reads.

    Args:
        runs: as `archive.read` returns them.
        folder: of the badges, which is made.

    Raises:
        OSError: a badge cannot be written.
    """
    folder.mkdir(exist_ok=True)
    for name, each in runs.items():
        write_badges(folder / name, levels(each), name)


def _run(run: Run, folder: Path) -> dict[str, Any]:
    return {
        "started": run.started,
        "version": run.header["version"],
        "suite": run.header["suite"],
        "profile": run.profile,
        "database": run.header["database"],
        "report": run.path.relative_to(folder).as_posix(),
        "exit_code": run.exit_code,
        "complaints": run.complaints,
        "cases": dict(Counter(run.verdicts.values())),
        "shares": {part: {"kept": share.passed, "judged": share.judged} for part, share in run.shares.items()},
    }


def _change(change: Change, folder: Path) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "case": change.case,
        "requirements": list(change.requirements),
        "before": _side(change.before, folder),
        "after": _side(change.after, folder),
    }


def _side(side: Side, folder: Path) -> dict[str, str]:
    return {
        "report": side.run.path.relative_to(folder).as_posix(),
        "verdict": side.verdict,
        "reason": side.reason,
        "sent": side.sent,
        "got": side.got,
    }


def counted(changes: Iterable[Change], kind: str) -> int:
    """Return how many changes are of a kind."""
    return sum(each.kind == kind for each in changes)
