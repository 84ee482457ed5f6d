"""Levels of conformance: parts of the specification to which an implementation can conform on its own.

Every chapter of requirements belongs to one level. An endpoint conforms to a level if it keeps the requirements of the
level and of those that it builds on.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from kvref.errors import SuiteError
from kvref.specification import requirements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMES: Final = ("core", "mapping", "columns", "configuration", "touch-meta", "policies", "binary", "batches")


@dataclass(frozen=True, slots=True)
class ConformanceLevel:
    """One level.

    Args:
        about: what it covers, in one sentence.
        builds_on: names of the levels that it needs directly.
        defined_by: those of its chapters without which it does not apply to an endpoint.
    """

    name: str
    title: str
    about: str
    builds_on: tuple[str, ...]
    defined_by: tuple[str, ...]
    chapters: tuple[str, ...]


@cache
def load() -> Mapping[str, ConformanceLevel]:
    """Return the levels by name, in the order of NAMES; raises as `parse`."""
    return parse(files(__package__).joinpath("conformance_levels.toml").read_text(encoding="utf-8"))


def parse(text: str) -> Mapping[str, ConformanceLevel]:
    """Return the levels of a TOML text. Raises SuiteError unless each chapter is in one of NAMES."""
    rows = tomllib.loads(text)
    if tuple(rows) != NAMES:
        raise SuiteError(f"conformance_levels.toml: the levels must be {', '.join(NAMES)} in this order")
    levels = {
        name: ConformanceLevel(
            name, row["title"], row["about"], *(tuple(row[key]) for key in ("builds_on", "defined_by", "chapters"))
        )
        for name, row in rows.items()
    }
    for name, level in levels.items():
        if unknown := set(level.builds_on) - set(NAMES[: NAMES.index(name)]):
            raise SuiteError(f"conformance_levels.toml: {name} builds on {', '.join(sorted(unknown))}, not before it")
    counts = Counter(chapter for level in levels.values() for chapter in level.chapters)
    once = dict.fromkeys(requirements.CHAPTERS, 1)
    if odd := {name for name, _ in counts.items() ^ once.items()}:
        raise SuiteError(f"conformance_levels.toml: {', '.join(sorted(odd))} must be in exactly one level")
    for name, level in levels.items():
        if not level.defined_by or not set(level.defined_by) <= set(level.chapters):
            raise SuiteError(f"conformance_levels.toml: {name}: `defined_by` must name chapters of the level")
    return levels


def closure(name: str) -> tuple[str, ...]:
    """Return a level and all levels that it builds on, in the order of NAMES."""
    levels = load()
    found = {name}
    for each in reversed(NAMES):
        if each in found:
            found.update(levels[each].builds_on)
    return tuple(each for each in NAMES if each in found)


@cache
def of_chapter(chapter: str) -> str:
    """Return the name of the level of a chapter of requirements."""
    return next(name for name, level in load().items() if chapter in level.chapters)


def of_requirements(identifiers: Iterable[str]) -> str:
    """Return the name of the level of a case: the last one in the order of NAMES among those of its requirements."""
    catalogue = requirements.load()
    return max((of_chapter(catalogue[each].chapter) for each in identifiers), key=NAMES.index)
