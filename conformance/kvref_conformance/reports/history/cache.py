"""What was read of the reports of a history before, so that a run reads only new ones.

DIR/cache.json can be removed at any time. It counts only for the release that wrote it, since shares depend on the
requirements of the release, and each of its entries only for a file with the same size and time of change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypedDict

from kvref import documents
from kvref.documents import DocumentError
from kvref.specification import requirements
from kvref_conformance import __version__
from kvref_conformance.data.typed import mismatch
from kvref_conformance.reports.grid import Share
from kvref_conformance.reports.history.run import Run

NAME: Final = "cache.json"


class _Share(TypedDict):
    passed: int
    judged: int


class _Entry(TypedDict):
    """One report as it is cached."""

    size: int
    changed: int
    digest: str
    header: Mapping[str, object]
    exit_code: int
    complaints: int
    levels: Mapping[str, Mapping[str, object]]
    verdicts: Mapping[str, str]
    shares: Mapping[str, _Share]


class Cache:
    """The entries of a folder; those of reports that are gone are left out when it is written.

    Args:
        folder: of the history.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = _read(folder / NAME)
        self._now: dict[str, Any] = {}

    def find(self, path: Path) -> tuple[Run, str] | None:
        """Return the run of a report and the digest of its content; None if the file has changed or is new."""
        name = self._name(path)
        entry: Any = self._before.get(name)
        if mismatch(entry, _Entry) or (entry["size"], entry["changed"]) != _state(path):
            return None
        self._now[name] = entry
        shares = {part: Share(**share) for part, share in entry["shares"].items()}
        facts = {key: entry[key] for key in ("header", "exit_code", "complaints", "levels", "verdicts")}
        return Run(endpoint=path.parent.name, path=path, shares=shares, **facts), entry["digest"]

    def add(self, run: Run, digest: str) -> None:
        """Remember a run that was read."""
        size, changed = _state(run.path)
        self._now[self._name(run.path)] = {
            "size": size,
            "changed": changed,
            "digest": digest,
            "header": dict(run.header),
            "exit_code": run.exit_code,
            "complaints": run.complaints,
            "levels": dict(run.levels),
            "verdicts": dict(run.verdicts),
            "shares": {part: asdict(share) for part, share in run.shares.items()},
        }

    def text(self) -> str:
        """Return the content of the file."""
        return json.dumps({"release": _release(), "reports": self._now}) + "\n"

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = documents.read_json(file)
    except (OSError, DocumentError):
        return {}  # none yet, or damaged: the reports are read again
    if not isinstance(found, dict) or found.get("release") != _release() or not isinstance(found.get("reports"), dict):
        return {}
    reports: dict[str, Any] = found["reports"]
    return reports


def _release() -> str:
    return f"{__version__} {requirements.digest()}"


def _state(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns
