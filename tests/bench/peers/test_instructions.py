"""Events of processes, counted by perf: with an event of the kernel, which virtual machines have too."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.peers.instructions import Counter, available
from kvref_bench.peers.processes import Sampling

CLOCK = "task-clock"  # milliseconds on a processor
BUSY = "while True: pass"

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(not available(CLOCK), reason="perf is not installed, or may not count events of processes"),
]


@pytest.fixture
def started() -> Iterator[Callable[..., int]]:
    """Return what starts a program and returns its process number."""
    with ExitStack() as stack:

        def start(*argv: str) -> int:
            process = stack.enter_context(subprocess.Popen(argv))
            stack.callback(process.kill)
            return process.pid

        yield start


def test_events_of_a_busy_process_are_counted_apart_from_those_of_an_idle_one(started: Callable[..., int]) -> None:
    sampling = Sampling({"busy": started(sys.executable, "-c", BUSY), "idle": started("sleep", "60")}, events=CLOCK)
    with sampling:
        time.sleep(0.5)
    counted = sampling.counted()
    assert counted is not None
    assert counted["busy"] > 10 * counted["idle"]


def test_nothing_is_counted_without_an_event(started: Callable[..., int]) -> None:
    with Sampling({"idle": started("sleep", "60")}) as sampling:
        pass
    assert sampling.counted() is None


def test_a_process_that_does_not_exist_is_an_error() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    with pytest.raises(BenchError, match="perf counted nothing of server"):
        Counter({"server": [ended.pid]}, CLOCK).stop()


def test_an_unknown_event_is_not_available() -> None:
    assert shutil.which("perf")
    assert not available("kvref-no-event")
