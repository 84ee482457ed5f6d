"""Small helps for drawing at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

T = TypeVar("T")


def chance(rnd: Random, probability: float) -> bool:
    """Return True with a probability from 0 to 1."""
    return rnd.random() < probability


def weighted(rnd: Random, weights: Mapping[T, float]) -> T:
    """Return one of the keys, by their weights."""
    return rnd.choices(list(weights), list(weights.values()))[0]


def some(rnd: Random, pool: Sequence[T], most: int) -> list[T]:
    """Return one to `most` different members of a pool that is not empty."""
    return rnd.sample(pool, rnd.randint(1, min(most, len(pool))))
