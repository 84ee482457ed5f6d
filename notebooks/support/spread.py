"""Labels next to a chart, moved apart if they would overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float = 0.0, high: float = 1.0) -> list[float]:
    """Move ascending heights as little as needed so that labels at these heights do not overlap.

    sizes: height of each label. Adjacent labels that touch are centered on the mean of their original heights.
    """
    blocks: list[tuple[list[int], float]] = []  # members, middle of the block

    def inside(members: Sequence[int]) -> float:
        half = _half(members, sizes)
        return min(max(sum(wanted[each] for each in members) / len(members), low + half), high - half)

    for place in range(len(wanted)):
        members = [place]
        while blocks and blocks[-1][1] + _half(blocks[-1][0], sizes) > inside(members) - _half(members, sizes):
            members = blocks.pop()[0] + members
        blocks.append((members, inside(members)))
    heights = []
    for members, middle in blocks:
        edge = middle - _half(members, sizes)
        for each in members:
            heights.append(edge + sizes[each] / 2)
            edge += sizes[each]
    return heights


def _half(members: Sequence[int], sizes: Sequence[float]) -> float:
    return sum(sizes[each] for each in members) / 2
