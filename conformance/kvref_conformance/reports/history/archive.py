"""A folder of reports: each is kept once, in gzip, by endpoint, date, version of the endpoint and version of kvref.

    DIR/reports/ENDPOINT/20261125T213000Z_1.6.18_kvref-0.9.0.jsonl.gz

A report is written to a hidden file first and then linked to its name, so that no interruption leaves half of one and
no report replaces another.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvref import documents
from kvref.documents import DocumentError
from kvref.errors import SuiteError, cause_of
from kvref.specification import conformance_levels
from kvref.specification.report import AGAIN
from kvref.specification.requirements import LEVELS
from kvref_conformance.reports import column
from kvref_conformance.reports.grid import grid, share
from kvref_conformance.reports.history.cache import Cache
from kvref_conformance.reports.history.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvref_conformance.reports.column import Column
    from kvref_conformance.reports.grid import Share

REPORTS: Final = "reports"
SUFFIX: Final = ".jsonl.gz"
ALL: Final = "all"
# What a share is of: all requirements, those of a level of conformance, those with a keyword.
PARTS: Final = (ALL, *conformance_levels.NAMES, *LEVELS)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_STARTED: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9.+-]+")
_MAX_VERSION: Final = 60


def is_name(word: str) -> bool:
    """Return whether a word can be the name of an endpoint, and of its folder."""
    return _NAME.fullmatch(word) is not None


def keep(folder: Path, given: Iterable[str]) -> list[tuple[Path, bool]]:
    """Keep reports; nothing is written if one of them cannot be read.

    Args:
        folder: of the history; made if it does not exist.
        given: `[NAME=]PATH` as for `column.read_all`; NAME is that of the endpoint.

    Returns:
        Where each is, and whether it is new there.

    Raises:
        SuiteError: a report cannot be read or kept; the text names it and the fix.
    """
    columns = column.read_all(given)
    places = [(each, _place(folder, each)) for each in columns]
    return [(place, _keep(each, place)) for each, place in places]


def read(folder: Path, cache: Cache | None = None) -> dict[str, list[Run]]:
    """Read all reports of a folder.

    Args:
        folder: of the history.
        cache: of the folder; what is read is added to it.

    Returns:
        The runs of each endpoint, the oldest first; endpoints by name.

    Raises:
        SuiteError: reports cannot be read, or one is there twice; the text has a line for each, with the fix.
    """
    found: defaultdict[str, list[Run]] = defaultdict(list)
    digests: dict[tuple[str, str], Path] = {}
    faults = []
    cache = cache or Cache(folder)
    for path in sorted((folder / REPORTS).glob("*/*")):
        if path.name.startswith("."):
            continue  # written by a run that was interrupted; the report itself is where it came from
        try:
            run, digest = cache.find(path) or _read(path)
        except SuiteError as error:
            faults.append(f"{error}, or move this file out of {folder}")
            continue
        other = digests.setdefault((run.endpoint, digest), path)
        if other != path:
            faults.append(f"{path}: the same report as {other.name}: remove one of the two")
        found[run.endpoint].append(run)
        cache.add(run, digest)
    if faults:
        raise SuiteError("\n".join(faults))
    if not found:
        raise SuiteError(f"{folder / REPORTS}: no reports: give a REPORT of `kvref conform --report DIR`")
    return {name: sorted(runs, key=lambda run: run.started) for name, runs in sorted(found.items())}


def _place(folder: Path, given: Column) -> Path:
    started = str(given.header["started"])
    if not is_name(given.name):
        fix = f"NAME={given.path}, with letters, digits and . _ + -"
        raise SuiteError(f"{given.path}: {given.name!r} cannot be the name of an endpoint: give {fix}")
    if not _STARTED.fullmatch(started):
        raise SuiteError(f"{given.path}: started {started[:40]!r} is not a time of a run: {AGAIN}")
    stamp = started.replace("-", "").replace(":", "")
    version, suite = (_UNSAFE.sub("-", str(given.header[name]))[:_MAX_VERSION] for name in ("version", "suite"))
    return folder / REPORTS / given.name / f"{stamp}_{version}_kvref-{suite}{SUFFIX}"


def _keep(given: Column, place: Path) -> bool:
    try:
        content = documents.read_bytes(given.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".keep-") as file:
            file.write(gzip.compress(content, mtime=0))
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
            os.link(file.name, place)
    except FileExistsError:
        if documents.read_bytes(place) == content:
            return False
        fix = f"give it another NAME, or move {place} away"
        raise SuiteError(f"{given.path}: another report of {given.name} from the same second is kept: {fix}") from None
    except (OSError, DocumentError) as error:
        raise SuiteError(f"{given.path}: cannot be kept in {place.parent}: {cause_of(error)}") from error
    return True


def _read(path: Path) -> tuple[Run, str]:
    if not path.name.endswith(SUFFIX):
        raise SuiteError(f"{path}: no report: its name does not end in {SUFFIX}: give it to `kvref matrix --history`")
    given = column.read(path, path.parent.name)
    if not _STARTED.fullmatch(str(given.header["started"])):
        raise SuiteError(f"{path}: started {given.header['started']!r} is not a time of a run: {AGAIN}")
    verdicts = {case: outcome.verdict for case, outcome in given.outcomes.items()}
    levels = {str(each["level"]): each for each in given.levels}
    run = Run(given.name, path, given.header, given.exit_code, len(given.complaints), levels, verdicts, _shares(given))
    return run, hashlib.sha256(documents.read_bytes(path)).hexdigest()


def _shares(given: Column) -> dict[str, Share]:
    words: defaultdict[str, list[str]] = defaultdict(list)
    for row in grid([given]).rows:
        level = conformance_levels.of_chapter(row.requirement.chapter)
        for part in (ALL, level, row.requirement.level):
            words[part].append(row.verdicts[given.name])
    counted = {part: share(words[part]) for part in PARTS if part in words}
    return {part: each for part, each in counted.items() if each.judged}
