"""The guides to migrate are read whole, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.guide import blocks

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"
GUIDES = {path.stem: path.read_text() for path in FOLDER.glob("migrate-*.md")}
LINKS = sorted({link for text in GUIDES.values() for link in re.findall(r"\]\(([^)#:]+)[)#]", text)})


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_read_whole(name: str) -> None:
    found = blocks(GUIDES[name])
    assert GUIDES[name].count("```sh\n") == len(found)
    assert GUIDES[name].count("```text\n") == sum(block.shown is not None for block in found)


@pytest.mark.parametrize("link", LINKS)
def test_a_link_of_a_guide_leads_somewhere(link: str) -> None:
    generator = FOLDER.parent / "generators" / Path(link).with_suffix(".py").name
    assert (generator if "/generated/" in link else FOLDER / link).is_file()
