"""Blocks of commands and programs on pages of the documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
BLOCK: Final = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>[^\n]+?) -->\n\n?)?^ *```(?P<kind>\w+)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
# The reason for all blocks of a page.
WHOLE: Final = re.compile(r"^<!-- commands of this page are not run: (.+) -->$", re.MULTILINE)
RUNNABLE: Final = frozenset({"sh", "python", "pycon"})
# Pages whose blocks a test runs.
RUN: Final = {
    "README.md": "tests/client/test_readme.py",
    "docs/how-to/use-from-python.md": "tests/client/test_readme.py",
    "docs/how-to/migrate-from-the-plugin.md": "tests/doctor/test_migration.py",
    "docs/how-to/migrate-to-a-newer-mysql.md": "tests/doctor/test_migration.py",
    "docs/reference/api/client.md": "tests/client/test_readme.py",
    "docs/reference/api/client-asyncio.md": "tests/client/test_readme.py",
    "docs/reference/api/client-asyncio-views.md": "tests/client/test_readme.py",
    "docs/reference/api/client-views.md": "tests/client/test_readme.py",
    "docs/how-to/back-up.md": "tests/doctor/test_backup.py",
    "docs/how-to/migrate-a-hosted-database.md": "tests/doctor/test_hosted.py",
    "docs/how-to/migrate-while-clients-write.md": "tests/doctor/test_migration_while_clients_write.py",
    "docs/tutorial/index.md": "tests/documentation/test_blocks.py",
    "docs/how-to/django.md": "tests/documentation/test_journeys.py",
    "docs/how-to/flask.md": "tests/documentation/test_journeys.py",
    "docs/how-to/operate.md": "tests/documentation/test_journeys.py",
    "docs/how-to/read-notebooks.md": "tests/documentation/test_journeys.py",
    "docs/how-to/read-the-specification.md": "tests/documentation/test_blocks.py",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A block.

    Args:
        kind: its language.
        text: without the fences.
        reason: why it is not run; empty where it is.
        shown: the output that follows it, None without one.
    """

    kind: str
    text: str
    reason: str
    shown: str | None


def written_pages() -> dict[str, str]:
    """Return the text of every page that is not generated, by path."""
    made = {"commands", "specification", "differences", "deviations", "generated", "notebooks"}
    pages = [page for page in sorted(DOCS.rglob("*.md")) if not made & set(page.relative_to(DOCS).parts)]
    return {
        page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *pages]
    }


def blocks(text: str) -> list[Block]:
    """Return the runnable blocks of a page in their order."""
    found = list(BLOCK.finditer(text))
    made = []
    for place, block in enumerate(found):
        if block["kind"] in RUNNABLE:
            after = found[place + 1] if place + 1 < len(found) else None
            follows = after is not None and after["kind"] == "text" and not text[block.end() : after.start()].strip()
            made.append(
                Block(block["kind"], block["text"], block["reason"] or "", after["text"] if after and follows else None)
            )
    return made
