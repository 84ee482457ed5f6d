"""Servers and generator are kept apart, and who is not is found."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.peers import processes
from kvref_bench.turns import cpus


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.usefixtures("eight")
def test_numbers_and_ranges_are_read() -> None:
    where = cpus.split("0,2-4", "7")
    assert where == cpus.Split(frozenset({0, 2, 3, 4}), frozenset({7}))


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(
    ("servers", "clients", "words"),
    [
        ("0", "0-1", "processors 0 are in"),
        ("0", "8", "no processors 8 here: choose among 0, 1, 2"),
        ("one", "1", "--server-cpus 'one': write numbers"),
        ("0", "2-1", "--client-cpus '2-1': write numbers"),
    ],
)
def test_what_cannot_be_is_refused(servers: str, clients: str, words: str) -> None:
    with pytest.raises(BenchError, match=words):
        cpus.split(servers, clients)


def test_one_processor_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with pytest.raises(BenchError, match="pairs need two processors"):
        cpus.split("0", "1")


def test_a_thread_beyond_its_processors_is_found() -> None:
    there = sorted(os.sched_getaffinity(0))
    if len(there) < 2:
        pytest.skip("needs two processors")
    one = frozenset(there[:1])
    with cpus.on(one):
        assert os.sched_getaffinity(0) == one
    assert os.sched_getaffinity(0) == set(there)
    processes.check_processors([os.getpid()], frozenset(there))
    with pytest.raises(BenchError, match=f"beyond {there[0]}$"):
        processes.check_processors([os.getpid()], one)


def test_the_root_of_what_was_forked_is_the_process_that_was_started() -> None:
    forked = "import os, sys, time; child = os.fork(); child and print(child, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", forked], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert child != parent.pid
        assert processes.root(child) == processes.root(parent.pid) == parent.pid
        assert [process.pid for process in processes.tree([parent.pid])] == [parent.pid, child]
