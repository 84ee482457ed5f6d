"""What a person reads is plain technical English: .ci/prose.py finds words that .ci/prose.toml bans, with a term to write."""

from __future__ import annotations

import importlib.util
import json
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


def test_code_blocks_of_documents_are_skipped(
    prose: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "PAGE.md").write_text("told\n```sh\ntold\n```\n  ```\n  told\n  ```\nheld\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert [(each.line, each.words) for each in prose.found(prose.documents())] == [(1, "told"), (8, "held")]


def test_text_cells_of_notebooks_are_read(prose: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "The rates beside ours"]},
        {"cell_type": "code", "source": ["told = 1"]},
    ]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "01.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert [(each.where, each.words) for each in prose.found(prose.documents())] == [("notebooks/01.ipynb", "beside")]


def test_texts_of_toml_files_that_pages_show_are_read(
    prose: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kvref").mkdir()
    (tmp_path / "kvref" / "facts.toml").write_text(
        '[fact]\nmeans = "the client is told"\ncode = "told"\n[[row]]\nreason = ["it is held"]\n'
    )
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert [(each.where, each.words) for each in prose.found(prose.tables())] == [
        ("kvref/facts.toml", "told"),
        ("kvref/facts.toml", "held"),
    ]


def test_docstrings_and_comments_are_counted_apart_from_texts(
    prose: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kvref").mkdir()
    (tmp_path / "kvref" / "module.py").write_text(
        '"""It is told."""\nLIMIT = 1  # it is held\n"""Who is asked."""\nERROR = "the client is told so"\n'
    )
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert sorted(each.words for each in prose.found(prose.internal())) == ["asked", "held", "told"]
    (shown,) = (each for each in prose.found(prose.visible()) if each.where == "kvref/module.py")
    assert (shown.line, shown.words) == (4, "told")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("    asked: the verb. held: what was told.", ["told"]),
        ('    asks("get held", on="told"),   # waits, as it is held', ["held"]),
        ("Who asked: it is told.", ["asked", "told"]),
        ("Who asked, is told (see `held`).", ["asked", "told"]),
    ],
)
def test_code_in_docstrings_is_skipped(prose: ModuleType, line: str, words: list[str]) -> None:
    found = prose.found([prose.Text("module.py", 1, prose._without_code(line))])
    assert sorted(each.words for each in found) == words


def test_every_text_that_is_kept_is_there(prose: ModuleType) -> None:
    code = "".join(path.read_text() for package in prose.PACKAGES for path in (ROOT / package).rglob("*.py"))
    assert [row["text"] for row in prose._vocabulary()["kept"] if row["text"] not in code] == []


def test_words_of_names_are_read(prose: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kvref").mkdir()
    code = "class ToldLater:\n    def ask(self, asked_for: int) -> None:\n        self.looked_up = untold = 1\n        _look_up(untold)\n"
    (tmp_path / "kvref" / "said.py").write_text(code)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    found = {(each.line, each.words, each.text) for each in prose.found_in_names()}
    assert found == {(1, "said", "said"), (1, "told", "told later"), (2, "asked", "asked for"), (3, "untold", "untold")}
