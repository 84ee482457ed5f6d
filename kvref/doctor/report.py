"""A report: its summary, as dictionaries for JSON, and as text on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from kvref.doctor.examine import CANNOT_TELL, UNUSABLE, USABLE
from kvref.doctor.features import KVREF
from kvref.errors import printable
from kvref.specification.requirements import STYLES
from kvref.specification.terminal import labelled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvref.doctor.examine import Report, RowReport, Verdict
    from kvref.doctor.features import Citation, Finding
    from kvref.doctor.predicates import Subject
    from kvref.engine.mapping import Column

ERRORS: Final = "errors"
WARNINGS: Final = "warnings"
NOTICES: Final = "notices"
_MAX_NAMES: Final = 3
CHANGES: Final = "what changes for these tables with profile kvref"


def summarize(report: Report) -> dict[str, tuple[str, ...]]:
    """Return a report in lines, each once, in four parts.

    ERRORS: why the configuration cannot be used or judged; the command does not exit with 0. WARNINGS: what crashes
    mysqld, loses or changes data, and rows that kvref rejects. NOTICES: the rest. CHANGES: what kvref does differently,
    if a mapping depends on it.
    """
    parts = {ERRORS: _errors, WARNINGS: _warnings, NOTICES: _notices, CHANGES: _changes}
    return {what: tuple(dict.fromkeys(lines(report))) for what, lines in parts.items()}


def _errors(report: Report) -> Iterator[str]:
    if report.refused:
        yield f"profile {report.profile} does not start: {report.refused}"
    for row in report.rows:
        if row.verdict.state in (UNUSABLE, CANNOT_TELL):
            cannot = f"{CANNOT_TELL}: " if row.verdict.state == CANNOT_TELL else ""
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
        if citation.crashes_server:
            yield f"ENDS mysqld, {names}: {citation.requirement.statement} ({citation.requirement.id})"
    for citation, names in cited:
        if citation.defects and not citation.crashes_server:
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


def as_record(report: Report) -> dict[str, Any]:
    """Return a report as a dictionary; `exit_code` is the command's."""
    return {
        "source": report.source,
        "profile": report.profile,
        "exit_code": report.exit_code,
        "refused": report.refused,
        "kvref_refused": report.kvref_refused,
        "problems": list(report.problems),
        "default": report.default,
        "notes": list(report.notes),
        "not_cached": report.log_refusal,
        "innodb_api_trx_level": report.level,
        "findings": [_finding(each) for each in report.findings],
        "rows": [_row_record(each) for each in report.rows],
        "plugin": None if report.plugin is None else as_record(report.plugin),
    }


def _row_record(report: RowReport) -> dict[str, Any]:
    subject, columns = report.subject, dict[str, Any]()
    if subject is not None:
        columns = {"key": asdict(subject.key), "values": [asdict(each) for each in subject.values]}
        columns |= {use: asdict(column) for use, column in subject.extras.items()}
        columns["unmapped"] = [asdict(each) for each in subject.unmapped]
    citations = [citation for finding in report.findings for citation in finding.citations]
    return {
        "name": report.row.name,
        "row": asdict(report.row),
        **_verdict(report.verdict),
        "default": report.default,
        "kvref": None if report.kvref is None else _verdict(report.kvref),
        "table": None if subject is None else subject.mapping.source,
        "columns": columns,
        "not_cached": report.not_cached,
        "not_granted": report.not_granted,
        "ends_mysqld": sorted({each.requirement.id for each in citations if each.crashes_server}),
        "findings": [_finding(each) for each in report.findings],
    }


def _verdict(verdict: Verdict) -> dict[str, str]:
    return {"state": verdict.state, "fault": verdict.fault, "rule": verdict.rule}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "feature": finding.feature.name,
        "title": finding.feature.title,
        "where": list(finding.where),
        "requirements": [_citation(each) for each in finding.citations],
        "kvref_only": [_citation(each) for each in finding.instead],
    }


def _citation(citation: Citation) -> dict[str, Any]:
    requirement = citation.requirement
    return {
        "id": requirement.id,
        "level": requirement.level,
        "title": requirement.title,
        "statement": requirement.statement,
        "defects": list(citation.defects),
        "deviations": list(citation.deviations),
    }


MAX_LINES: Final = 10  # of each part of the summary
_WEIGHTS: Final = {ERRORS: "bold red", WARNINGS: "bold yellow", NOTICES: "bold", CHANGES: "bold"}
_STATES: Final = {USABLE: "bold green", UNUSABLE: "bold red"}
# What gets show where no isolation level is set, by the default.
_LEVELS: Final = (
    "also show what others have not committed and may roll back, by default (innodb_api_trx_level=0), as the plugin's"
    " do; --set innodb_api_trx_level=1, the default of profile kvref, shows committed rows only",
    "show committed rows only, by default (innodb_api_trx_level=1); the plugin's also show what others have not"
    " committed and may roll back: an application that needs that sets innodb_api_trx_level=0",
)


def report_view(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    """Yield the parts of a report, in the order of reading."""
    yield Text.assemble(
        ("configuration", "bold"), f" of {printable(report.source)}, as profile {report.profile} starts with it"
    )
    grid = labelled()
    state = ("cannot be started with", "bold red") if report.refused else ("can be started with", "green")
    grid.add_row("start", Text.assemble(state, f": {printable(report.refused)}" if report.refused else ""))
    if report.profile != KVREF and report.refused != report.kvref_refused:
        grid.add_row(KVREF, _text(report.kvref_refused or "starts with it"))
    grid.add_row("default", _text(report.default))
    grid.add_row("gets", _text(_LEVELS[report.level]))
    yield Padding(grid, (0, 0, 0, 2))
    yield from _summarized(summarize(report), verbose=verbose)
    if verbose:
        yield from _crashes(report.findings, "THIS CONFIGURATION")
        yield from _findings(report.findings)
    for row in report.rows:
        if verbose:
            yield Text()
        yield from _row(row, verbose=verbose)
    yield Text()
    states = Counter(sorted(row.verdict.state for row in report.rows))
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    yield Text.assemble(
        (f"rows of containers: {counts or 'none'}", "bold"), "; `kvref spec KV-…` explains a requirement"
    )


def _summarized(summary: dict[str, tuple[str, ...]], *, verbose: bool) -> Iterator[RenderableType]:
    counts = (
        f"{len(lines)} {what if len(lines) != 1 else what.removesuffix('s')}"
        for what, lines in summary.items()
        if what != CHANGES
    )
    yield Text()
    yield Text(", ".join(counts), "bold")
    for what, lines in summary.items():
        if not lines:
            continue
        yield Padding(Text(what, _WEIGHTS[what]), (1, 0, 0, 0))
        limited = lines if verbose else lines[:MAX_LINES]
        for line in limited:
            yield Padding(_bullet(line), (0, 0, 0, 2))
        if len(lines) > len(limited):
            yield Text(f"  … and {len(lines) - len(limited)} more: --verbose shows them")
    yield Text()


def _bullet(line: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(overflow="fold")
    grid.add_row("-", _text(line))
    return grid


def _row(report: RowReport, *, verbose: bool) -> Iterator[RenderableType]:
    row, verdict = report.row, report.verdict
    head = Text.assemble((repr(row.name), "bold"), " ", (verdict.state, _STATES.get(verdict.state, "bold yellow")))
    head.append(printable(f"  {row.db_schema}.{row.db_table}") + ("  default mapping" if report.default else ""))
    if not verbose:
        yield head
        return
    yield Rule(head, align="left", style="dim")
    grid = labelled()
    if verdict.fault:
        grid.add_row("fault", _text(_without_name(verdict.fault, row.name), "red"))
    if report.kvref is not None:
        accepts = report.kvref.state == USABLE
        text = "takes this row" if accepts else f"refuses this row: {_without_name(report.kvref.fault, row.name)}"
        grid.add_row(KVREF, _text(text))
    if report.subject is not None:
        for what, text in _columns(report.subject):
            grid.add_row(what, _text(text))
    if report.not_granted:
        grid.add_row("privileges", _text(report.not_granted, "yellow"))
    if report.not_cached:
        grid.add_row("row cache", _text(f"not with row_cache_binlog=1: {report.not_cached}"))
    yield Padding(grid, (0, 0, 0, 2))
    yield from _crashes(report.findings, "THIS MAPPING")
    yield from _findings(report.findings)


def _columns(subject: Subject) -> Iterator[tuple[str, str]]:
    def describe(column: Column) -> str:
        details = subject.of(column)
        return " ".join(part for part in (column.name, details.declared, details.collation) if part)

    mapping = subject.mapping
    yield "key", f"{describe(mapping.key)}, index {subject.row.unique_idx_name_on_key}"
    yield "value", "; ".join(map(describe, mapping.values))
    uses = mapping.options.items()
    yield "options", "; ".join(f"{use} {describe(column) if column else '-'}" for use, column in uses)


def _crashes(findings: tuple[Finding, ...], what: str) -> Iterator[RenderableType]:
    seen: set[str] = set()
    for finding in findings:
        for citation in finding.citations:
            if citation.crashes_server and citation.requirement.id not in seen:
                seen.add(citation.requirement.id)
                text = Text.assemble((f"{what} ENDS mysqld:", "bold white on red"))
                text.append(f" {citation.requirement.statement} ({citation.requirement.id})", "bold red")
                yield Padding(text, (0, 0, 0, 2))


def _findings(findings: tuple[Finding, ...]) -> Iterator[RenderableType]:
    for finding in findings:
        where = printable(f": {', '.join(finding.where)}") if finding.where else ""
        yield Padding(Text.assemble((finding.feature.title, "bold"), where), (1, 0, 0, 2))
        yield Padding(_requirements(finding), (0, 0, 0, 4))


def _requirements(finding: Finding) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column()
    for citation in finding.citations:
        table.add_row(*_cells(citation))
    for citation in finding.instead:
        identifier, level, title = _cells(citation)
        table.add_row(identifier, level, Text.assemble(("kvref only: ", "dim"), title))
    return table


def _cells(citation: Citation) -> tuple[Text, Text, Text]:
    requirement = citation.requirement
    title = Text(requirement.title)
    for deviation in citation.deviations:
        title.append(f"\ndeviates: {deviation}", "yellow")
    if citation.defects:
        title.append(f"  [{', '.join(citation.defects)}]", "bold red" if citation.crashes_server else "red")
    return Text(requirement.id), Text(requirement.level, STYLES[requirement.level]), title


def _text(text: str, style: str = "") -> Text:
    """Return text of the database for a terminal: no character of it is a control sequence."""
    return Text(printable(text), style)


def _without_name(fault: str, name: str) -> str:
    return fault.removeprefix(f"container {name!r}: ")
