"""When SQL sees what was written, against real idle commits."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from helpers.live import missing_skips

from kvref_bench import lag, peers
from kvref_bench.errors import BenchError
from kvref_bench.lag import UNCOMMITTED, UNLOCKED, VISIBLE, Rows
from kvref_bench.load import histogram
from kvref_bench.load.work import Keys, Values
from kvref_bench.peers import PeerSpec
from kvref_bench.scenario.records import Table
from kvref_bench.workload.keys import key
from kvref_testbed.targets import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvref_bench.load.records import Kind, WorkerResult
    from kvref_bench.peers import OpenPeer

pytestmark = [pytest.mark.live, pytest.mark.nightly]

TRIALS = 4
SECOND = 1_000_000_000
TABLE = Table("idle_rows", "lag", Keys(20, length=12), Values((20, 20)))
NUMBERS = Table("idle_rows", "lag", Keys(20, shape="int"), Values((20, 20)))


def bins(result: WorkerResult, kind: Kind) -> dict[int, int]:
    found: dict[int, int] = {}
    for cell, counts in result.histograms.items():
        if cell.kind == kind and cell.timing == "service":
            for place, count in counts.items():
                found[place] = found.get(place, 0) + count
    return found


@contextmanager
def opened(target: str) -> Iterator[OpenPeer]:
    """Boot a target; skip where the machine lacks what it needs."""
    with ExitStack() as stack:
        with missing_skips():
            peer = stack.enter_context(peers.open(PeerSpec(endpoint=target), QUIET))
        yield peer


@pytest.mark.parametrize(
    ("target", "table", "early"),
    [
        # kvref commits a connection that was idle for an interval, looked at every second; 8.0.33 all at each tick.
        ("kvref-sqlite", NUMBERS, 0.9),
        ("kvref-mysql-8.0", TABLE, 0.9),
        ("mysql-8.0-plugin", TABLE, 0.0),
    ],
)
def test_idle_commit_makes_writes_visible(target: str, table: Table, early: float) -> None:
    with opened(target) as peer:
        peer.start({"daemon_memcached_w_batch_size": 1000, "innodb_api_bk_commit_interval": 1})
        peer.prepare(table)
        dsn = peer.tables_dsn
        assert peer.address is not None
        assert dsn is not None
        [result] = lag.measure(peer.address, dsn, table, trials=TRIALS, interval=1)
        assert result.open == 0, result.stopped
        kinds = {cell.kind for cell in result.histograms}
        assert kinds == ({VISIBLE} if target == "kvref-sqlite" else {VISIBLE, UNCOMMITTED, UNLOCKED})
        for kind in kinds:
            assert sum(bins(result, kind).values()) == TRIALS
        seen = bins(result, VISIBLE)
        assert early * SECOND <= histogram.quantile(seen, 0)
        if UNCOMMITTED in kinds:
            assert histogram.quantile(bins(result, UNCOMMITTED), 0.5) < histogram.quantile(seen, 0.5)
        names = [key(table.keys, number) for number in range(19, 21)]
        cells: list[int | str] = [int(each) if table is NUMBERS else each.decode() for each in names]
        with closing(Rows(dsn, table)) as rows:
            assert rows.present(cells) == {cells[0]}  # the table's last row; what was written is deleted


def test_a_table_that_is_not_there() -> None:
    with opened("kvref-sqlite") as peer:
        dsn = peer.tables_dsn
        assert peer.address is not None
        assert dsn is not None
        with pytest.raises(BenchError, match="no such table: kvref_bench"):
            lag.measure(peer.address, dsn, TABLE, trials=1, interval=1)
