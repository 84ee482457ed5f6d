"""Generated parts of a page, each between two comments."""

from __future__ import annotations

from kvref.errors import SuiteError


def between(page: str, marks: tuple[str, str], text: str) -> str:
    """Return a page with a text between two marks, instead of what was there.

    Args:
        page: the whole page.
        marks: two lines of it, with their line ends.
        text: ends in a line end.

    Raises:
        SuiteError: a mark is missing.
    """
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise SuiteError(f"the page has no lines {marks[0].strip()} and {marks[1].strip()}")
    return f"{before}{begin}\n{text}\n{end}{after}"
