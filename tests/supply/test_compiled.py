"""What the compiled build is made of. The build itself and the suite on it are steps of `.ci/run`: they take minutes."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from click.testing import CliRunner
from supply.locked import CI, ROOT

from kvref import __version__
from kvref.cli import main

pytestmark = pytest.mark.nightly


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return `.ci/compiled_setup.py`, in the folder whose files it finds."""
    spec = importlib.util.spec_from_file_location("compiled_setup", CI / "compiled_setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(ROOT)
    return module


def test_every_line_names_modules_and_the_last_one_counts(recipe: ModuleType) -> None:
    found = recipe.modules(recipe.patterns(CI / "compiled.txt"))
    assert {"kvref/protocol/text.py", "kvref/engine/dispatch.py", "kvref/server/connection.py"} <= set(found)
    assert not {"kvref/protocol/__init__.py", "kvref/engine/mapping.py", "kvref/storage/mysql/rows.py"} & set(found)


def test_a_module_that_is_gone_is_told(recipe: ModuleType) -> None:
    for gone in ("kvref/protocol/gone.py", "!kvref/protocol/gone.py"):
        with pytest.raises(ValueError, match=r"gone\.py: mend \.ci/compiled\.txt"):
            recipe.modules(["kvref/protocol/*.py", gone])


def test_these_sources_do_not_say_that_they_are_compiled() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"kvref, version {__version__}\n"
