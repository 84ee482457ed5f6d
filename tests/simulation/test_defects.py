"""Planted defects, each with a world that finds it."""

from __future__ import annotations

import pytest

from kvref_testbed.mutants import MUTANTS
from kvref_testbed.mutants.mutant import Mutant, planted
from kvref_testbed.simulation.defects import DEFECTS
from kvref_testbed.simulation.plan import Command, Conversation, Path, Plan, Writer, draw
from kvref_testbed.simulation.shrink import shrink
from kvref_testbed.simulation.world import simulation

# A seed whose world fails with the defect, for what the defect does.
FOUND_BY = {
    "acknowledges_a_failed_commit": 110,
    "acknowledges_a_failed_sync": 135,
    "acknowledges_what_comes_during_a_sync": 72,
    "caches_over_a_newer_write": 233,
    "caches_what_is_lost": 1130,
    "drops_commands_at_the_drain": 1,
    "ends_at_the_end_of_input": 0,
    "forgets_a_group_that_waits": 12,
    "forgets_locks_at_a_deadlock": 312,
    "keeps_what_another_program_has_changed": 762,
    "loses_a_turn": 518,
    "reads_no_more_after_a_pause": 14,
    "replies_before_the_sync": 43,
    "replies_out_of_order": 14,
    "retries_never": 21,
    "runs_commands_beside_one_that_waits": 0,
    "shows_what_is_not_durable": 141,
    "stays_paused": 14,
    "stops_without_a_last_sync": 51,
    "syncs_nothing": 0,
    # Over a database server.
    "reports_the_first_deadlock": 881,
    "takes_a_failed_commit_for_done": 355,
    "tries_an_unknown_commit_again": 1260,
    # Of `mutants.batches`.
    "begins_no_new_count": 42,
    "discards_acknowledged_writes": 111,
    "drops_the_batch_of_a_lost_connection": 98,
    "keeps_locks_after_the_end": 32,
    "locks_no_rows": 211,
    "never_commits_idle_batches": 150,
    "takes_one_write_more": 534,
}


def world(writes: int, *conversations: Conversation, failed_commits: tuple[int, ...] = ()) -> Plan:
    """Return the plan of a world with batches of so many writes, whose gets are judged too."""
    settings = {"daemon_memcached_w_batch_size": writes, "innodb_api_trx_level": 0}
    return Plan(0, "sqlite", settings, 0.0, conversations, failed_commits=failed_commits)


def adds(start: float, key: str, gap: float = 0.0) -> Conversation:
    """Return what a client does that adds one row, after a get so many seconds before."""
    before = (Command("get", key),) if gap else ()
    return Conversation(start, Path(), (*before, Command("add", key, "100", gap=gap)))


# Worlds that show defects which are found once in 10,000 worlds or more.
SHOWN_BY = {
    # The commit of client 1 fails while client 0 has a batch with an acknowledged write.
    "takes_back_batches_in_silence": world(
        2,
        Conversation(0.0, Path(), (
            Command("set", "k1", "100"), Command("set", "k3", "200", gap=0.1), Command("set", "k3", "300"),
        )),
        Conversation(0.05, Path(), (Command("set", "k0", "400"), Command("set", "k0", "500"))),
        failed_commits=(1,),
    ),
    # While the COMMIT of client 0 hangs, client 1 waits for another statement.
    "waits_behind_a_commit_that_hangs": Plan(
        0, "mysql", {"innodb_lock_wait_timeout": 1}, 0.0, (adds(0.0, "k0", 1.0), adds(0.05, "k1", 1.0)),
        statements=(0.1,), failures=((19, "hangs for long"),), connections=6, together=2,
    ),
    # Another program has locked the row that the incr adds to.
    "takes_locked_rows_for_missing": Plan(
        0, "mysql", {}, 0.0,
        (Conversation(0.0, Path(), (
            Command("set", "k0", "100"), Command("get", "k0"), Command("incr", "k0", number=1, gap=0.5),
        )),),
        statements=(0.001,), writers=(Writer(0.4, 0.2, "k0", "5"),), connections=6, together=2,
    ),
    # The first set of a batch is acknowledged when a deadlock takes it back.
    "goes_on_after_a_lost_batch": Plan(
        0, "mysql", {"daemon_memcached_w_batch_size": 2}, 0.0,
        (Conversation(0.0, Path(), (
            Command("set", "k0", "100"), Command("set", "k1", "200"), Command("set", "k0", "300"),
            Command("set", "k1", "400"), Command("get", "k0"), Command("get", "k1"),
        ), end="quit"),),
        statements=(0.001,), failures=((13, "deadlock"),), connections=6, together=2,
    ),
    # While the statement of client 0 hangs, the others wait for two more.
    "waits_behind_a_statement_that_hangs": Plan(
        0, "mysql", {"innodb_lock_wait_timeout": 1, "innodb_api_trx_level": 1}, 0.0,
        (adds(0.0, "k0"), adds(0.05, "k0"), adds(0.05, "k1"), adds(0.06, "k1")),
        statements=(0.001,), failures=((3, "hangs for long"),), connections=6, together=2,
    ),
    # The row expires while the first replace waits for its lock.
    "judges_expiry_by_the_time_of_arrival": world(
        64,
        Conversation(0.0, Path(), (
            Command("add", "k1", "100"), Command("touch", "k1", exptime=2), Command("incr", "k1", number=1, gap=1.95),
        )),
        Conversation(0.01, Path(), (Command("replace", "k1", "200"), Command("replace", "k1", "300"))),
    ),
}  # fmt: skip


def test_each_defect_is_in_one_of_the_lists() -> None:
    assert DEFECTS.keys() <= FOUND_BY.keys() | SHOWN_BY.keys()


def mutant(name: str) -> Mutant:
    return (DEFECTS | MUTANTS)[name]


def wrong(plan: Plan) -> list[str]:
    with simulation() as machine:
        return machine.run(plan).wrong


@pytest.mark.parametrize("name", [*FOUND_BY, *SHOWN_BY])
def test_a_defect_is_found(name: str) -> None:
    plan = draw(FOUND_BY[name]) if name in FOUND_BY else SHOWN_BY[name]
    with planted(mutant(name)):
        assert wrong(plan)
    assert not wrong(plan)


def test_a_failing_plan_shrinks_to_a_few_commands_and_still_fails() -> None:
    with simulation() as machine, planted(mutant("forgets_a_group_that_waits")):
        smallest = shrink(draw(12), lambda plan: bool(machine.run(plan).wrong), tries=400)
        assert machine.run(smallest).wrong
    assert sum(len(each.commands) for each in smallest.conversations) <= 4
    assert not wrong(smallest)
