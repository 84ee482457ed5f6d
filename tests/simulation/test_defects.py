"""Planted defects: the world that finds each first, and those that no world finds yet."""

from __future__ import annotations

import pytest

from kvref_testbed.mutants import MUTANTS
from kvref_testbed.mutants.mutant import Mutant, planted
from kvref_testbed.simulation.defects import DEFECTS
from kvref_testbed.simulation.plan import Plan, draw
from kvref_testbed.simulation.shrink import shrink
from kvref_testbed.simulation.world import simulation

# The first seed, from 0 on, whose world fails with the defect.
FOUND_BY = {
    "acknowledges_a_failed_commit": 63,
    "acknowledges_a_failed_sync": 8,
    "acknowledges_what_comes_during_a_sync": 8,
    "caches_over_a_newer_write": 370,
    "drops_commands_at_the_drain": 177,
    "ends_at_the_end_of_input": 3,
    "forgets_a_group_that_waits": 0,
    "loses_a_turn": 385,
    "reads_no_more_after_a_pause": 9,
    "replies_before_the_commit": 8,
    "replies_out_of_order": 9,
    "retries_once": 1,
    "rolls_back_at_a_disconnect": 15,
    "runs_commands_beside_one_that_waits": 1,
    "shows_what_is_not_durable": 1140,
    "stays_paused": 13,
    "stops_without_a_last_sync": 173,
    "syncs_nothing": 2,
    # Of `mutants.batches`.
    "begins_no_new_count": 6,
    "discards_acknowledged_writes": 15,
    "drops_the_batch_of_a_lost_connection": 50,
    "keeps_locks_after_the_end": 63,
    "locks_no_rows": 15,
    "takes_one_write_more": 115,
}
# Not found in the first 1500 worlds.
NOT_FOUND = {
    "caches_what_is_lost",
    "forgets_locks_at_a_deadlock",
    "keeps_what_another_program_has_changed",
    "never_commits_idle_batches",
    "wakes_nobody",
}


def test_each_defect_is_in_one_of_the_lists() -> None:
    assert DEFECTS.keys() <= FOUND_BY.keys() | NOT_FOUND
    assert not FOUND_BY.keys() & NOT_FOUND


def mutant(name: str) -> Mutant:
    return (DEFECTS | MUTANTS)[name]


def wrong(plan: Plan) -> list[str]:
    with simulation() as machine:
        return machine.run(plan).wrong


@pytest.mark.parametrize("name", FOUND_BY)
def test_a_defect_is_found(name: str) -> None:
    plan = draw(FOUND_BY[name])
    with planted(mutant(name)):
        assert wrong(plan)
    assert not wrong(plan)


def test_a_failing_plan_shrinks_to_a_few_commands_and_still_fails() -> None:
    with simulation() as machine, planted(mutant("forgets_a_group_that_waits")):
        smallest = shrink(draw(0), lambda plan: bool(machine.run(plan).wrong), tries=400)
        assert machine.run(smallest).wrong
    assert sum(len(each.commands) for each in smallest.conversations) <= 4
    assert not wrong(smallest)
