"""MySQL Router in front of a replication group hangs or is killed: nothing is lost, and no command waits for long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from cluster.generator import UNKNOWN, Writer, ask, writing
from cluster.rows import dsn, prepare
from helpers.live import missing_skips
from helpers.serving import Served, serving
from helpers.waiting import until

from kvref_testbed import targets
from kvref_testbed.targets import Group
from kvref_testbed.targets.router import Router

TIMEOUT = 3
SILENT = b"no answer within 3 s"  # of a new connection, whatever the lock wait
NO_ANSWER = b"no answer from the database within 4 s"

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def routed() -> Iterator[tuple[Router, Group]]:
    with ExitStack() as stack:
        with missing_skips():
            router, group = stack.enter_context(targets.mysql_router())
        prepare(group.primary(), router.dsn, "ALL ON *.*")
        yield router, group


@pytest.fixture
def served(routed: tuple[Router, Group]) -> Iterator[Served]:
    with serving(dsn(routed[0], options=f"?timeout={TIMEOUT}"), "--set", "innodb_lock_wait_timeout=1") as running:
        yield running


def test_a_new_connection_to_a_silent_router_does_not_wait_as_long_as_for_a_lock(routed: tuple[Router, Group]) -> None:
    router, _ = routed
    options = "--set", "innodb_lock_wait_timeout=40"
    with serving(dsn(router, options=f"?timeout={TIMEOUT}"), *options) as served, served.connect() as client:
        client.settimeout(60)
        router.pause()
        try:
            assert SILENT in ask(client, b"set silent 0 0 1\r\n1\r\n")
        finally:
            router.resume()
        assert ask(client, b"set silent 0 0 1\r\n1\r\n") == b"STORED\r\n"


def test_a_router_that_hangs_loses_nothing(routed: tuple[Router, Group], served: Served) -> None:
    router, group = routed
    with writing(served, "hang") as writers:
        router.pause()
        try:
            until(lambda: all(each.refusals for each in writers))
        finally:
            router.resume()
        for each in writers:
            each.wait_for_an_acknowledgement()
    refusals = {reply for each in writers for reply in each.refusals}
    assert all(UNKNOWN in reply or NO_ANSWER in reply or SILENT in reply for reply in refusals), refusals
    assert differences(group, writers) == []


def test_a_killed_router_loses_nothing(routed: tuple[Router, Group], served: Served) -> None:
    router, group = routed
    with writing(served, "kill") as writers:
        router.kill()
        until(lambda: all(each.refusals for each in writers))
        router.start()
        for each in writers:
            each.wait_for_an_acknowledgement()
    assert differences(group, writers) == []


def differences(group: Group, writers: list[Writer]) -> list[str]:
    """Return acknowledged rows that differ on the primary; no writer got a wrong reply."""
    assert [wrong for each in writers for wrong in each.wrong] == []
    with closing(group.primary().connect(60)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT c1, c2 FROM test.demo_test")
        rows = dict(cursor.fetchall())
    return [text for each in writers for text in each.differences(rows)]
