"""Failed examples are kept in a folder, and later runs try them first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from kvref_conformance.stateful.run import example_settings, run_examples, run_machine


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


@pytest.mark.long
def test_a_failed_machine_is_kept_under_its_name(tmp_path: Path) -> None:
    runs: list[list[int]] = []

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.numbers: list[int] = []
            runs.append(self.numbers)

        @rule(number=st.integers(0, 9))
        def take(self, number: int) -> None:
            self.numbers.append(number)
            assert self.numbers.count(9) < 2

    for seed in (1, 2):
        runs.clear()
        with pytest.raises(AssertionError):
            run_machine(type("some-case", (Machine,), {}), example_settings(100, tmp_path), seed)
        assert runs[-1] == [9, 9]
        assert (runs[0] == [9, 9]) == (seed == 2)
