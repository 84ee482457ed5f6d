"""How SQLite compares the keys of one column, for rows outside its file: pending ones, and those in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import eq, ge, gt, le, lt
from typing import Any, Final

from kvref import collations
from kvref.engine.operations import Cell

_SIGNS: Final[dict[str, Callable[[int, int], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq}
# SQLite's order of storage classes: NULL, numbers, text, BLOB.
_CLASSES: Final[dict[type, int]] = {type(None): 0, int: 1, float: 1, str: 2, bytes: 3}


class KeyOrder:
    """The order of a key column, by the name of its collation in SQLite; empty for BINARY."""

    def __init__(self, collation: str) -> None:
        known = collations.COLLATIONS.get(collation.lower())
        builtin = {"nocase": _lowered, "rtrim": _trimmed}.get(collation.lower(), str)
        order = None if known is None else collations.order(known)
        self._fold: Callable[[str], str] = builtin if order is None else order.folded
        self._compare: Callable[[str, str], int] | None = None if order is None else order.compare

    def identity(self, key: Cell) -> Hashable:
        return self._fold(key) if isinstance(key, str) else key

    def compare(self, one: Cell, other: Cell) -> int:
        left, right = _CLASSES[type(one)], _CLASSES[type(other)]
        if left != right:
            return -1 if left < right else 1
        if isinstance(one, str) and isinstance(other, str):
            if self._compare is not None:
                return self._compare(one, other)
            # SQLite compares the bytes, which have the order of the code points.
            one, other = self._fold(one), self._fold(other)
        if one == other:
            return 0
        ends: tuple[Any, Any] = one, other
        return 1 if ends[0] > ends[1] else -1

    def within(self, key: Cell, bounds: list[tuple[str, Cell]]) -> bool:
        """Return whether a key lies within bounds, comparisons in SQL's signs."""
        return all(_SIGNS[sign](self.compare(key, bound), 0) for sign, bound in bounds)


def _lowered(text: str) -> str:
    return text.translate(_LOWER)


def _trimmed(text: str) -> str:
    return text.rstrip(" ")


# NOCASE folds ASCII only.
_LOWER: Final = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}
