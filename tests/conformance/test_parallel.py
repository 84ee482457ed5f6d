"""One run on several equal instances: the verdicts, counts and exit code of a run on one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from helpers.faulty import Kvref, judged

from kvref.errors import SuiteError
from kvref_conformance.errors import CannotJudge
from kvref_conformance.judging.budget import Budget
from kvref_conformance.judging.verdict import HOLDS, Tally, Verdict
from kvref_conformance.running.parallel import Instance, Parallel
from kvref_conformance.running.run import Run

CHAPTERS = ("KV-CAS-*", "KV-TOUCH-*", "KV-DELIM-*", "KV-BATCH-00*")


class Counts:
    """What `Exercised` is to `Parallel`."""

    def __init__(self) -> None:
        self.requests = 0

    def add(self, other: Counts) -> None:
        self.requests += other.requests


class FakeRun:
    """What `Run` is to `Parallel`."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.tally = Tally()
        self.judge = SimpleNamespace(exercised=Counts(), budget=Budget())
        self.watch: SimpleNamespace | None = None
        self.send: Callable[[Verdict], None] | None = None

    def count(self, record: Verdict) -> None:
        self.tally.verdicts.append(record)

    def put_back(self) -> None:
        self.tally.complaints.append(f"{self.where}: not put back")


def try_each(run: Run, batch: Sequence[Any]) -> None:
    """Judge each name of a batch; the process ends at `die`."""
    for name in batch:
        if name == "die" and run.send is not None:
            os._exit(3)
        run.judge.exercised.requests += 1
        record = Verdict(name, "chapter", (), HOLDS)
        (run.send or run.count)(record)


def parallel(start: Callable[[Instance], object]) -> tuple[FakeRun, Parallel]:
    run = FakeRun("first")
    instances = [Instance("second"), Instance("third")]
    return run, Parallel(cast("Run", run), instances, cast("Any", start), cast("Any", try_each))


def test_every_verdict_count_and_complaint_reaches_the_parent() -> None:
    run, started = parallel(lambda instance: FakeRun(instance.address))
    batches = [[f"case-{number}-{each}" for each in range(3)] for number in range(40)]
    started.judge(cast("Any", batches))
    assert sorted(each.case for each in run.tally.verdicts) == sorted(name for batch in batches for name in batch)
    assert run.judge.exercised.requests == 120
    assert sorted(run.tally.complaints) == ["second: not put back", "third: not put back"]


def test_an_instance_that_cannot_be_judged_is_a_complaint_and_the_others_do_its_work() -> None:
    def start(instance: Instance) -> object:
        if instance.address == "second":
            raise CannotJudge("no answer")
        return FakeRun(instance.address)

    run, started = parallel(start)
    started.judge(cast("Any", [["a"], ["b"], ["c"]]))
    assert sorted(each.case for each in run.tally.verdicts) == ["a", "b", "c"]
    assert "second: cannot judge: no answer" in run.tally.complaints


def test_a_process_that_dies_is_a_suite_error() -> None:
    def start(instance: Instance) -> object:
        os._exit(3)

    _, started = parallel(start)
    with pytest.raises(SuiteError, match="a judging process ended early"):
        started.judge(cast("Any", [["a"]]))


@pytest.mark.nightly
def test_a_run_on_two_instances_has_the_report_of_a_run_on_one(in_folder: Kvref, tmp_path: Path) -> None:
    only = [word for glob in CHAPTERS for word in ("--only", glob)]
    reports = []
    for jobs in ("1", "2"):
        done = in_folder(*only, "--jobs", jobs, "--level", "quirk")
        assert done.returncode == 0, done.stdout + done.stderr
        reports.append(
            [(case, line["chapter"], line["verdict"], line["reason"]) for case, line in judged(tmp_path).items()]
        )
    assert reports[0] == reports[1]
    assert len(reports[0]) > 40
