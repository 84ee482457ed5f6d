"""What the compiled build is made of. The build itself and the suite on it are `.ci/nightly compiled`."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from supply.identity import compared
from supply.locked import CI, ROOT

from kvref import __version__
from kvref.cli import main


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


def test_a_module_that_is_gone_is_reported(recipe: ModuleType) -> None:
    for gone in ("kvref/protocol/gone.py", "!kvref/protocol/gone.py"):
        with pytest.raises(ValueError, match=r"gone\.py: correct \.ci/compiled\.txt"):
            recipe.modules(["kvref/protocol/*.py", gone])


def test_wheels_are_built_for_the_pythons_that_kvref_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [
        each.rpartition(" :: ")[2]
        for each in project["classifiers"]
        if each.startswith("Programming Language :: Python :: 3.")
    ]
    built = tomllib.loads((CI / "cibuildwheel.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{each.replace('.', '')}-*" for each in named]


def test_these_sources_do_not_say_that_they_are_compiled() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"kvref, version {__version__}\n"


WAITS = (ast.Await, ast.Yield, ast.YieldFrom)


def raises_again_after_a_wait(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of coroutines and generators at which an error is raised again after an await or a yield."""
    for each in ast.walk(tree):
        if isinstance(each, ast.AsyncWith):
            yield each.lineno
        elif isinstance(each, ast.Try):
            if any(isinstance(inner, WAITS) for part in each.finalbody for inner in ast.walk(part)):
                yield each.finalbody[0].lineno
            for handler in each.handlers:
                inside = list(ast.walk(handler))
                waits = [inner.lineno for inner in inside if isinstance(inner, WAITS)]
                bare = [inner.lineno for inner in inside if isinstance(inner, ast.Raise) and inner.exc is None]
                if waits and bare and min(waits) < max(bare):
                    yield handler.lineno


def test_no_compiled_module_raises_an_error_again_after_a_wait(recipe: ModuleType) -> None:
    files = recipe.modules(recipe.patterns(CI / "compiled.txt"))
    assert "kvref/server/executors/mysql/executor.py" in files
    found = [
        f"{file}:{line}" for file in files for line in raises_again_after_a_wait(ast.parse(Path(file).read_text()))
    ]
    assert not found


IDENTITIES = """
NOTHING: tuple[bytes, int | None] = b"", None
def is_nothing(kept: tuple[bytes, int | None] | None, names: list[str] | None, number: int) -> bool:
    if kept is None or names is not None:
        return kept == NOTHING
    return (kept is NOTHING and
            number is not 7)
"""


@pytest.mark.nightly  # mypy without a cache: 13 s of CPU; the compiled build is nightly too
def test_no_compiled_module_compares_what_is_copied_by_identity(recipe: ModuleType, tmp_path: Path) -> None:
    wrong = tmp_path / "identities.py"
    wrong.write_text(IDENTITIES)
    files = [*recipe.modules(recipe.patterns(CI / "compiled.txt")), str(wrong)]
    assert compared(files) == [f"{wrong}:6", f"{wrong}:7"]


def constants_of_floats(tree: ast.Module) -> list[int]:
    """Return the lines of constants that are tuples with a float."""
    return [
        each.lineno
        for each in tree.body
        if isinstance(each, ast.AnnAssign) and "Final" in ast.unparse(each.annotation)
        if isinstance(each.value, ast.Tuple)
        if any(isinstance(inner, ast.Constant) and isinstance(inner.value, float) for inner in ast.walk(each.value))
    ]


def test_no_constant_of_a_compiled_module_is_a_tuple_of_floats(recipe: ModuleType) -> None:
    assert constants_of_floats(
        ast.parse("A: Final = 1, 2\nB: Final = -1.5, 2\nC: Final[Any] = (2, (0.5,))\nD = 0.5")
    ) == [2, 3]
    files = recipe.modules(recipe.patterns(CI / "compiled.txt"))
    assert not [(file, lines) for file in files if (lines := constants_of_floats(ast.parse(Path(file).read_text())))]


# They end in another order than they begin.
COROUTINES = """
import asyncio
from collections.abc import Iterator
from typing import Final

FLOATS: Final = (1.0, 60.0)

def first() -> float:
    return FLOATS[0]

async def fail(who: int) -> None:
    await asyncio.sleep(0)
    raise ValueError(who)

async def by_name(who: int) -> None:
    try:
        await fail(who)
    except ValueError as error:
        await asyncio.sleep(0.01 * who)
        raise error

async def at_the_end(who: int) -> None:
    try:
        await fail(who)
    finally:
        await asyncio.sleep(0.01 * who)

def generator(who: int) -> Iterator[int]:
    try:
        raise ValueError(who)
    finally:
        yield who
"""
RUN = """
import asyncio, json, coroutines
async def errors(what):
    return [error.args[0] for error in await asyncio.gather(*map(what, (2, 1, 3)), return_exceptions=True)]
print(json.dumps([asyncio.run(errors(coroutines.by_name)), asyncio.run(errors(coroutines.at_the_end))]))
"""
RUN_FLOATS = """
import coroutines
try:
    print(coroutines.first())
except NameError as error:
    print(error)
"""
RUN_GENERATORS = """
import coroutines
begun = [coroutines.generator(who) for who in (2, 1, 3)]
print([next(each) for each in begun])
for each in begun:
    try:
        next(each)
    except ValueError as error:
        print(error)
"""


@pytest.mark.nightly
def test_mypyc_still_has_the_defects_that_are_avoided(tmp_path: Path) -> None:
    """The reason of the rules above; if an assertion fails, mypyc is fixed there, and the rule can go."""
    (tmp_path / "coroutines.py").write_text(COROUTINES)
    subprocess.run([Path(sys.executable).with_name("mypyc"), "coroutines.py"], cwd=tmp_path, check=True)
    assert list(tmp_path.glob("coroutines*.so"))
    done = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, check=True, capture_output=True)
    by_name, at_the_end = json.loads(done.stdout)
    assert by_name == [2, 1, 3]
    assert at_the_end != [2, 1, 3]
    done = subprocess.run([sys.executable, "-c", RUN_GENERATORS], cwd=tmp_path, check=False, capture_output=True)
    assert done.stdout.splitlines() != [b"[2, 1, 3]", b"2", b"1", b"3"]  # the process is killed by SIGSEGV
    done = subprocess.run([sys.executable, "-c", RUN_FLOATS], cwd=tmp_path, check=True, capture_output=True)
    assert done.stdout == b'value for final name "FLOATS" was not set\n'


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("async def f():\n    async with x:\n        pass\n", [2]),
        ("async def f():\n    try:\n        pass\n    finally:\n        await g()\n", [5]),
        ("async def f():\n    try:\n        pass\n    except E:\n        await g()\n        raise\n", [4]),
        ("async def f():\n    try:\n        pass\n    except E as e:\n        await g()\n        raise e\n", []),
        ("async def f():\n    try:\n        await g()\n    except E:\n        raise\n", []),
        ("def f():\n    try:\n        pass\n    finally:\n        yield\n", [5]),
        ("def f():\n    try:\n        pass\n    except E:\n        yield from g()\n        raise\n", [4]),
        ("def f():\n    try:\n        pass\n    except E:\n        if x:\n            raise\n        yield\n", []),
    ],
)
def test_such_a_place_is_found(text: str, lines: list[int]) -> None:
    assert list(raises_again_after_a_wait(ast.parse(text))) == lines
