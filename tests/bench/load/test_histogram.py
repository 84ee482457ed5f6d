"""Durations fall into bins that keep them to 0.8 %."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvref_bench.load import histogram

durations = st.integers(0, histogram.LONGEST)


@given(durations)
def test_a_bin_knows_its_durations_to_one_part_in_128(nanoseconds: int) -> None:
    place = np.array([histogram.index(nanoseconds)])
    shortest, longest = int(histogram.lowest(place)[0]), int(histogram.lowest(place + 1)[0]) - 1
    assert shortest <= nanoseconds <= longest
    assert longest - shortest <= shortest / 128
    assert shortest <= int(histogram.middle(place)[0]) <= longest


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.99, 1.0]))
def test_a_quantile_is_the_duration_of_that_rank(nanoseconds: list[int], share: float) -> None:
    counts: dict[int, int] = {}
    for each in nanoseconds:
        counts[histogram.index(each)] = counts.get(histogram.index(each), 0) + 1
    exact = sorted(nanoseconds)[max(int(np.ceil(share * len(nanoseconds))) - 1, 0)]
    assert histogram.index(histogram.quantile(counts, share)) == histogram.index(exact)
