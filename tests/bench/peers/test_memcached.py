"""Native memcached: the same keys without a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.waiting import until

from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values
from kvref_bench.peers import PeerSpec, Sampling, processes, wire
from kvref_bench.peers import base_tables as rows

from .conftest import NUMBERS, WORDS, ProgressRecorder, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.peers import OpenPeer

pytestmark = [pytest.mark.live, pytest.mark.nightly]


@pytest.fixture(scope="module")
def progress() -> ProgressRecorder:
    return ProgressRecorder()


@pytest.fixture(scope="module")
def peer(progress: ProgressRecorder) -> Iterator[OpenPeer]:
    with opened(PeerSpec(endpoint="memcached"), progress) as memcached:
        yield memcached


def test_it_is_loaded_over_the_wire_and_every_value_is_there(peer: OpenPeer, progress: ProgressRecorder) -> None:
    big = replace(WORDS, keys=Keys(1234, "text", 24))
    peer.prepare(NUMBERS)
    peer.prepare(big)
    assert peer.address is not None
    for key, value in list(rows.rows(big))[::50]:
        assert wire.get(peer.address, key) == value
    assert wire.get(peer.address, b"1") is None  # the numbers are gone
    assert progress.done[-3:] == [("items of words", done, 1234) for done in (500, 1000, 1234)]


def test_a_record_of_it(peer: OpenPeer) -> None:
    record = peer.peer
    assert (record.name, record.kind, record.address, record.sql) == ("memcached", "memcached", peer.address, None)
    assert record.version in wire.version(str(peer.address))
    assert record.variables["stats settings maxbytes"] == str(4096 << 20)
    assert (record.containers, record.ddl, record.verdict) == ([], "", None)
    assert record.pid == int(wire.stats(str(peer.address))["pid"])
    assert (peer.has_tables, peer.settable, peer.sql_dsn) == (False, False, None)


def test_a_sample_counts_what_was_done_in_it(peer: OpenPeer) -> None:
    peer.prepare(WORDS)
    address = str(peer.address)
    with peer.sample() as sampling:
        for key, _ in list(rows.rows(WORDS))[:40]:
            wire.get(address, key)
        wire.get(address, b"nothing")
    assert sampling.sample is not None
    counted = sampling.sample.counters
    assert (counted["cmd_get"], counted["get_hits"], counted["get_misses"]) == (41, 40, 1)
    assert "uptime" not in counted
    usage = sampling.sample.usage
    assert usage is not None
    assert usage.rss > 1 << 20
    assert [each.pid for each in sampling.resources if each.role == "server"] == [peer.peer.pid] * 2


def test_it_has_no_settings(peer: OpenPeer) -> None:
    peer.start({})
    with pytest.raises(
        BenchError, match="memcached: daemon_memcached_w_batch_size: the target memcached has no settings"
    ):
        peer.start({"daemon_memcached_w_batch_size": 4})


def test_what_it_refuses_to_store_is_named(peer: OpenPeer) -> None:
    too_big = replace(WORDS, keys=Keys(2), values=Values((1 << 21, 1 << 21)))
    with pytest.raises(BenchError, match="too large"):
        peer.prepare(too_big)


def test_as_an_address_it_is_known_too(peer: OpenPeer) -> None:
    with opened(PeerSpec(endpoint=peer.address, allow_destructive=True)) as same:
        assert (same.peer.kind, same.peer.name, same.peer.pid) == (
            "memcached", f"memcached {peer.peer.version}", peer.peer.pid,
        )  # fmt: skip
        same.prepare(NUMBERS)
        with pytest.raises(BenchError, match="set them at the endpoint yourself"):
            same.start({"daemon_memcached_w_batch_size": 4})


def test_nobody_and_somebody_else_at_an_address() -> None:
    with pytest.raises(BenchError, match="Connection refused"), opened(PeerSpec(endpoint="127.0.0.1:1")):
        pass
    with pytest.raises(BenchError, match="give an endpoint"), opened(PeerSpec()):
        pass
    with pytest.raises(BenchError, match="leave them out"), opened(PeerSpec(endpoint="memcached", reload="true")):
        pass


def test_processes_are_found_where_they_listen(peer: OpenPeer) -> None:
    port = str(peer.address).rpartition(":")[2]
    assert processes.listener(f"localhost:{port}") == peer.peer.pid
    assert processes.listener("192.0.2.1:11211") is None  # an address of documentation: no machine's
    with Sampling({"server": 2**22 + 1}) as sampling:
        pass
    assert sampling.sample is not None
    assert sampling.sample.usage is None
    with pytest.raises(BenchError, match=r"no process listens at 192\.0\.2\.1:11211"):
        processes.listening(server="192.0.2.1:11211")


def test_items_that_an_endpoint_holds_stay_unless_the_user_allows_it() -> None:
    with opened(PeerSpec(endpoint="memcached")) as booted:
        address = str(booted.address)
        list(wire.load(address, [(b"mine", b"1")]))
        with (
            pytest.raises(BenchError, match=r"holds 1 items, and flush_all would delete them: .*--allow-destructive"),
            opened(PeerSpec(endpoint=address)),
        ):
            pass
        assert wire.get(address, b"mine") == b"1"
        with opened(PeerSpec(endpoint=address, allow_destructive=True)) as same:
            same.prepare(WORDS)
        assert wire.get(address, b"mine") is None


def test_a_run_leaves_the_endpoint_empty() -> None:
    with opened(PeerSpec(endpoint="memcached")) as booted:
        address = str(booted.address)
        with opened(PeerSpec(endpoint=address)) as first:
            first.prepare(WORDS)
            list(wire.load(address, [(b"by-the-load", b"1")]))
            loaded = int(wire.stats(address)["time"])
            until(lambda: int(wire.stats(address)["time"]) > loaded + 1)  # flush_all does not free what is older
        assert wire.items(address) == 0
        with opened(PeerSpec(endpoint=address)) as second:
            second.prepare(NUMBERS)
