"""Faults of a MySQL replication group under writes: a planned change of the primary fails no command, no fault loses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from cluster.generator import UNKNOWN, Writer, writing
from cluster.rows import dsn, is_expelled
from helpers.serving import Served, serving
from helpers.waiting import until

from kvref.errors import StoreError
from kvref.storage.mysql.cluster import Nodes
from kvref.storage.mysql.login import parse
from kvref_testbed.targets import Group
from kvref_testbed.targets.group import Member

NONE_AVAILABLE = b"none of the 3 servers is available"
READ_ONLY = b"1290"
NO_ANSWER = b"no answer from the database within"  # to a statement in front of the commit: nothing is written
ALONE = b"the member reaches 1 of 3 members"
ROWS = "SELECT c1, c2 FROM test.demo_test"

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(300)]


@pytest.fixture
def served(group: Group) -> Iterator[Served]:
    with serving(dsn(*group.members, options="?timeout=3"), "--set", "innodb_lock_wait_timeout=5") as running:
        yield running
    with closing(group.primary().connect(30)) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM test.demo_test")


def differences(group: Group, writers: list[Writer]) -> list[str]:
    """Return acknowledged rows that differ on any member; no writer got a wrong reply, and all members agree."""
    assert [wrong for each in writers for wrong in each.wrong] == []
    seen = [rows(each) for each in group.members]
    assert seen == [seen[0]] * len(seen)
    return [text for each in writers for text in each.differences(seen[0])]


def rows(member: Member) -> dict[str, str]:
    with closing(member.connect(60)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION group_replication_consistency = 'BEFORE'")
        cursor.execute(ROWS)
        return dict(cursor.fetchall())


def test_a_planned_change_of_the_primary_fails_no_command(group: Group, served: Served) -> None:
    with writing(served, "planned") as writers:
        for _ in range(len(group.members)):
            before = group.primary()
            after = next(each for each in group.members if each is not before)
            after.take_over()
            for each in writers:
                each.wait_for_an_acknowledgement()
            assert group.primary() is after
    assert differences(group, writers) == []
    assert [each.refusals for each in writers] == [[]] * len(writers)


@pytest.mark.parametrize(
    ("begin", "end"), [(Member.kill, Member.start), (Member.pause, Member.resume)], ids=["kill", "sigstop"]
)
def test_a_lost_primary_loses_nothing(
    group: Group, served: Served, begin: Callable[[Member], None], end: Callable[[Member], None]
) -> None:
    with writing(served, begin.__name__) as writers:
        lost = group.primary()
        begin(lost)
        for each in writers:
            each.wait_for_an_acknowledgement()
        end(lost)
        if begin is Member.pause:
            until(lambda: is_expelled(lost))
            lost.join()
        for each in writers:
            each.wait_for_an_acknowledgement()
    assert differences(group, writers) == []
    refusals = {reply for each in writers for reply in each.refusals}
    expected = (UNKNOWN, NONE_AVAILABLE, READ_ONLY, NO_ANSWER)
    assert all(any(text in reply for text in expected) for reply in refusals), refusals


def test_a_primary_without_a_majority_serves_nothing(group: Group, served: Served) -> None:
    with writing(served, "minority") as writers:
        primary = group.primary()
        others = [each for each in group.members if each is not primary]
        for each in others:
            each.kill()
        # Before it gives up its group by itself.
        until(lambda: all(any(ALONE in each for each in writer.refusals) for writer in writers), seconds=60)
    assert [wrong for each in writers for wrong in each.wrong] == []
    until(lambda: is_expelled(primary))
    primary.join(new_group=True)
    for each in others:
        each.start()
    assert differences(group, writers) == []


def test_a_member_that_left_its_group_is_not_used_though_it_takes_writes(group: Group) -> None:
    primary = group.primary()
    left, other = (each for each in group.members if each is not primary)
    with closing(left.connect(60)) as connection:
        connection.query("STOP GROUP_REPLICATION")
        connection.query("SET GLOBAL read_only = 0")
    with serving(dsn(left, other, primary, options="?timeout=3")) as served, writing(served, "left") as writers:
        for each in writers:
            each.wait_for_an_acknowledgement()
    left.join()
    assert differences(group, writers) == []
    with closing(primary.connect(60)) as connection:
        connection.query("DELETE FROM test.demo_test")


def test_a_primary_that_was_expelled_while_it_hung_is_not_chosen(group: Group) -> None:
    lost = group.primary()
    others = [each for each in group.members if each is not lost]
    lost.pause()
    try:
        until(lambda: any(each.state() == ("ONLINE", "PRIMARY") for each in others))
    finally:
        lost.resume()
    until(lambda: lost.state() == ("ONLINE", "PRIMARY"), pause=0)  # it does not know yet
    nodes = Nodes(parse(dsn(lost, *others)))
    with closing(nodes), closing(nodes.connect(1.0)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@port")
        assert cursor.fetchone() == (group_primary(others).port,)
    until(lambda: is_expelled(lost))
    lost.join()


def group_primary(members: list[Member]) -> Member:
    """Return the one of some members that is the primary of them all."""
    return next(each for each in members if each.state() == ("ONLINE", "PRIMARY"))


def test_a_secondary_is_not_used_for_reads_either(group: Group) -> None:
    secondaries = [each for each in group.members if each is not group.primary()]
    nodes = Nodes(parse(dsn(*secondaries)))
    with closing(nodes), pytest.raises(StoreError, match=r"none of the 2 servers is available: .*it is a secondary"):
        nodes.connect(1.0)
