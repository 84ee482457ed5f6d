"""Latencies in bins: 128 for each power of two, so that a value is known to 0.8 %; merged by adding.

bins = [0] * BINS
bins[index(nanoseconds)] += 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

BITS: Final = 7
BINS: Final = 40 << BITS  # up to 2**46 ns, 19 hours: longer than a point lasts, so that sessions need not look
LONGEST: Final = (1 << 46) - 1


def index(nanoseconds: int) -> int:
    """Return the bin of a duration, 0 ns to 19 hours; what is longer counts as that."""
    value = min(max(nanoseconds, 0), LONGEST)
    shift = (value | 1 << BITS).bit_length() - BITS - 1
    return (shift << BITS) + (value >> shift)


def add(into: dict[int, int], counts: Mapping[int, int]) -> None:
    """Add counts by bin to others."""
    for place, count in counts.items():
        into[place] = into.get(place, 0) + count


def lowest(bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shortest duration of each bin, ns."""
    shift = np.maximum((bins >> BITS) - 1, 0)
    shortest: NDArray[np.int64] = (bins - (shift << BITS)) << shift
    return shortest


def middle(bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the duration in ns that represents all durations of a bin."""
    shift = np.maximum((bins >> BITS) - 1, 0)
    halfway: NDArray[np.int64] = lowest(bins) + ((np.int64(1) << shift) - 1) // 2
    return halfway


def quantile(counts: Mapping[int, int], share: float) -> int:
    """Return the duration, ns, that `share` of all did not exceed; 0 when there are none.

    counts: by bin. share: 0 to 1.
    """
    if not counts:
        return 0
    bins = np.array(sorted(counts), dtype=np.int64)
    reached = np.cumsum([counts[each] for each in bins.tolist()])
    place = int(np.searchsorted(reached, share * reached[-1], side="left"))
    return int(middle(bins[place : place + 1])[0])
