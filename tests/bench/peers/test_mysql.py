"""The plugin, and SQL servers alone."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.load.work import Keys, Values
from kvref_bench.peers import PeerSpec, wire
from kvref_bench.peers import base_tables as rows
from kvref_bench.sql import login

from .conftest import NUMBERS, WORDS, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.peers import OpenPeer
    from kvref_bench.scenario.records import Table

pytestmark = [pytest.mark.live, pytest.mark.nightly]


def run(peer: OpenPeer, statement: str) -> list[tuple[object, ...]]:
    with closing(login.parse(str(peer.sql_dsn)).connect()) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


@pytest.fixture(scope="module")
def plugin() -> Iterator[OpenPeer]:
    with opened(PeerSpec(endpoint="mysql-8.0-plugin")) as peer:
        yield peer


@pytest.mark.parametrize("table", [WORDS, NUMBERS], ids=["text", "int"])
def test_a_table_is_made_mapped_and_filled(plugin: OpenPeer, table: Table) -> None:
    plugin.prepare(table)
    before = f"@@{table.mapping}.".encode()
    assert all(wire.get(str(plugin.address), before + key) == value for key, value in rows.rows(table))
    assert [each["db_table"] for each in plugin.peer.containers] == [table.name]
    [[count]] = run(plugin, f"SELECT COUNT(*) FROM kvref_bench.{table.name}")
    assert count == 300


def test_settings_are_in_force_after_a_start(plugin: OpenPeer) -> None:
    plugin.prepare(WORDS)
    assert plugin.peer.variables["log_bin"] == "OFF"
    batches = {"daemon_memcached_w_batch_size": 32, "innodb_api_enable_binlog": 1}
    plugin.start({**batches, "innodb_flush_log_at_trx_commit": 2})
    record = plugin.peer
    assert (record.name, record.kind, record.version) == ("mysql-8.0-plugin", "plugin", "8.0.33")
    assert record.variables["daemon_memcached_w_batch_size"] == "32"
    assert record.variables["log_bin"] == "ON"
    assert record.variables["stats settings num_threads"] == "4"
    assert record.variables["innodb_flush_log_at_trx_commit"] == "2"
    key, value = next(iter(rows.rows(WORDS)))
    assert wire.get(str(plugin.address), b"@@words." + key) == value


def test_settings_that_it_does_not_take_leave_it_running_without(plugin: OpenPeer) -> None:
    with pytest.raises(BenchError, match="no setting 'daemon_memcached_z_batch_size'"):
        plugin.start({"daemon_memcached_z_batch_size": 1})
    with pytest.raises(BenchError, match=r"innodb_api_trx_level=7: the server at .* took 3"):
        plugin.start({"innodb_api_trx_level": 7})
    with pytest.raises(BenchError, match=r"innodb_page_size=3: .*\[ERROR\]"):
        plugin.start({"innodb_page_size": 3})
    assert plugin.peer.variables["innodb_flush_log_at_trx_commit"] == "1"
    assert plugin.peer.variables["daemon_memcached_w_batch_size"] == "1"


def test_a_sample_counts_on_both_sides(plugin: OpenPeer) -> None:
    plugin.prepare(WORDS)
    keys = [key for key, _ in rows.rows(WORDS)]
    with plugin.sample() as sampling:
        for key in keys[:50]:
            wire.get(str(plugin.address), b"@@words." + key)
        run(plugin, "UPDATE kvref_bench.words SET flags = 1 WHERE k > ''")
    assert sampling.sample is not None
    counted = sampling.sample.counters
    assert counted["cmd_get"] == 50
    assert counted["Com_update"] == 1
    assert counted["Innodb_rows_updated"] == 300
    assert "Com_show_status" not in counted
    assert {each.pid for each in sampling.resources if each.role != "machine"} == {plugin.peer.pid}


def test_a_sql_server_alone() -> None:
    body = "UPDATE words SET v = the_value WHERE k = the_key"
    table = replace(WORDS, procedures={"words_set": body})
    with opened(PeerSpec(endpoint="mariadb")) as peer:
        peer.prepare(table)
        peer.prepare(table)
        found = run(peer, "SELECT k, v, flags, cas, exp FROM kvref_bench.words")
        assert sorted(found) == sorted((key.decode(), value.decode(), 0, 1, 0) for key, value in rows.rows(table))
        record = peer.peer
        assert (record.kind, record.address, record.containers) == ("mariadb", None, [])
        assert "CREATE TABLE `words`" in record.ddl
        assert body in record.ddl
        assert record.variables["sync_binlog"].isdigit()
        assert not [value for value in record.variables.values() if "/" in value]
        assert record.pid is not None

        peer.start({"innodb_flush_log_at_trx_commit": 2, "innodb_adaptive_hash_index": 0})
        assert peer.peer.variables["innodb_flush_log_at_trx_commit"] == "2"
        assert peer.peer.variables["innodb_adaptive_hash_index"] == "OFF"
        with pytest.raises(BenchError, match=r"cannot be set while the server runs: .*read.only"):
            peer.start({"sync_binlog": 7, "port": 3})
        assert peer.peer.variables["innodb_flush_log_at_trx_commit"] == "1"
        assert peer.peer.variables["sync_binlog"] == record.variables["sync_binlog"]
        with pytest.raises(BenchError, match="has no plugin"):
            peer.start({"daemon_memcached_w_batch_size": 2})
        with pytest.raises(BenchError, match="no setting 'nothing'"):
            peer.start({"nothing": 2})


def test_long_values_and_many_rows() -> None:
    long = replace(WORDS, keys=Keys(300, "text", 100), values=Values((9000, 9000)))
    with opened(PeerSpec(endpoint="mariadb")) as peer:
        peer.prepare(long)
        [[count, least, most]] = run(peer, "SELECT COUNT(*), MIN(LENGTH(v)), MAX(LENGTH(v)) FROM kvref_bench.words")
        assert (count, least, most) == (300, 9000, 9000)
        assert "`v` mediumtext" in peer.peer.ddl
        peer.prepare(replace(NUMBERS, keys=Keys(30_000, "int")))
        [[count, last]] = run(peer, "SELECT COUNT(*), MAX(k) FROM kvref_bench.numbers")
        assert (count, last) == (30_000, 30_000)
