"""The place at which a reply first differs from those that are allowed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kvref_conformance.template import CAUGHT, HOLE

if TYPE_CHECKING:
    from collections.abc import Iterable


def first_difference(got: str, allowed: Iterable[str]) -> int:
    """Return the index of the first byte of a reply that no allowed reply has there.

    Args:
        got: the reply, one character a byte.
        allowed: allowed replies, with the holes of `template.py`.

    Returns:
        0 to the length of the reply, which means that the reply ends too early.
    """
    return max((_agreeing(got, each) for each in allowed), default=0)


def _agreeing(got: str, allowed: str) -> int:
    """Return the length of the beginning that a reply has in common with an allowed one."""
    position = end = 0
    for hole in [*HOLE.finditer(allowed), None]:
        literal = allowed[end : hole.start() if hole else None]
        common = _common(got[position:], literal)
        position += common
        if common < len(literal) or hole is None:
            break
        caught = re.compile(CAUGHT.get(hole[0], r"(\d+)")).match(got, position)
        if caught is None:
            break
        position, end = caught.end(), hole.end()
    return position


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
