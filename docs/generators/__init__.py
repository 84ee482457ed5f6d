"""Generators of the site's reference pages: each reads the code or a committed record and returns Markdown pages.

`docs/conf.py` calls `write_all` before each build. Generated pages are not committed. Reading path: `markup.py`,
then one generator, such as `settings.py`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Each module has `pages() -> Mapping[str, str | bytes]`: content by path below docs/.
MODULES: Final = (
    "commands",
    "settings",
    "metrics",
    "verbs",
    "statistics",
    "facts",
    "specification",
    "differences",
    "deviations",
    "errors",
    "formats",
    "speed",
    "growth",
    "scale",
    "matrix",
    "notebooks",
    "versions",
)
# Folders that hold nothing but generated pages.
FOLDERS: Final = (
    "reference/commands",
    "reference/specification",
    "reference/differences",
    "reference/deviations",
    "reference/generated",
    "explanation/notebooks",
)


def write_all(docs: Path, modules: tuple[str, ...] = MODULES) -> None:
    """Write the generated pages, leave unchanged files alone, and delete pages that are no longer generated.

    Args:
        docs: the folder of the sources.
        modules: the generators to run; all of MODULES also delete what is stale.
    """
    made: dict[str, str | bytes] = {}
    for name in modules:
        made |= pages(name)
    for name, content in made.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    if modules == MODULES:
        _delete_stale(docs, made)


def pages(module: str) -> Mapping[str, str | bytes]:
    """Return the pages of one generator by path below docs/."""
    made: Mapping[str, str | bytes] = importlib.import_module(f"generators.{module}").pages()
    return made


def _delete_stale(docs: Path, made: Mapping[str, str | bytes]) -> None:
    for folder in FOLDERS:
        for path in (docs / folder).rglob("*"):
            if path.is_file() and path.relative_to(docs).as_posix() not in made:
                path.unlink()
