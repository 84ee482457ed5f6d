"""The intervals, never the medians, decide whether a hypothesis holds, fails or cannot be decided."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from kvref_bench import scenario
from support import hypotheses
from support.hypotheses import CANNOT_TELL, FAILS, HOLDS, Finding, Hypothesis, judge

if TYPE_CHECKING:
    from pathlib import Path

CLAIM = Hypothesis("H1", "twice as fast", "an article", "none", lambda _: [], least=2.0)


def found(low: float, high: float, server: str = "a") -> Finding:
    """Make a figure with its interval; NaN for none."""
    return Finding(server, 3.0, low, high, "2 repetitions, 5 are needed" if math.isnan(low) else "")


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([found(2.1, 4.0), found(2.0, 9.0)], HOLDS),
        ([found(2.1, 4.0), found(1.2, 1.9)], FAILS),
        ([found(2.1, 4.0), found(1.9, 3.1)], CANNOT_TELL),
        ([found(2.1, 4.0), found(math.nan, math.nan)], CANNOT_TELL),
        ([found(2.1, math.inf)], HOLDS),  # the client was at its limit: at least this
        ([found(0.0, 1.9)], FAILS),
    ],
)
def test_the_intervals_decide(findings: list[Finding], verdict: str) -> None:
    (judged,) = judge(CLAIM, findings)
    assert judged.verdict == verdict


def test_each_server_has_its_own_verdict_and_the_reason_of_what_is_missing() -> None:
    judged = judge(CLAIM, [found(2.1, 4.0), found(math.nan, math.nan, "b"), Finding("", 1.0, 1.0, 1.0, "no run")])
    assert [(each.server, each.verdict) for each in judged] == [("a", HOLDS), ("b", CANNOT_TELL)]
    assert judged[1].why == "2 repetitions, 5 are needed"


def test_hypotheses_are_numbered_and_each_names_a_scenario_there_is() -> None:
    assert [each.name for each in hypotheses.HYPOTHESES] == [f"H{n}" for n in range(1, len(hypotheses.HYPOTHESES) + 1)]
    assert {each.scenario for each in hypotheses.HYPOTHESES} <= set(scenario.names())


def test_without_runs_there_is_no_verdict_and_the_answer_says_so(tmp_path: Path) -> None:
    verdicts = hypotheses.test(hypotheses.HYPOTHESES, tmp_path)
    assert verdicts == []
    assert "there are no runs" in hypotheses.conclude({}, verdicts).sentence
