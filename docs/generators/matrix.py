"""The matrix of endpoints: counts by verdict and by chapter, from the committed page of `.ci/part standing`."""

from __future__ import annotations

import json
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generators.markup import code, page, prose, table
from kvref.specification import requirements
from kvref_conformance.matrix import grid, standing
from kvref_conformance.spec.entry import cases_of
from kvref_conformance.verdict import ABOUT, NOT_RUN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MATRIX: Final = Path(__file__).parents[2] / "conformance" / "standing" / "matrix.html"
ABOUT_PAGE: Final = (
    "The suite judged these endpoints of the target manager at level quirk. `bash .ci/part standing` repeats the runs "
    "and writes the data of this page. The <a href='../../matrix.html'>whole matrix</a> has every conversation."
)
Verdicts = dict[str, list[str]]


def pages() -> Mapping[str, str]:
    """Return the page."""
    found = json.loads(standing.DATA.findall(MATRIX.read_text(encoding="utf-8"))[0])
    names = [name for name, _ in found["columns"]]
    verdicts = _by_requirement(found)
    made = page(
        "Matrix of endpoints",
        ABOUT_PAGE,
        f"{len(verdicts)} requirements, {len(names)} endpoints. {_age(verdicts)}",
        "## Endpoints",
        table(("endpoint", "version, profile, database, date"), [(code(a), prose(b)) for a, b in found["columns"]]),
        "## Requirements by verdict",
        "The verdict on a requirement is the worst verdict on its cases.",
        table(("verdict", "meaning", *map(code, names)), _totals(verdicts, len(names))),
        "## Kept requirements by chapter",
        "A requirement is kept if its verdict is *holds* or *quirk*. Each cell shows the share of kept requirements, "
        "of those that were judged on the endpoint; a cell is empty if none was. The title of a cell has both numbers.",
        _shares(names, verdicts),
        anchor="matrix",
    )
    return {"reference/generated/matrix.md": made}


def _by_requirement(found: Mapping[str, Any]) -> Verdicts:
    """Return the verdicts on each requirement, one for each endpoint: the worst, which is the first, of its cases."""
    words: Sequence[str] = found["verdicts"]
    columns = range(len(found["columns"]))
    return {
        name: [_worst(words, [found["cases"][case][column] for case in cases]) for column in columns]
        for name, cases in found["requirements"].items()
    }


def _worst(words: Sequence[str], judged: Sequence[Any]) -> str:
    """Return the first verdict in the order of words; a case without a verdict was not run."""
    return words[min(words.index(NOT_RUN) if each is None else each[0] for each in judged)]


def _age(verdicts: Verdicts) -> str:
    others = requirements.load().keys() - verdicts.keys()
    newer = sum(1 for name in others if cases_of(name))
    return (
        f"Of the {len(requirements.load())} requirements of the specification, {len(others) - newer} have no case "
        f"and are tested elsewhere; {newer} are newer than these runs."
    )


def _totals(verdicts: Verdicts, columns: int) -> Iterator[tuple[str, ...]]:
    counts = [Counter(each[column] for each in verdicts.values()) for column in range(columns)]
    for verdict, meaning in ABOUT.items():
        if any(count[verdict] for count in counts):
            yield f"*{verdict}*", prose(meaning), *(str(count[verdict] or "") for count in counts)


def _shares(names: Sequence[str], verdicts: Verdicts) -> str:
    """Return the table of chapters by endpoints as HTML, each cell filled as far as requirements are kept."""
    heads = "".join(f"<th scope='col'><span>{escape(name)}</span></th>" for name in names)
    found = [
        (chapter, [verdicts[each.id] for each in chapter.requirements if each.id in verdicts])
        for chapter in requirements.chapters()
    ]
    lines = [_line("<b>all</b>", list(verdicts.values()), names)]
    for chapter, rows in found:
        if rows:
            link = f"<a href='../specification/{chapter.name}.html'>{escape(chapter.title)}</a>"
            lines.append(_line(link, rows, names))
    return (
        "<div class='shares-box'><table class='shares'><thead><tr><th scope='col'>chapter</th>"
        f"{heads}</tr></thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table></div>"
    )


def _line(title: str, rows: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    shares = [grid.share(row[column] for row in rows) for column in range(len(names))]
    cells = "".join(
        f"<td style='--share: {each.part:.3f}' title='{each.kept} of {each.judged} on {escape(name)}'>"
        f"{each.percent}</td>"
        for each, name in zip(shares, names, strict=True)
    )
    return f"<tr><th scope='row'>{title}</th>{cells}</tr>"
