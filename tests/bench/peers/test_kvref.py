"""kvref over SQLite, as a target and as an endpoint of which only the address is known, and over InnoDB."""

from __future__ import annotations

import shlex
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kvref_bench.errors import BenchError
from kvref_bench.peers import PeerSpec, wire
from kvref_bench.peers import base_tables as rows
from kvref_bench.peers import opened as module

from .conftest import NUMBERS, WORDS, ProgressRecorder, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.peers import OpenPeer
    from kvref_bench.scenario.records import Table

pytestmark = [pytest.mark.live, pytest.mark.nightly]


@pytest.fixture(scope="module")
def peer() -> Iterator[OpenPeer]:
    with opened(PeerSpec(endpoint="kvref-sqlite", name="ours")) as ours:
        yield ours


def values_of(peer: OpenPeer, table: Table) -> list[bytes | None]:
    assert peer.address is not None
    words = [f"@@{table.mapping}.".encode() + key for key, _ in rows.rows(table)]
    return [wire.get(peer.address, each) for each in words]


@pytest.mark.parametrize("table", [WORDS, NUMBERS], ids=["text", "int"])
def test_a_table_is_made_mapped_and_filled(peer: OpenPeer, table: Table) -> None:
    peer.prepare(table)
    assert values_of(peer, table) == [value for _, value in rows.rows(table)]
    record = peer.peer
    [container] = record.containers
    assert (container["name"], container["db_schema"], container["db_table"]) == (
        table.mapping, "kvref_bench", table.name,
    )  # fmt: skip
    assert (container["flags"], container["cas_column"]) == (("flags", "cas") if table.extras else ("0", "0"))
    assert f'CREATE TABLE "kvref_bench.{table.name}"' in record.ddl


def test_a_record_of_it(peer: OpenPeer) -> None:
    record = peer.peer
    assert (record.name, record.kind, record.sql) == ("ours", "kvref", "sqlite:///kvref.sqlite")
    assert record.variables["sqlite_journal_mode"] == "wal"
    assert (peer.has_tables, peer.settable, peer.sql_dsn) == (True, True, None)
    assert str(peer.tables_dsn).startswith("sqlite:////")


def test_settings_are_in_force_after_a_start_and_gone_after_the_next(peer: OpenPeer) -> None:
    peer.prepare(WORDS)
    before = peer.peer.pid
    peer.start({"item_size_max": 2048})
    assert peer.peer.variables["stats settings item_size_max"] == "2048"
    assert peer.peer.pid != before
    assert values_of(peer, WORDS)[0] is not None
    with pytest.raises(BenchError, match=r"ours: innodb_io_capacity=9: .*unknown setting 'innodb_io_capacity'"):
        peer.start({"innodb_io_capacity": 9})
    assert peer.peer.variables["stats settings item_size_max"] == str(1 << 20)
    peer.start({})


def test_procedures_are_of_sql_servers_only(peer: OpenPeer) -> None:
    peer.prepare(replace(WORDS, procedures={"p": "SELECT 1"}))
    assert peer.peer.ddl.count("CREATE") == 1


def given(peer: OpenPeer, reload: str | None = None) -> PeerSpec:
    """Return the same server as one of which only the address and a DSN are known."""
    return PeerSpec(endpoint=peer.address, sql=peer.tables_dsn, reload=reload)


def test_an_endpoint_is_reloaded_by_the_command(peer: OpenPeer) -> None:
    progress, table = ProgressRecorder(), replace(WORDS, mapping="other")
    with opened(given(peer, reload=f"kill -HUP {peer.peer.pid}"), progress) as same:
        assert (same.peer.kind, same.peer.name) == ("kvref", f"kvref {peer.peer.version}")
        same.prepare(table)
        assert values_of(same, table) == [value for _, value in rows.rows(table)]
    assert progress.done[-1] == ("rows of words", 300, 300)


def test_a_mapping_to_a_table_of_others_stays_unless_the_user_allows_it(peer: OpenPeer) -> None:
    path = str(peer.tables_dsn).removeprefix("sqlite:///")
    table = replace(WORDS, mapping="theirs")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO containers SELECT 'theirs', 'test', 'shop', 'k', 'v', '0', '0', '0', 'PRIMARY'")
    spec = given(peer, reload=f"kill -HUP {peer.peer.pid}")
    with opened(spec) as same, pytest.raises(BenchError, match=r"theirs is of test\.shop, .* --allow-destructive"):
        same.prepare(table)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT db_table FROM containers WHERE name = 'theirs'").fetchall() == [("shop",)]
    with opened(replace(spec, allow_destructive=True)) as same:
        same.prepare(table)
        assert values_of(same, table) == [value for _, value in rows.rows(table)]


def test_an_endpoint_without_a_reload_or_a_dsn_has_no_table(peer: OpenPeer) -> None:
    with opened(given(peer)) as same, pytest.raises(BenchError, match="give --reload COMMAND"):
        same.prepare(WORDS)
    with opened(PeerSpec(endpoint=peer.address)) as same, pytest.raises(BenchError, match="give --sql DSN"):
        same.prepare(WORDS)


def test_a_reload_that_fails(peer: OpenPeer) -> None:
    with opened(given(peer, reload="echo no; exit 3")) as same, pytest.raises(BenchError, match="ended with 3: no"):
        same.prepare(WORDS)


def test_a_mapping_that_does_not_answer(peer: OpenPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RELOAD_SECONDS", 0.3)
    drop = f"""{shlex.quote(sys.executable)} -c 'import sqlite3
with sqlite3.connect("{path_of(peer)}") as file: file.execute("DROP TABLE \\"kvref_bench.words\\"")'"""
    reload = f"{drop} && kill -HUP {peer.peer.pid}"
    with opened(given(peer, reload=reload)) as same, pytest.raises(BenchError, match="does not know the mapping words"):
        same.prepare(WORDS)


def test_a_row_that_reads_wrong_is_named(peer: OpenPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RELOAD_SECONDS", 0.3)
    peer.prepare(WORDS)
    spoil = f"""{shlex.quote(sys.executable)} -c 'import sqlite3
with sqlite3.connect("{path_of(peer)}") as file: file.execute("UPDATE \\"kvref_bench.words\\" SET v = 1")'"""
    reload = f"{spoil} && kill -HUP {peer.peer.pid}"
    with opened(given(peer, reload=reload)) as same, pytest.raises(BenchError, match="with b'1' instead of"):
        same.prepare(WORDS)


def test_a_file_that_is_not_there(peer: OpenPeer) -> None:
    nowhere = PeerSpec(endpoint=peer.address, sql="sqlite:////nowhere/at.all")
    with pytest.raises(BenchError, match="make it with `kvref init"), opened(nowhere):
        pass


def path_of(peer: OpenPeer) -> str:
    return str(peer.tables_dsn).removeprefix("sqlite:///")


def test_rows_are_ordinary_rows_for_sql(peer: OpenPeer) -> None:
    peer.prepare(WORDS)
    with closing(sqlite3.connect(path_of(peer))) as file:
        found = file.execute('SELECT k, v, flags, cas, exp FROM "kvref_bench.words"').fetchall()
    assert sorted(found) == sorted((key.decode(), value.decode(), 0, 1, 0) for key, value in rows.rows(WORDS))


def test_over_innodb_each_gets_its_own_settings() -> None:
    with opened(PeerSpec(endpoint="kvref-mysql-8.0")) as peer:
        peer.prepare(WORDS)
        peer.start({"innodb_flush_log_at_trx_commit": 2, "item_size_max": 4096})
        variables = peer.peer.variables
        assert variables["innodb_flush_log_at_trx_commit"] == "2"
        assert variables["stats settings item_size_max"] == "4096"
        with peer.sample() as sampling:
            assert values_of(peer, WORDS)[-1] is not None
        pids = {each.role: each.pid for each in sampling.resources}
        assert pids["server"] != pids["database"]
        with pytest.raises(BenchError, match="without a binary log"):
            peer.start({"innodb_api_enable_binlog": 1})
        with pytest.raises(BenchError, match="has no setting 'innodb_nothing'"):
            peer.start({"innodb_nothing": 1})
        peer.start({})
        assert peer.peer.variables["innodb_flush_log_at_trx_commit"] == "1"
