"""The case of a replay file, where --replay names one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvref_conformance.case import Case
    from kvref_conformance.running.run import Run
    from kvref_conformance.triage.replay_file import ReplayFile

CASES: tuple[Case, ...] = ()


def test_replay(replay: ReplayFile, run: Run) -> None:

    run.end_test(replace(run.judge.judge(replay.case, replay.chapter), script=replay.case))
