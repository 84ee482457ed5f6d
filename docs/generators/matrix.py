"""The matrix of endpoints from the verdict files of `.ci/part standing`: counts by verdict and chapter, and pages."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generators.markup import bullets, code, numbers, page, prose, table
from kvref.specification import requirements
from kvref_conformance.judging.verdict import ABOUT
from kvref_conformance.reports import matrix_pages
from kvref_conformance.reports.record import Record
from kvref_conformance.spec.entry import cases_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvref_conformance.reports.grid import Grid, Row

FILES: Final = Path(__file__).parents[2] / "conformance" / "standing" / "verdicts"
ABOUT_PAGE: Final = (
    "The suite judged these endpoints of the target manager at level quirk. `bash .ci/part standing` repeats the runs "
    "and writes the data of this page. The <a href='../../matrix/index.html'>whole matrix</a> has every conversation."
)


def pages() -> Mapping[str, str]:
    """Return the page."""
    grid = Record.read(FILES).grid
    names = [column.name for column in grid.columns]
    verdicts = [verdict for verdict in ABOUT if any(grid.totals(name)[verdict] for name in names)]
    made = page(
        "Matrix of endpoints",
        ABOUT_PAGE,
        f"{len(grid.rows)} requirements, {len(names)} endpoints. {_age(grid)}",
        "## Endpoints",
        bullets([f"{code(column.name)}: {prose(column.about())}" for column in grid.columns]),
        "## Requirements by verdict",
        "The verdict on a requirement is the worst verdict on its cases.",
        numbers(table(("endpoint", *(f"*{verdict}*" for verdict in verdicts)), _totals(grid, verdicts))),
        bullets([f"*{verdict}*: {prose(ABOUT[verdict])}" for verdict in verdicts]),
        "## Kept requirements by chapter",
        "A requirement is kept if its verdict is *holds* or *quirk*. Each cell shows the share of kept requirements, "
        "of those that were judged on the endpoint; a cell is empty if none was. The title of a cell has both numbers.",
        _shares(grid),
        anchor="matrix",
    )
    return {"reference/generated/matrix.md": made}


def write(folder: Path) -> None:
    """Write the pages of the whole matrix to a folder, which has no other files afterwards."""
    made = matrix_pages.html(Record.read(FILES))
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


def _age(grid: Grid) -> str:
    others = requirements.load().keys() - {row.requirement.id for row in grid.rows}
    newer = sum(1 for name in others if cases_of(name))
    return (
        f"Of the {len(requirements.load())} requirements of the specification, {len(others) - newer} have no case "
        f"and are tested elsewhere; {newer} are newer than these runs."
    )


def _totals(grid: Grid, verdicts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for column in grid.columns:
        counts = grid.totals(column.name)
        yield code(column.name), *(str(counts[verdict] or "") for verdict in verdicts)


def _shares(grid: Grid) -> str:
    """Return the table of chapters by endpoints as HTML, each cell filled as far as requirements are kept."""
    heads = "".join(f"<th scope='col'><span>{escape(column.name)}</span></th>" for column in grid.columns)
    lines = [_line("<b>all</b>", grid.rows, grid)]
    for chapter, rows in grid.chapters():
        link = f"<a href='../specification/{chapter.name}.html'>{escape(chapter.title)}</a>"
        lines.append(_line(link, rows, grid))
    return (
        "<div class='shares-box'><table class='shares'><thead><tr><th scope='col'>chapter</th>"
        f"{heads}</tr></thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table></div>"
    )


def _line(title: str, rows: Sequence[Row], grid: Grid) -> str:
    shares = [(grid.share(column.name, rows), column.name) for column in grid.columns]
    cells = "".join(
        f"<td style='--share: {each.part:.3f}' title='{each.passed} of {each.judged} on {escape(name)}'>"
        f"{each.percent}</td>"
        for each, name in shares
    )
    return f"<tr><th scope='row'>{title}</th>{cells}</tr>"
