"""Which combinations of levels have met: pairs, triples."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kvref_conformance.coverage.configuration import Level

Combination = tuple["Level", ...]


def possible(
    parameters: Mapping[str, tuple[str, ...]], excluded: Collection[frozenset[Level]], size: int
) -> list[Combination]:
    """Return the combinations of so many levels, each of another parameter, that hold nothing excluded.

    Args:
        parameters: levels by name.
        excluded: levels that do not meet.
        size: 2 for pairs, 3 for triples.
    """
    levels = [[(name, level) for level in parameters[name]] for name in parameters]
    every = (combination for chosen in combinations(levels, size) for combination in product(*chosen))
    return [each for each in every if not _holds_one(each, excluded)]


def _holds_one(combination: Combination, excluded: Collection[frozenset[Level]]) -> bool:
    return any(frozenset(part) in excluded for size in (1, 2) for part in combinations(combination, size))


def met(rows: Iterable[Combination], size: int) -> set[Combination]:
    """Return the combinations of so many levels that stand in one row or more."""
    return {combination for row in rows for combination in combinations(row, size)}
