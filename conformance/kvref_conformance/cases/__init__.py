"""The conversations: one file a chapter, `NAME.toml`, and those that are generated (`generated.py`).

A case names the requirements it tests, and belongs to the chapter of the first one; its steps are bytes typed by hand
from the recordings, articles and manuals. `chapter.py` reads the files, `test_chapters.py` judges each case.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kvref.errors import SuiteError
from kvref.specification import requirements
from kvref_conformance.cases.chapter import literal_cases
from kvref_conformance.cases.generated import GENERATED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvref_conformance.case import Case


def chapter_of(case: Case) -> str:
    """Return the chapter of a case: that of its first requirement."""
    return requirements.load()[case.requirements[0]].chapter


@cache
def by_chapter() -> Mapping[str, tuple[Case, ...]]:
    """Return the cases of each chapter, in the order of the specification; errors as of `all_cases`."""
    found: dict[str, list[Case]] = {chapter: [] for chapter in requirements.CHAPTERS}
    ids: set[str] = set()
    for case in (*GENERATED, *literal_cases()):
        if case.id in ids:
            raise SuiteError(f"two cases are named {case.id}")
        ids.add(case.id)
        found[chapter_of(case)].append(case)
    return {chapter: tuple(cases) for chapter, cases in found.items()}


def all_cases() -> list[Case]:
    """Return every case of the suite.

    Raises:
        SuiteError: two cases have one id.
    """
    return [case for chapter in by_chapter().values() for case in chapter]
