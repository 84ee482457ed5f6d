"""`kvref matrix`: compare reports of `kvref conform`, as a page, Markdown, JUnit, JSON and badges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from kvref.cli import output
from kvref.cli.output import print_results
from kvref.errors import KvrefError, SuiteError
from kvref_conformance.reports import column, forms, markdown, matrix_pages, record
from kvref_conformance.reports.grid import ANSWERS, VERDICTS_DIFFER, grid
from kvref_conformance_cli.history import update
from kvref_conformance_cli.options import folder_option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvref_conformance.reports.grid import Grid

FORMS = {
    "markdown": markdown.summary,
    "upgrade": markdown.upgrade,
    "found": markdown.found,
    "junit": forms.as_junit,
    "json": forms.as_json,
}
# Forms of several files: content by name.
FOLDERS: Mapping[str, Callable[[Grid], Mapping[str, str]]] = {
    "html": lambda made: matrix_pages.html(record.Record.of(made)),
    "data": record.files,
    "badges": lambda made: {f"{each.name}.json": forms.badge(each) for each in made.columns},
}


@click.command("matrix")
@click.argument("reports", metavar="[NAME=]REPORT...", nargs=-1)
@click.option(
    "--html",
    metavar="DIR",
    help="Directory for HTML: index.html, and pages of each chapter with filters, search and the conversations of every"
    " case.",
)
@click.option("--data", metavar="DIR", help="Directory for verdict files: the data of these pages as JSON.")
@click.option(
    "--markdown", metavar="FILE", help="Markdown summary for a pull request: counts, failures, differing verdicts."
)
@click.option(
    "--upgrade", metavar="FILE", help="Markdown list of what changes for clients from each report to the next."
)
@click.option(
    "--found", metavar="FILE", help="Markdown list of failures found by generated conversations, each shortened."
)
@click.option("--junit", metavar="FILE", help="JUnit XML, one test suite per report.")
@click.option("--json", metavar="FILE", help="JSON, described by matrix.schema.json in the package.")
@click.option(
    "--badges",
    metavar="DIR",
    help="Directory for one NAME.json per report, in the format of the shields.io endpoint badge.",
)
@folder_option(
    "--history",
    help="Keep the reports in DIR by endpoint NAME, date and version, and write DIR/index.html with trends and"
    " regressions, history.json, and a badge for each endpoint and level. Without a REPORT: write them again.",
)
@click.option(
    "--judge",
    is_flag=True,
    help="With --history: first judge the endpoints of DIR/endpoints.toml and keep their reports.",
)
@click.pass_context
def command(
    context: click.Context,
    /,
    reports: tuple[str, ...],
    history: Path | None,
    *,
    judge: bool,
    **files: str | None,
) -> None:
    """Compare reports side by side: requirements by endpoint.

    A REPORT is the report.jsonl of `kvref conform --report DIR`, the same file in gzip format, or DIR. NAME is its
    heading; the default is the name of the folder. FILE can be `-` for standard output.

    With --history, exit code 2: a report could not be kept or read, or an endpoint could not be judged.
    """
    if judge and history is None:
        raise KvrefError("--judge needs the folder that keeps the reports: add --history DIR")
    if reports:
        _side_by_side(reports, files)
    elif history is None or any(files.values()):
        raise click.UsageError("Missing argument '[NAME=]REPORT...'.")
    if history is not None:
        context.exit(update(history, reports, judge=judge))


def _side_by_side(reports: tuple[str, ...], files: Mapping[str, str | None]) -> None:
    if list(files.values()).count("-") > 1:
        raise KvrefError("only one FILE can be `-`, standard output")
    if folders := [form for form in FOLDERS if files[form] == "-"]:
        raise KvrefError(f"--{folders[0]} -: several files cannot go to standard output: give a directory")
    try:
        made = grid(column.read_all(reports))
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    for form, file in files.items():
        if file is None:
            continue
        if form in FORMS:
            output.write(file, FORMS[form](made), parents=True)
        else:
            for name, text in FOLDERS[form](made).items():
                output.write(str(Path(file) / name), text, parents=True)
    if "-" not in files.values():
        print_results(_table(made))
        for each in made.columns:
            click.echo(f"{each.name}: {each.about()}")
        parted = [sum(row.parts == word for row in made.rows) for word in (VERDICTS_DIFFER, ANSWERS)]
        click.echo(f"{len(made.rows)} requirements: verdicts differ in {parted[0]}, only answers in {parted[1]}")


def _table(made: Grid) -> Table:
    table = Table(title="requirements by endpoint", title_justify="left")
    table.add_column("endpoint")
    words = made.words()
    for word in words:
        table.add_column(word, justify="right")
    for each in made.columns:
        totals = made.totals(each.name)
        table.add_row(each.name, *(str(totals[word] or "·") for word in words))
    return table
