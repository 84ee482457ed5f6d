"""The short form of a report: errors, warnings, notices, and what changes for the mapped tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kvref.doctor.examine import KVREF, UNSEEN, UNUSABLE, USABLE

if TYPE_CHECKING:
    from kvref.doctor.examine import Report
    from kvref.doctor.features import Citation, Finding

ERRORS: Final = "errors"
WARNINGS: Final = "warnings"
NOTICES: Final = "notices"
_MAX_NAMES: Final = 3
CHANGES: Final = "what changes for these tables with profile kvref"


@dataclass(frozen=True, slots=True)
class Summary:
    """A report in lines.

    Args:
        errors: why the configuration cannot be used or judged; the command does not exit with 0.
        warnings: what crashes mysqld, loses or changes data, and rows that kvref rejects.
        changes: what kvref does differently, if a mapping depends on it.
    """

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    notices: tuple[str, ...]
    changes: tuple[str, ...]

    @property
    def by_weight(self) -> dict[str, tuple[str, ...]]:
        """Return the lines without the changes, by their weight."""
        return {ERRORS: self.errors, WARNINGS: self.warnings, NOTICES: self.notices}


def summarize(report: Report) -> Summary:
    """Return the short form of a report."""
    return Summary(*(tuple(dict.fromkeys(lines(report))) for lines in (_errors, _warnings, _notices, _changes)))


def _errors(report: Report) -> Iterator[str]:
    if report.refused:
        yield f"profile {report.profile} does not start: {report.refused}"
    for row in report.rows:
        if row.verdict.state in (UNUSABLE, UNSEEN):
            cannot = f"{UNSEEN}: " if row.verdict.state == UNSEEN else ""
            yield f"{cannot}{row.verdict.fault}"


def _warnings(report: Report) -> Iterator[str]:
    for row in report.rows:
        if row.not_granted:
            yield f"privileges, {row.row.name!r}: {row.not_granted}"
        for finding in row.findings:
            if finding.feature.warning:
                yield f"{row.row.name!r}: {finding.feature.title}: {', '.join(finding.where)}"
    cited = _cited(report, lambda finding: finding.citations)
    for citation, names in cited:
        if citation.ends_the_server:
            yield f"ENDS mysqld, {names}: {citation.requirement.statement} ({citation.requirement.id})"
    for citation, names in cited:
        if citation.defects and not citation.ends_the_server:
            kinds = ", ".join(citation.defects)
            yield f"{kinds}, {names}: {citation.requirement.title} ({citation.requirement.id})"
    if report.profile != KVREF and report.kvref_refused:
        yield f"profile {KVREF} does not start: {report.kvref_refused}"
    for row in report.rows:
        if row.kvref is not None and row.kvref.state == UNUSABLE and row.verdict.state == USABLE:
            yield f"profile {KVREF} refuses a row that is usable: {row.kvref.fault}"
    yield from report.problems


def _notices(report: Report) -> Iterator[str]:
    if report.plugin is not None:
        yield from _of_plugin(report.plugin)
    for row in report.rows:
        if row.kvref is not None and row.kvref.state == USABLE and row.verdict.state == UNUSABLE:
            yield f"profile {KVREF} takes the row {row.row.name!r}"
    yield from report.notes
    if report.log_refusal:
        yield f"rows are not cached with row_cache_binlog=1, which {report.log_refusal}"
    for row in report.rows:
        if row.not_cached:
            yield f"rows of {row.row.name!r} are not cached with row_cache_binlog=1: {row.not_cached}"


def _of_plugin(report: Report) -> Iterator[str]:
    """Yield what the profile of the plugin does otherwise, in a line for each row and one for all its defects."""
    see = f"--profile {report.profile}"
    for row in report.rows:
        if row.kvref is not None and row.kvref.state == USABLE and row.verdict.state == UNUSABLE:
            yield f"the plugin rejects a row that is usable: {row.verdict.fault} ({see})"
    if report.refused != report.kvref_refused:
        yield f"the plugin {f'does not start: {report.refused}' if report.refused else 'starts'} ({see})"
    kinds = [citation.defects for citation, _ in _cited(report, lambda finding: finding.citations) if citation.defects]
    if kinds:
        defects = "defect" if len(kinds) == 1 else "defects"
        named = ", ".join(dict.fromkeys(kind for each in kinds for kind in each))
        yield f"the plugin has {len(kinds)} {defects} that can concern these tables ({named}): {see} lists them"


def _changes(report: Report) -> Iterator[str]:
    report = report.plugin or report
    for citation, names in _cited(report, lambda finding: finding.instead):
        yield f"{citation.requirement.title}: {names} ({citation.requirement.id})"


def _cited(report: Report, of: Callable[[Finding], tuple[Citation, ...]]) -> list[tuple[Citation, str]]:
    """Return the requirements that findings cite, each once with the names of the rows; those of most rows first."""
    found: dict[str, tuple[Citation, dict[str, None]]] = {}
    of_rows = ((repr(row.row.name), row.findings) for row in report.rows)
    for name, findings in (("the configuration", report.findings), *of_rows):
        for citation in (each for finding in findings for each in of(finding)):
            found.setdefault(citation.requirement.id, (citation, {}))[1][name] = None
    ordered = sorted(found.values(), key=lambda each: -len(each[1]))
    return [(citation, _shortened(list(names))) for citation, names in ordered]


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
