"""The coverage of the catalogue as lines: what judges each requirement and which recordings show it.

The lines stand in the repository as a snapshot, so that a change of coverage is seen where it is made.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kvref.specification import requirements
from kvref.specification.requirements import LEVELS
from kvref_conformance import corpus
from kvref_conformance.spec.entry import VERSIONS, cases_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref.specification.requirements import Requirement


def lines() -> Iterator[str]:
    """Yield the totals, then one line a requirement, in the order of the chapters.

    Raises:
        SuiteError: evidence names a conversation that is not among the transcripts.
    """
    catalogue = requirements.load().values()
    levels = Counter(each.level for each in catalogue)
    yield f"# {len(catalogue)} requirements: {', '.join(f'{levels[level]} {level}' for level in LEVELS)}"
    yield "# cases in the suite, other tests, recordings by version"
    for each in catalogue:
        yield _line(each)


def _line(requirement: Requirement) -> str:
    counts = Counter(
        version
        for cited in requirement.evidence
        for version in ([cited] if cited.startswith("live:") else corpus.find(cited).versions())
    )
    known = [version for version in VERSIONS.values() if version]
    order = [*known, *sorted(counts.keys() - set(known))]
    shown = " ".join(f"{version}={counts[version]}" for version in order if counts[version])
    judged = "untestable" if requirement.untestable else f"cases={len(cases_of(requirement.id))}"
    tests = f" tests={len(requirement.tests)}" if requirement.tests else ""
    return f"{requirement.id} {requirement.level} {judged}{tests} {shown}"
