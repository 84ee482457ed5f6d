"""Check the links of a built site within itself: `python docs/check_links.py FOLDER`. Exit code 1: a target is missing.

Sphinx checks its own references; this also checks links in HTML that pages contain as it is.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

# Targets that a script of the page makes.
MADE_BY_SCRIPTS: Final = ("search.html",)


class _Page(HTMLParser):
    """The targets and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.ids.add(value)
            elif value and name in {"href", "src"}:
                self.links.append(value)


@cache
def _read(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def dead_links(folder: Path) -> list[str]:
    """Return `PAGE: LINK` for each link within a site whose file or anchor is missing."""
    whole = folder.resolve()
    pages = [path for path in sorted(whole.rglob("*.html")) if path.name not in MADE_BY_SCRIPTS]
    return [
        f"{path.relative_to(whole)}: {link}"
        for path in pages
        for link in _read(path).links
        if not _reaches(whole, path, link)
    ]


def _reaches(folder: Path, page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target = target / "index.html"
    if not target.exists() or folder not in target.parents:
        return False
    if not parts.fragment or target.suffix != ".html" or target.name in MADE_BY_SCRIPTS:
        return True
    return unquote(parts.fragment) in _read(target).ids


def main(words: list[str]) -> int:
    """Print the dead links of a site and return the exit code."""
    dead = dead_links(Path(words[0]))
    for line in dead:
        sys.stdout.write(f"{line}: no such target\n")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
