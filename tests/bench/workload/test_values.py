"""Values: the same for each call with a key, and of the configured sizes."""

from __future__ import annotations

import numpy as np
import pytest

from kvref_bench.load.work import Values
from kvref_bench.workload.values import longest, value

NAMES = [b"key%d" % number for number in range(20_000)]


def sizes(values: Values) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([len(value(values, name)) for name in NAMES])


@pytest.mark.parametrize("size", [0, 1, 8, 16, 17, 100, 70_000])
def test_fixed_sizes(size: int) -> None:
    made = [value(Values((size, size)), name) for name in NAMES[:50]]
    assert {len(each) for each in made} == {size}
    assert all(each.isascii() and (not each or each.isalnum()) for each in made)
    if size >= 8:
        assert len(set(made)) == 50


def test_a_value_is_that_of_its_key() -> None:
    values = Values((30, 200))
    assert [value(values, name) for name in NAMES[:99]] == [value(values, name) for name in NAMES[:99]]
    assert value(Values((20, 20)), b"a") == b"29e562464e46497empYB"


def test_a_range_is_drawn_evenly() -> None:
    counts = np.bincount(sizes(Values((10, 19))))[10:]
    assert len(counts) == 10
    assert np.all(np.abs(counts - 2000) < 5 * np.sqrt(2000))
    assert longest(Values((10, 19))) == 19


def test_etc_has_the_sizes_of_facebooks_pool() -> None:
    """The table of small sizes and the generalized Pareto distribution of mutilate's fb_value."""
    found = sizes(Values(None, limit=100_000))
    for size, share in ((2, 0.17820), (3, 0.09239), (11, 0.08989)):
        assert abs((found == size).mean() - share) < 0.01
    assert abs((found < 15).mean() - 0.44155) < 0.012
    # 15 + 214.476 * (2 ** 0.348238 - 1) / 0.348238 is the median of the larger ones.
    assert abs(np.median(found[found >= 15]) - 183) < 6
    assert found.max() > 3_000


def test_etc_keeps_its_limit() -> None:
    found = sizes(Values(None, limit=500))
    assert found.max() == 500 == longest(Values(None, limit=500))


def test_numbers_can_be_counted() -> None:
    made = [value(Values((1, 30), form="number"), name) for name in NAMES[:1000]]
    assert all(each.isdigit() and str(int(each)).encode() == each and int(each) < 10**18 for each in made)
    assert len(set(made)) > 900
