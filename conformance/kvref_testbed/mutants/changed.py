"""The mutants that a change can touch: `python -m kvref_testbed.mutants.changed [BASE]` prints their names.

BASE is the revision to compare the working tree with. The default is the merge base with the upstream branch or
origin/main. On that branch itself, and without one, it is the first parent COMMITS commits back, or the oldest commit.

A mutant is chosen if its definition, the requirements or cases of its chapter, or a module whose attributes it replaces
has changed, or a module that imports such a module, as a plan does that decides what the mutant breaks in a verb.
A sample is always chosen. At most MAX_CHOSEN are, those that a change touches most directly first.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Final

from kvref.specification import requirements
from kvref_testbed.mutants import GROUPS, MUTANTS
from kvref_testbed.mutants.mutant import planted_code, put_fact

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from kvref_testbed.mutants import Mutant

ROOT: Final = Path(__file__).parents[3]
COMMITS: Final = 20
# Two trials each, of about a second on a core; with the unbroken server about two minutes on two cores.
MAX_CHOSEN: Final = 60
# The first of each group and some toy servers; the default tier runs some of them.
SAMPLE: Final = frozenset(next(iter(group)).name for group in GROUPS.values()) | {
    "flushes_nothing",
    "binds_nothing",
    "writes_nothing",
}


def chosen(changed: Collection[str]) -> list[str]:
    """Return the names of mutants that a change touches, at most MAX_CHOSEN, the most directly touched first.

    Args:
        changed: paths of the changed files, relative to ROOT.
    """
    ranks = {name: rank(each, frozenset(changed)) for name, each in MUTANTS.items()}
    touched = [name for name, (place, _) in ranks.items() if place < _UNTOUCHED]
    return sorted(touched, key=ranks.__getitem__)[:MAX_CHOSEN]


_UNTOUCHED: Final = 4


def rank(mutant: Mutant, changed: frozenset[str]) -> tuple[int, int]:
    """Return how directly a change touches a mutant.

    Args:
        mutant: of the table.
        changed: paths of the changed files, relative to ROOT.

    Returns:
        0 most to `_UNTOUCHED` not at all; and where a change of an importer decides, how many others import the module.
    """
    chapter = requirements.load()[mutant.requirement].chapter
    own = Path(inspect.getsourcefile(_function(mutant)) or "").relative_to(ROOT).as_posix()
    catalogue = "kvref/specification/requirements"
    patched = _patched(mutant)
    importers = [len(_importers(module)) for module in patched if changed & _importers(module)]
    found = (
        changed & {f"conformance/kvref_conformance/cases/{chapter}.toml", f"{catalogue}/{chapter}.toml", own},
        mutant.name in SAMPLE,
        changed & patched,
        importers,
    )
    place = next((place for place, touched in enumerate(found) if touched), _UNTOUCHED)
    return place, min(importers, default=0)


def files_changed(base: str | None = None) -> set[str]:
    """Return the files that differ between a revision and the working tree; empty without git or a revision.

    Args:
        base: the revision; None: see the top of this module.
    """
    base = base or _base()
    tracked = _git("diff", "--name-only", base) if base else []
    return {*tracked, *_git("ls-files", "--others", "--exclude-standard")}


def _base() -> str:
    head = _git("rev-parse", "HEAD")
    for branch in ("@{upstream}", "origin/main"):
        found = _git("merge-base", "HEAD", branch)
        if found and found != head:
            return found[0]
    first_parents = _git("rev-list", "--first-parent", f"--max-count={COMMITS + 1}", "HEAD")
    return first_parents[-1] if first_parents else ""


def _git(*words: str) -> list[str]:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.split() if done.returncode == 0 else []


def _function(mutant: Mutant) -> FunctionType:
    assert isinstance(mutant.patch, FunctionType)
    return mutant.patch


def _patched(mutant: Mutant) -> set[str]:
    """Return the files of the modules and classes that a mutant names, and of those that read a fact it changes."""
    function = _function(mutant)
    names = {name for code in (function.__code__, *planted_code(mutant)) for name in code.co_names}
    named = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = {
        each.__name__ if isinstance(each, ModuleType) else each.__module__
        for each in named
        if isinstance(each, ModuleType | type)
    }
    paths = {f"{name.replace('.', '/')}{end}" for name in modules for end in (".py", "/__init__.py")}
    texts = [const for const in function.__code__.co_consts if isinstance(const, str)]
    facts = texts if put_fact in named else []
    reading = {path for path, text in _sources().items() if any(f'"{fact}"' in text for fact in facts)}
    return (paths & _sources().keys()) | reading


@cache
def _sources() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (ROOT / "kvref").rglob("*.py")
    }


@cache
def _importers(module: str) -> frozenset[str]:
    """Return the files of the modules that import the module of a file, or a name of it."""
    name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return frozenset(path for path, imported in _imports().items() if name in imported)


@cache
def _imports() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path, text in _sources().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found.setdefault(path, set()).update(each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
                found.setdefault(path, set()).update(names)
    return found


def main(words: Sequence[str]) -> None:
    """Print the names of the mutants, one a line.

    Args:
        words: optionally the revision to compare with.
    """
    for name in chosen(files_changed(*words[:1])):
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
