"""The versions of the documentation, from the headings of the changelog.

`.ci/docs` builds the site of a commit. The workflow `release` keeps the site of each release, and the workflow
`docs` publishes them all, each in a folder with the name of its version.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generators.markup import table

if TYPE_CHECKING:
    from collections.abc import Mapping

CHANGELOG: Final = Path(__file__).parents[2] / "CHANGELOG.md"
SITE: Final = "https://kvref.github.io/kvref"
REPOSITORY: Final = "https://github.com/kvref/kvref"
# The first release whose site is kept.
FIRST: Final = (0, 3, 0)


def pages() -> Mapping[str, str]:
    """Return the table, which `versions.md` includes: main, then the releases, the newest first."""
    rows = [("main", "", f"[pages]({SITE}/)")]
    for version, date in releases():
        kept = tuple(map(int, version.split("."))) >= FIRST
        place = (
            f"[pages]({SITE}/{version}/)" if kept else f"[files in the repository]({REPOSITORY}/tree/v{version}/docs)"
        )
        rows.append((version, date, place))
    return {"reference/generated/versions.txt": table(("version", "date", "documentation"), rows)}


def releases() -> list[tuple[str, str]]:
    """Return version and date of each release in the changelog, the newest first."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE)
