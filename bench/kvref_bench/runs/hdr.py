"""Histograms of a run as HdrHistograms, with three digits, in a given unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from hdrh.histogram import HdrHistogram

from kvref_bench.load.histogram import LONGEST, middle

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

DIGITS: Final = 3
NS: Final = 1
US: Final = 1000


def bins(rows: pd.DataFrame) -> dict[int, int]:
    """Sum rows of `hist`: counts by bin."""
    summed = rows.groupby("bin_index")["count"].sum()
    return {int(each): int(count) for each, count in zip(summed.index, summed, strict=True)}


def histogram(counts: Mapping[int, int], unit: int = NS) -> Any:
    """Return an HdrHistogram of counts by bin; each bin is represented by its middle.

    unit: of the recorded values, ns.
    """
    made = HdrHistogram(1, LONGEST // unit, DIGITS)
    durations = middle(np.array(list(counts), dtype=np.int64))
    for duration, count in zip(durations.tolist(), counts.values(), strict=True):
        made.record_value(max(duration // unit, 1), count)
    return made


def encoded(made: Any) -> str:
    """Return an HdrHistogram in its V2 format, compressed, in base64."""
    return bytes(made.encode()).decode("ascii")
