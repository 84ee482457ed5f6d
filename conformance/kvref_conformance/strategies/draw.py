"""Draws within a composite strategy. The first member of a pool is the simplest: examples shrink toward it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")
# Parts of a probability; hypothesis draws a whole number below 128 evenly.
PARTS: Final = 128


def chance(draw: DrawFn, probability: float) -> bool:
    """Return True with a probability from 0 to 1; False is simpler."""
    return draw(_PARTS) >= PARTS - max(1, round(probability * PARTS))


def pick(draw: DrawFn, pool: Sequence[T]) -> T:
    """Return a member of a pool."""
    return draw(st.sampled_from(pool))


def between(draw: DrawFn, low: int, high: int) -> int:
    """Return a whole number, both ends included."""
    return draw(st.integers(low, high))


def weighted(draw: DrawFn, weights: Mapping[T, float]) -> T:
    """Return one of the keys, by their weights."""
    key: T = draw(_spread(tuple(weights.items())))
    return key


def some(draw: DrawFn, pool: Sequence[T], most: int) -> list[T]:
    """Return one to `most` different members of a pool that is not empty."""
    places = st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=min(most, len(pool)), unique=True)
    return [pool[place] for place in draw(places)]


_PARTS: Final = st.integers(0, PARTS - 1)


@lru_cache(maxsize=1000)
def _spread(weights: tuple[tuple[T, float], ...]) -> SearchStrategy[T]:
    whole = sum(weight for _, weight in weights)
    return st.sampled_from([key for key, weight in weights for _ in range(max(1, round(weight / whole * PARTS)))])
