"""Write batches in the binary log of a real server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pymemcache
import pytest
from helpers.live import missing_skips

from kvref_bench import peers
from kvref_bench.peers import PeerSpec
from kvref_bench.peers.binlog import GROUPS, TRANSACTIONS
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.peers import OpenPeer

pytestmark = [pytest.mark.live, pytest.mark.nightly]

SETS = 96


@pytest.fixture(scope="module")
def plugin() -> Iterator[OpenPeer]:
    with ExitStack() as stack:
        with missing_skips():
            peer = stack.enter_context(peers.open(PeerSpec(endpoint="mysql-8.0-plugin"), QUIET))
        yield peer


def counters(plugin: OpenPeer, batch: int, *, log: int) -> dict[str, int]:
    """Return what moved while rows were written through the plugin."""
    plugin.start(
        {
            "innodb_api_enable_binlog": log,
            "daemon_memcached_w_batch_size": batch,
            "innodb_api_bk_commit_interval": 1000,
        }
    )
    assert plugin.address is not None
    client = pymemcache.Client(plugin.address, default_noreply=False)
    with plugin.sample() as sampling:
        for number in range(SETS):
            assert client.set(f"key{number}", "x" * 20)
    client.close()
    assert sampling.sample is not None
    return sampling.sample.counters


@pytest.mark.parametrize("batch", [1, 32])
def test_transactions_are_sets_by_batch_size(plugin: OpenPeer, batch: int) -> None:
    moved = counters(plugin, batch, log=1)
    assert moved["Binlog_cache_use"] == SETS / batch
    # One connection: each transaction is a group of its own.
    assert moved[TRANSACTIONS] == moved[GROUPS] == SETS / batch
    assert moved["Binlog_bytes"] > SETS * 20


def test_without_the_setting_nothing_is_logged(plugin: OpenPeer) -> None:
    moved = counters(plugin, 1, log=0)
    assert not moved.keys() & {TRANSACTIONS, GROUPS, "Binlog_cache_use", "Binlog_bytes"}
