"""A failed example is kept in a folder, and a later run tries it first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from kvref_conformance.stateful.run import example_settings, run_examples


def test_a_failed_example_is_tried_first_by_a_later_run_of_the_same_case(tmp_path: Path) -> None:
    def first_tried(name: str, seed: int) -> int:
        tried: list[int] = []

        def test(number: int) -> None:
            tried.append(number)
            assert number < 1000

        with pytest.raises(AssertionError):
            run_examples(name, st.integers(0, 1 << 20), test, example_settings(100, tmp_path), seed)
        return tried[0]

    assert first_tried("one-case", 1) == 0
    assert first_tried("one-case", 2) == 1000
    assert first_tried("another-case", 2) == 0
