"""Values: the same for each call with a key, and of the configured sizes."""

from __future__ import annotations

import numpy as np
import pytest

from kvref_bench.load.work import Values
from kvref_bench.workload.values import value

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


@pytest.mark.parametrize("columns", [2, 3, 8])
def test_a_value_of_several_columns_has_a_part_for_each(columns: int) -> None:
    for name in NAMES[:50]:
        made = value(Values((100, 100), columns=columns), name)
        assert len(made) == 100
        parts = made.split(b"|")
        assert len(parts) == columns
        assert all(part.isalnum() for part in parts)
