"""Two kvref processes on two nodes: what they write at the same moment, and what one reads of the other's writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from cluster.generator import UNKNOWN, ask
from cluster.rows import dsn, query, rows
from helpers.serving import Served, serving

from kvref_testbed.targets import GaleraCluster

CLIENTS = 3  # of each process
INCREMENTS = 120  # of each client
ROUNDS = 500

pytestmark = [pytest.mark.live, pytest.mark.nightly]


@pytest.fixture(autouse=True)
def empty(galera: GaleraCluster) -> Iterator[None]:
    yield
    query(galera.nodes[0], "DELETE FROM test.demo_test")


class Counter(threading.Thread):
    """One connection that counts on the keys of all; a command that is refused counts nothing."""

    def __init__(self, served: Served, keys: list[str]) -> None:
        super().__init__(daemon=True)
        self._served = served
        self._keys = keys
        self.answers: dict[str, list[int]] = {key: [] for key in keys}
        self.refused: list[bytes] = []

    def run(self) -> None:
        with self._served.connect() as client:
            client.settimeout(60)
            for number in range(INCREMENTS):
                key = self._keys[number % len(self._keys)]
                reply = ask(client, b"incr %s 1\r\n" % key.encode())
                if reply.strip().isdigit():
                    self.answers[key].append(int(reply))
                else:
                    self.refused.append(reply)


@pytest.mark.parametrize("coalesce", [128, 0], ids=["together", "one by one"])
@pytest.mark.parametrize("keys", [["n"], ["n", "m", "o"]], ids=len)
def test_no_increment_is_lost(galera: GaleraCluster, keys: list[str], coalesce: int) -> None:
    options = f"?coalesce={coalesce}"
    one, two, _ = galera.nodes
    failures = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')"
    before = [int(row[1]) for node in (one, two) for row in query(node, failures)]
    with serving(dsn(one, options=options)) as first, serving(dsn(two, options=options)) as second:
        with first.connect() as client:
            assert {ask(client, b"set %s 0 0 1\r\n0\r\n" % key.encode()) for key in keys} == {b"STORED\r\n"}
        query(two, "SELECT 1")  # it has caught up
        counters = [Counter(served, keys) for served in (first, second) for _ in range(CLIENTS)]
        for each in counters:
            each.start()
        for each in counters:
            each.join(120)
            assert not each.is_alive()
    after = [int(row[1]) for node in (one, two) for row in query(node, failures)]
    assert after != before, "nobody met anybody: this proves nothing"
    refused = [reply for each in counters for reply in each.refused]
    # Another's came first again and again.
    assert all(reply.startswith(b"SERVER_ERROR ") and UNKNOWN not in reply for reply in refused), refused
    for key in keys:
        answers = sorted(answer for each in counters for answer in each.answers[key])
        assert answers == list(range(1, len(answers) + 1))
        assert [rows(node)[key] for node in galera.nodes] == [str(len(answers))] * 3
    counted = sum(len(answers) for each in counters for answers in each.answers.values())
    assert counted + len(refused) == 2 * CLIENTS * INCREMENTS
    # Twenty tries are seldom too few.
    assert counted > 20 * len(refused)
    print(f"{counted} counted, {len(refused)} refused; failures and aborts: {before}, {after}")  # noqa: T201


@pytest.mark.parametrize("full", [False, True], ids=["more to come", "full"])
def test_a_batch_that_another_came_before_is_lost_and_reported(galera: GaleraCluster, full: bool) -> None:
    one, two, _ = galera.nodes
    settings = ("--set", f"daemon_memcached_w_batch_size={3 if full else 10}")
    with (
        serving(dsn(one), *settings) as first,
        serving(dsn(two)) as second,
        first.connect() as client,
        second.connect() as other,
    ):
        assert ask(client, b"set a 0 0 4\r\nmine\r\n") == b"STORED\r\n"
        assert ask(client, b"set b 0 0 4\r\nmine\r\n") == b"STORED\r\n"
        assert ask(other, b"set a 0 0 5\r\nother\r\n") == b"STORED\r\n"
        query(one, "SELECT 1")  # it has caught up
        lost = ask(client, b"set c 0 0 4\r\nmine\r\n")
        assert lost.startswith(b"SERVER_ERROR ")
        assert b"2 pending writes are lost" in lost
        for node in galera.nodes:
            assert {key: value for key, value in rows(node).items() if key in "abc"} == {"a": "other"}
        # The connection begins another batch.
        assert ask(client, b"set c 0 0 5\r\nagain\r\n") == b"STORED\r\n"
    # Its end commits.
    assert rows(two)["c"] == "again"


@pytest.mark.parametrize("sync_wait", [1, 0])
@pytest.mark.parametrize("verb", [b"get", b"delete"], ids=["get", "delete"])
def test_what_another_node_has_stored_is_seen(galera: GaleraCluster, verb: bytes, sync_wait: int) -> None:
    one, two, _ = galera.nodes
    missed = 0
    with (
        serving(dsn(one)) as first,
        serving(dsn(two, options=f"?wsrep_sync_wait={sync_wait}")) as second,
        first.connect() as writer,
        second.connect() as reader,
        reader.makefile("rb") as replies,
    ):
        for number in range(ROUNDS):
            value = b"%d\r\n" % number
            assert ask(writer, b"set n 0 0 %d\r\n%s" % (len(value) - 2, value)) == b"STORED\r\n"
            reader.sendall(verb + b" n\r\n")
            seen = [replies.readline()]
            while seen[-1] not in (b"DELETED\r\n", b"NOT_FOUND\r\n", b"END\r\n"):
                seen.append(replies.readline())
            missed += value not in seen and seen != [b"DELETED\r\n"]
    print(f"wsrep_sync_wait={sync_wait}: {missed} of {ROUNDS} {verb!r} saw less")  # noqa: T201 - for `pytest -rP`
    if sync_wait:
        assert missed == 0


def test_one_of_many_adds_a_row_and_the_others_leave_nothing_locked(galera: GaleraCluster) -> None:
    one, two, _ = galera.nodes
    with ExitStack() as stack:
        processes = [stack.enter_context(serving(dsn(node, options="?coalesce=0"))) for node in (one, two)]
        clients = [stack.enter_context(served.connect()) for served in processes for _ in range(CLIENTS)]
        threads = stack.enter_context(ThreadPoolExecutor(len(clients)))
        for _ in range(30):
            answers = list(threads.map(lambda client: ask(client, b"add n 0 0 1\r\nx\r\n"), clients))
            assert sorted(answers) == [b"NOT_STORED\r\n"] * (len(clients) - 1) + [b"STORED\r\n"]
            # A command that was rejected and run again has ended its transaction, although its connection continues.
            for node in (one, two):
                query(node, "SET SESSION innodb_lock_wait_timeout = 1", "SELECT * FROM test.demo_test FOR UPDATE")
            query(one, "DELETE FROM test.demo_test")
            query(two, "SELECT 1")  # it has caught up
