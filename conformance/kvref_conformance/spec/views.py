"""What the suite adds to `kvref spec`, which finds this module by the entry point `kvref.specification`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from kvref.specification.terminal import DEVIATES, SuiteEvidence
from kvref_conformance.export import cases as export
from kvref_conformance.spec import compare, edition
from kvref_conformance.spec import coverage as coverage_of
from kvref_conformance.spec.entry import entry, sections

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kvref.specification.requirements import Requirement
    from kvref_conformance.spec.example import Example


def evidence(requirement: Requirement) -> SuiteEvidence:
    """Return cases, recordings and an example of a requirement; raises SuiteError as `entry`."""
    found = entry(requirement)
    answers = {view.profile: view.answers for view in found.views if view.state == DEVIATES}
    return SuiteEvidence(
        found.cases, found.recordings, answers, None if found.example is None else _example(found.example)
    )


def _example(example: Example) -> Table:
    table = Table(title=f"{example.citation}: {example.title}", title_justify="left", box=None, show_header=False)
    table.add_column(style="dim", justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for line in example.given:
        table.add_row("given", Text(line, "dim"))
    for exchange in example.exchanges:
        table.add_row(f"{exchange.on} >", Text(exchange.sent))
        for answer in exchange.answers:
            table.add_row(f"{' '.join(answer.versions)} <", Text(answer.text, "green"))
    return table


def coverage() -> str:
    """Return the cases and recordings of each requirement, one line a requirement."""
    return "".join(f"{line}\n" for line in coverage_of.lines())


def cases(wanted: Mapping[str, Requirement], profile: str) -> str:
    """Return the literal cases of requirements as JSON."""
    return export.as_json(wanted, profile)


def html(wanted: Mapping[str, Requirement]) -> str:
    """Return a page of requirements; raises ModuleNotFoundError without Jinja."""
    from kvref_conformance.spec import page  # noqa: PLC0415 - the other views need no template

    return page.html(sections(wanted))


def markdown(wanted: Mapping[str, Requirement]) -> str:
    """Return requirements as Markdown; raises ModuleNotFoundError without Jinja."""
    from kvref_conformance.spec import page  # noqa: PLC0415 - as above

    return page.markdown(sections(wanted))


def pages(profile: str) -> Mapping[str, str]:
    """Return the Markdown pages of a profile's specification by file name."""
    return edition.pages(profile)


def as_json(profile: str) -> str:
    """Return a profile's specification as JSON."""
    return edition.as_json(profile)


def changelog(old: Path) -> str:
    """Return what has changed since a file of `as_json`; raises SuiteError if it cannot be read."""
    before = compare.read(old)
    return compare.changelog(before, json.loads(edition.as_json(before["profile"])))


def differences(profile: str, other: str) -> str:
    """Return what differs between two profiles, as Markdown."""
    return compare.profiles_page(profile, other)
