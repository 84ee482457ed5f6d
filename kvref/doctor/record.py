"""A report for machines: plain dictionaries, ready for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvref.doctor.examine import Report, RowReport, Verdict
    from kvref.doctor.features import Citation, Finding
    from kvref.doctor.subject import Subject


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
        "findings": [_finding(each) for each in report.findings],
        "rows": [_row(each) for each in report.rows],
    }


def _row(report: RowReport) -> dict[str, Any]:
    mapping = None if report.subject is None else report.subject.mapping
    return {
        "name": report.row.name,
        "row": asdict(report.row),
        **_verdict(report.verdict),
        "default": report.default,
        "kvref": None if report.kvref is None else _verdict(report.kvref),
        "table": None if mapping is None else mapping.source,
        "columns": {} if report.subject is None else _columns(report.subject),
        "ends_mysqld": sorted(
            {
                citation.requirement.id
                for each in report.findings
                for citation in each.citations
                if citation.ends_the_server
            }
        ),
        "findings": [_finding(each) for each in report.findings],
    }


def _columns(subject: Subject) -> dict[str, Any]:
    return {
        "key": asdict(subject.key),
        "values": [asdict(each) for each in subject.values],
        **{use: asdict(column) for use, column in subject.extras.items()},
        "unmapped": [asdict(each) for each in subject.unmapped],
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
