"""The page: opened in a browser, complete, and in need of nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import browser

from kvref.specification import requirements
from kvref_conformance.spec import page
from kvref_conformance.spec.entry import Section, sections

pytestmark = pytest.mark.nightly

BIND = {each.id: each for each in requirements.load().values() if each.chapter in {"bind", "expiry"}}


@pytest.fixture(scope="module")
def some() -> tuple[Section, ...]:
    return sections(BIND)


def opened(chromium: str, text: str, folder: Path) -> str:
    """Return the document as the browser has it after the script ran."""
    path = folder / "spec.html"
    path.write_text(text, encoding="utf-8")
    return browser.opened(chromium, path, folder)


def test_the_page_opens_in_a_browser(chromium: str, some: tuple[Section, ...], tmp_path: Path) -> None:
    document = opened(chromium, page.html(some), tmp_path)
    assert f">{len(BIND)} of {len(BIND)} requirements</output>" in document
    assert set(re.findall(r'<article class="entry" id="(KV-[^"]+)"', document)) == BIND.keys()
    assert r"bind m1\r\n" in document
    assert "What contradicts the texts" in document
    assert document.count(" hidden=") == 0


def test_the_page_needs_nothing_else(some: tuple[Section, ...]) -> None:
    text = page.html(some)
    assert not re.findall(r"""(?:src|href)=["'](?!#)|url\(|@import|https?://""", text)
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets <= set(re.findall(r' id="([^"]+)"', text))


def test_every_requirement_of_the_catalogue_is_on_the_whole_page() -> None:
    text = page.html(sections(requirements.load()))
    assert set(re.findall(r'<article class="entry" id="([^"]+)"', text)) == requirements.load().keys()
    for profile in ("kvref", "mysql-8.0", "mysql-5.6", "memcached"):
        assert f'<th scope="row">{profile}</th>' in text
