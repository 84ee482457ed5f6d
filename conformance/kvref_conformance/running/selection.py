"""Select the cases of a run: by --chapter, --conformance-level and --only, by --last-failed, or by a replay file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kvref.errors import SuiteError, choices, suggestion
from kvref.specification import conformance_levels, requirements
from kvref_conformance import cases as package
from kvref_conformance.case import Case
from kvref_conformance.cases import all_cases, by_chapter, test_replay
from kvref_conformance.errors import CannotJudge
from kvref_conformance.judging.verdict import BROKEN
from kvref_conformance.reports.column import read
from kvref_conformance.triage import replay_file
from kvref_conformance.triage.replay_file import ReplayFile

if TYPE_CHECKING:
    from argparse import Namespace

Wanted = Callable[[Case], bool]
# The module with the test of a replay file.
REPLAYING = Path(test_replay.__file__)


def wanted(options: Namespace) -> Wanted:
    """Return a function that decides whether a case is to be tried.

    Args:
        options: pytest's, with those of the plugin.

    Raises:
        CannotJudge: a chapter that the suite does not have, or --last-failed without a report that can be read, or in
            which nothing is broken, or no case is selected.
    """
    chosen = _of_chapters(options.chapter)
    levels = {name for level in options.conformance_level for name in conformance_levels.closure(level)}
    last = _last_failed(options.report) if options.last_broken else None

    def fits(case: Case) -> bool:
        names = (case.id, *case.requirements)
        globbed = not options.only or any(fnmatchcase(name, glob) for name in names for glob in options.only)
        in_level = not levels or conformance_levels.of_requirements(case.requirements) in levels
        in_chapter = not options.chapter or case.id in chosen
        return globbed and in_level and in_chapter and (last is None or case.id in last)

    if not any(map(fits, all_cases())):
        raise CannotJudge(_without_case(options))
    return fits


def _without_case(options: Namespace) -> str:
    """Return that no case is selected, by which options."""
    given = {"--chapter": options.chapter, "--conformance-level": options.conformance_level, "--only": options.only}
    words = [f"{name} {value}" for name, values in given.items() for value in values]
    words += ["--last-failed"] if options.last_broken else []
    known = {name for case in all_cases() for name in (case.id, *case.requirements)}
    close = suggestion(options.only[0], known) if options.only else ""
    return f"no case for {' '.join(words)}{close}: `kvref spec --list` lists requirements, `--coverage` their cases"


def replayed(options: Namespace) -> ReplayFile | None:
    """Return what --replay names, and judge it by the profile that it was judged by; None without it.

    Args:
        options: pytest's, with those of the plugin.

    Raises:
        CannotJudge: the file cannot be used.
    """
    if not options.replay:
        return None
    found = replay_file.read(Path(options.replay))
    if options.profile is None:
        options.profile = found.profile
    return found


def split(items: list[pytest.Item], fits: Wanted, *, replay: bool) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of a run, and the omitted ones.

    Args:
        items: all that were collected; tests that are not the suite's remain.
        fits: as `wanted` returns it.
        replay: only the case of a replay file is to run.
    """
    taken: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        case = case_of(item)
        if case is not None or is_replay(item):
            chosen = is_replay(item) if replay else case is not None and fits(case)
        else:
            chosen = not replay
        (taken if chosen else left).append(item)
    return taken, left


def has_any(module: Path, fits: Wanted, *, replay: bool) -> bool:
    """Return whether a module of the suite has a case of the run; arguments as of `split`."""
    if replay or module == REPLAYING:
        return replay and module == REPLAYING
    cases: tuple[Case, ...] = getattr(import_module(f"{package.__name__}.{module.stem}"), "CASES", ())
    return any(map(fits, cases))


def case_of(item: pytest.Item) -> Case | None:
    """Return the case of a test; None for a test that is none of the suite's."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    case = item.callspec.params.get("case")
    return case if isinstance(case, Case) else None


def is_replay(item: pytest.Item) -> bool:
    """Return whether a test is the one of a replay file."""
    return item.path == REPLAYING and getattr(item, "originalname", "") == "test_replay"


def _of_chapters(names: Collection[str]) -> set[str]:
    """Return the IDs of the cases of some chapters."""
    unknown = [name for name in names if name not in requirements.CHAPTERS]
    if unknown:
        raise CannotJudge(
            f"{unknown[0]!r} is neither HOST:PORT or unix:PATH nor a chapter"
            f"{choices(unknown[0], requirements.CHAPTERS)}"
        )
    return {case.id for name in names for case in by_chapter()[name]}


def _last_failed(report: str | None) -> set[str]:
    if report is None:
        raise CannotJudge("--last-failed needs --report DIR: the report with the failures")
    try:
        outcomes = read(Path(report)).outcomes.values()
    except SuiteError as error:
        raise CannotJudge(f"--last-failed: {error}") from error
    found = {outcome.case for outcome in outcomes if outcome.verdict in BROKEN}
    if not found:
        raise CannotJudge(f"--last-failed: no failure in the report {report}")
    return found
