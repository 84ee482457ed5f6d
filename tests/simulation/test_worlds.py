"""Worlds of the simulation: the server keeps its promises in them, and a seed is a world."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from kvref.server import connection
from kvref_testbed.simulation.plan import Command, Conversation, Crash, Path, Plan, Writer, draw, from_json
from kvref_testbed.simulation.world import Outcome, simulation

SEEDS = range(300, 600)  # with every event that a world can have; `.ci/nightly` runs others


def run_all(plans: list[Plan]) -> list[Outcome]:
    with simulation() as machine:
        return [machine.run(each) for each in plans]


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return run_all([draw(seed) for seed in SEEDS])


def test_the_server_keeps_its_promises(outcomes: list[Outcome]) -> None:
    for seed, outcome in zip(SEEDS, outcomes, strict=True):
        wrong = outcome.wrong
        assert not wrong, "\n".join([f"python -m kvref_testbed.simulation --seed {seed} --events", *wrong])


def test_a_seed_is_the_same_world_each_time() -> None:
    plans = [draw(seed) for seed in range(60)]
    first, second = run_all(plans), run_all(plans[::-1])[::-1]
    assert [each.events for each in first] == [each.events for each in second]


def test_a_plan_in_a_file_is_the_same_world() -> None:
    plans = [draw(seed) for seed in range(200)]
    copies = [from_json(each.to_json()) for each in plans]
    assert copies == plans
    assert [each.events for each in run_all(plans[:20])] == [each.events for each in run_all(copies[:20])]


def test_worlds_have_what_the_simulation_is_for(outcomes: list[Outcome]) -> None:
    events = "\n".join(line for each in outcomes for line in each.events)
    for text in ("is reset by the client", "is closed by the client", "writing is paused", "sync 1 fails", "takes the write lock",
                 "another program writes", "bytes of the log survive", "killed while writing", "answer lost", "hangs", "-> b'ms k", "-> b'\\x80"):  # fmt: skip
        assert text in events, text
    assert 50 < sum(each.crashed for each in outcomes) < 250
    assert sum(each.answered for each in outcomes) > 1500
    assert not any(each.undecided for each in outcomes)


def test_a_failed_commit_frees_the_locks_of_the_batches_that_it_takes_back() -> None:
    talk = Conversation(0.0, Path(), (Command("set", "k0", "100"),))
    settings = {"daemon_memcached_w_batch_size": 5, "innodb_lock_wait_timeout": 1}
    (outcome,) = run_all([Plan(0, "sqlite", settings, 0.0, (talk, talk), syncs=((0.0, 0.01),), failed_commits=(0,))])
    replies = [line.split(" ", 1)[1] for line in outcome.events if "<-" in line][:2]
    lost = "SERVER_ERROR database or disk is full: 1 pending writes are lost"
    assert replies == [f"client 0 <- b'{lost}\\r\\n'", "client 1 <- b'STORED\\r\\n'"]


@pytest.mark.parametrize("verb", ["add", "set"])
def test_what_waits_behind_a_statement_that_hangs_is_answered_with_it(verb: str) -> None:
    def client(start: float, key: str) -> Conversation:
        return Conversation(start, Path(), (Command("get", key), Command(verb, key, "100", gap=0.5)))

    plan = Plan(
        0, "mysql", {"innodb_lock_wait_timeout": 1}, 0.0, (client(0.0, "k0"), client(0.1, "k1"), client(0.1, "k1")),
        statements=(0.1,), connections=6, together=2,
    )  # fmt: skip
    shown = set()
    with simulation() as machine:
        for number in range(8, 28):
            outcome = machine.run(replace(plan, failures=((number, "hangs for long"),)))
            assert not outcome.wrong, number
            shown |= {word for word in ("commit: no answer", "b'SERVER_ERROR no answer") if word in str(outcome.events)}
    assert len(shown) == 2


@pytest.mark.parametrize("verb", ["set", "incr", "append"])
def test_a_deadlock_of_a_server_that_hangs_then_is_answered_as_that(verb: str) -> None:
    first = Conversation(0.0, Path(), (Command("set", "k0", "100"), Command(verb, "k0", "5", gap=0.5)))
    plan = Plan(
        0, "mysql", {"innodb_lock_wait_timeout": 1}, 0.0, (first,), statements=(0.1,), connections=6, together=2
    )  # fmt: skip
    found = 0
    with simulation() as machine:
        for number in range(8, 24):
            outcome = machine.run(replace(plan, failures=((number, "deadlock"), (number + 1, "hangs for long"))))
            assert not outcome.wrong, (number, outcome.wrong)
            found += "deadlock" in str(outcome.events) and "hangs" in str(outcome.events)
    assert found


def test_writes_of_a_row_stay_in_their_order_when_a_group_of_them_fails() -> None:
    # More than a group takes in turn: what its first half leaves comes before its second half.
    writes = tuple(Command("set", "k0", str(100 + number), pipelined=number > 0) for number in range(70))
    plan = Plan(
        0, "mysql", {}, 0.0, (Conversation(0.0, Path(), writes),), statements=(0.01,), connections=6, together=64
    )  # fmt: skip
    with simulation() as machine:
        outcomes = [machine.run(replace(plan, failures=((number, "deadlock"),))) for number in range(8, 60, 3)]
    assert not [each.wrong for each in outcomes if each.wrong]
    assert sum("deadlock" in str(each.events) for each in outcomes) > 10


def test_a_get_is_answered_although_its_mapping_has_changed_while_a_write_before_it_waits() -> None:
    # Client 0 lets the server notice that another program has written, while the set of client 1 waits for it.
    first = Conversation(
        0.0008937, Path(0.0005193, 0.0000307, 200, 100, 0.002), (Command("get", "k1"), Command("get", "k1")), "quit"
    )
    commands = (
        Command("get", "k0", pipelined=True), Command("set", "k1", "600", 2, noreply=True, pipelined=True),
        Command("get", "k0 k1"), Command("get", "k0", gap=0.001604, pipelined=True),
        Command("get", "k1", pipelined=True, cuts=((0.68, 0.0005199), (0.958, 0.0022449))),
        Command("set", "k1", "1200"), Command("gets", "k0", pipelined=True, cuts=((0.4967, 0.0031398),)),
    )  # fmt: skip
    second = Conversation(0.0000098, Path(0.0013593, 0.0006451), commands)
    writers = (Writer(0.0001727, 0.0032316), Writer(0.0096724, 0.002155, "k1", "1900"))
    (outcome,) = run_all(
        [Plan(0, "sqlite", {}, 0.0, (first, second), syncs=((0.0003871, 0.0001506),), writers=writers)]
    )
    assert not outcome.wrong
    events = [line.split(" ", 1)[1] for line in outcome.events]
    assert events.index("another program writes k1") < events.index("client 1 -> b' k0\\r\\n'")


def test_a_get_does_not_wait_until_a_write_is_tried_again() -> None:
    one = Conversation(0.001, Path(), (Command("get", "k0"), Command("set", "k0", "100", gap=0.01)))
    other = Conversation(0.001, Path(), (Command("get", "k0"), Command("get", "k1", gap=0.011)))
    (outcome,) = run_all([Plan(0, "sqlite", {}, 0.0, (one, other), writers=(Writer(0.01, 0.05),))])
    times = {text: float(time) for time, text in (line.split(" ", 1) for line in outcome.events)}
    sent, shown = times["client 1 -> b'get k1\\r\\n'"], times["client 1 <- b'END\\r\\n'"]
    assert times["client 0 -> b'set k0 0 0 3\\r\\n100\\r\\n'"] < sent < times["client 0 <- b'STORED\\r\\n'"]
    assert shown - sent < 1  # milliseconds of simulated time; a write is tried again after 5


def test_a_batch_that_may_be_committed_because_it_was_idle_is_not_counted_with_the_next_one() -> None:
    first = tuple(Command("set", "k0", str(100 + number)) for number in range(3))
    writes = tuple(Command("set", "k1", str(200 + number), gap=1.44 * (not number)) for number in range(4))
    settings = {"daemon_memcached_w_batch_size": 5, "innodb_api_bk_commit_interval": 1}
    plan = Plan(
        0, "sqlite", settings, 0.0, (Conversation(0.0, Path(), first + writes),), syncs=((0.0, 0.5),), crash=Crash(2.05)
    )  # fmt: skip
    (outcome,) = run_all([plan])
    replies = [line.split(" ", 1)[1] for line in outcome.events if "<-" in line]
    assert replies[-2:] == ["client 0 <- b'END\\r\\n'"] * 2  # the machine crashes while the disk takes the first
    assert not outcome.wrong


def test_a_server_that_stops_does_nothing_more_after_a_crash() -> None:
    talk = Conversation(0.0, Path(), (Command("set", "k0", "100"),))
    plan = Plan(0, "mysql", {}, 0.0, (talk,), statements=(0.1,), connections=6, stop=0.05, crash=Crash(0.06))
    (outcome,) = run_all([plan])
    events = [line.split(" ", 1)[1] for line in outcome.events]
    began = events.index("the server stops")
    assert not outcome.wrong
    assert events[began + 1 : began + 3] == ["the machine crashes", "client 0 -> b'gets k0\\r\\n'"]
    assert sum("VALUE" in line for line in events) == 0


def test_the_server_has_its_own_clock_again_afterwards() -> None:
    with simulation():
        assert connection.time is not time
    assert connection.time is time


@pytest.mark.nightly
@pytest.mark.programs
def test_the_worlds_of_two_processes_are_those_of_one() -> None:
    with simulation() as machine:
        replies = sum(machine.run(draw(seed)).answered for seed in range(40))
    output = subprocess.run(
        [sys.executable, "-m", "kvref_testbed.simulation", "--worlds", "40", "--workers", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert output.stdout.startswith("40 worlds in ")
    assert output.stdout.rstrip().endswith(f"{replies} replies; 0 not decided; 0 failed")
