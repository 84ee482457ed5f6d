"""Capacity by hand: the crossing of the first limit between two points, and nothing beyond what was measured."""

from __future__ import annotations

import pytest

from support.capacity import Capacity, Limits, Measured, capacity

LIMITS = Limits(p99=10e6, cpu=0.7)


def test_latency_ends_it_between_two_points() -> None:
    # p99 reaches 10 ms at (10 - 4) / (16 - 4) = half of the way from 8 to 16 sessions; the rate there is 900.
    found = capacity([Measured(8, 800, 4e6, 0.2), Measured(16, 1000, 16e6, 0.3), Measured(4, 500, 2e6, 0.1)], LIMITS)
    assert found == Capacity(12, 900.0, 900.0, at_least=False, reason="p99 is 16 ms with 16 sessions")


def test_cpu_ends_it_before_latency() -> None:
    # CPU reaches 70 % at a quarter of the way, p99 only at half of it.
    found = capacity([Measured(8, 800, 4e6, 0.6), Measured(16, 1000, 16e6, 1.0)], LIMITS)
    assert (found.sessions, found.rate) == (10, 850.0)


def test_a_part_of_a_session_is_none() -> None:
    # 10 ms at 3 / 7 of the way from 1 to 2 sessions.
    found = capacity([Measured(1, 100, 7e6, None), Measured(2, 150, 14e6, None)], LIMITS)
    assert (found.sessions, found.rate) == (1, 100.0)


def test_nothing_larger_was_measured() -> None:
    found = capacity([Measured(1, 100, 1e6, 0.1), Measured(64, 4000, 9e6, 0.69)], LIMITS)
    assert (found.sessions, found.rate, found.at_least) == (64, 4000, True)
    assert "the most that was measured" in found.reason
    assert "CPU was not measured" in capacity([Measured(1, 100, 1e6, None)], LIMITS).reason


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "no valid point was measured"),
        ([Measured(8, 100, None, 0.1)], "no valid point was measured"),
        ([Measured(8, 100, 11e6, 0.1)], "p99 is 11 ms already with 8 sessions, the fewest measured"),
        ([Measured(1, 100, 1e6, 0.8)], "CPU is 80 % already with 1 session, the fewest measured"),
    ],
)  # fmt: skip
def test_it_cannot_be_told(points: list[Measured], reason: str) -> None:
    found = capacity(points, LIMITS)
    assert not found.known
    assert found.reason == reason
    assert found.machines(1000) is None


def test_machines_carry_the_target_with_one_of_them_gone() -> None:
    # More sessions are slower here: what a machine carries is its highest rate within the limits.
    found = capacity([Measured(8, 1000, 1e6, 0.5), Measured(64, 900, 5e6, 0.5)], LIMITS)
    assert (found.sessions, found.rate, found.highest) == (64, 900, 1000)
    assert found.machines(2000) == 3
    assert found.machines(2001) == 4
    assert found.machines(1) == 2
