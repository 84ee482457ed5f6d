"""What a person reads is plain technical English: .ci/prose.py finds words that .ci/prose.toml bans, with a term to write."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    """Return `.ci/prose.py`."""
    spec = importlib.util.spec_from_file_location("prose", ROOT / ".ci" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_a_phrase_is_reported_with_its_place_and_the_term_to_write(prose: ModuleType) -> None:
    text = prose.Text(
        "guide.md", 7, "Run it.\nThe client is Told so, `told` is code, and https://told.example is an address.\n"
    )
    (found,) = prose.found([text])
    assert str(found).startswith("guide.md:8: 'Told': write reported, logged, ")


def test_every_text_that_is_kept_is_there(prose: ModuleType) -> None:
    code = "".join(path.read_text() for package in prose.PACKAGES for path in (ROOT / package).rglob("*.py"))
    assert [row["text"] for row in prose._vocabulary()["kept"] if row["text"] not in code] == []
