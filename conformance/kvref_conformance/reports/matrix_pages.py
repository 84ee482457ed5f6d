"""The pages of the matrix: an index, and for each chapter one page or several, each of at most MAX_BYTES.

A page of a chapter has a line for each requirement, which opens to show the conversations of every case.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from kvref.specification.requirements import LEVELS
from kvref_conformance.judging.verdict import (
    ABOUT,
    CRASH,
    DEVIATES,
    DISABLED,
    FAILS,
    FLAKY,
    HANG,
    HOLDS,
    NON_STRICT,
    NOT_RUN,
    QUIRK,
    SUITE_ERROR,
    UNSUPPORTED,
    WORST,
)
from kvref_conformance.reports import pages
from kvref_conformance.reports.grid import ANSWERS, SAME, VERDICTS_DIFFER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvref.specification.requirements import Chapter
    from kvref_conformance.reports.grid import Row
    from kvref_conformance.reports.record import Record

INDEX: Final = "index.html"
MAX_BYTES: Final = 300_000
# A verdict has a sign too, not only a color.
SIGNS: Final = {
    HOLDS: "✓",
    QUIRK: "✓",
    NON_STRICT: "~",
    DEVIATES: "≠",
    FLAKY: "±",
    FAILS: "✗",
    HANG: "…",
    CRASH: "†",
    UNSUPPORTED: "·",
    DISABLED: "-",
    NOT_RUN: "?",
    SUITE_ERROR: "!",
}
PARTS: Final = (VERDICTS_DIFFER, ANSWERS, SAME)


def html(record: Record) -> dict[str, str]:
    """Return the pages by file name."""
    made: dict[str, str] = {}
    chapters: list[dict[str, Any]] = []
    for chapter, rows in record.grid.chapters():
        parts = list(_split(record, chapter, rows))
        names = [f"{chapter.name}{f'-{number}' if number > 1 else ''}.html" for number in range(1, len(parts) + 1)]
        made |= {
            name: _chapter(record, chapter, part, conversations=conversations)
            for name, (part, conversations) in zip(names, parts, strict=True)
        }
        chapters.append({"chapter": chapter, "rows": rows, "pages": names})
    words = record.grid.words()
    index = pages.render(
        "matrix/index.html.j2", grid=record.grid, words=words, signs=SIGNS, meaning=ABOUT, chapters=chapters
    )
    return {INDEX: index, **made}


def _split(record: Record, chapter: Chapter, rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], bool]]:
    """Yield requirements that fit on one page, and whether its conversations do."""
    if len(_chapter(record, chapter, rows).encode()) <= MAX_BYTES:
        yield rows, True
    elif len(rows) == 1:
        yield rows, False
    else:
        half = len(rows) // 2
        yield from _split(record, chapter, rows[:half])
        yield from _split(record, chapter, rows[half:])


def _chapter(record: Record, chapter: Chapter, rows: Sequence[Row], *, conversations: bool = True) -> str:
    found = {word for row in rows for word in row.verdicts.values()}
    levels = {row.requirement.level for row in rows}
    parts = {row.parts for row in rows}
    details = {**record.details(rows, conversations=conversations), "complete": conversations}
    # JSON is inside a script element, which "</script" would end.
    data = json.dumps(details, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return pages.render(
        "matrix/chapter.html.j2",
        grid=record.grid,
        chapter=chapter,
        rows=rows,
        words=[word for word in WORST if word in found],
        signs=SIGNS,
        meaning=ABOUT,
        levels=[level for level in LEVELS if level in levels],
        parts=[word for word in PARTS if word in parts],
        data=Markup(data),  # noqa: S704
        rows_script=pages.asset("matrix/rows.js"),
    )
