"""When SQL sees what was written, against real idle commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kvref.targets import QUIET
from kvref_bench import lag, peers
from kvref_bench.errors import BenchError
from kvref_bench.lag import UNCOMMITTED, VISIBLE
from kvref_bench.lag_seen import UNLOCKED
from kvref_bench.load import histogram
from kvref_bench.load.work import Keys, Values
from kvref_bench.peers import PeerSpec
from kvref_bench.scenario.records import Table

if TYPE_CHECKING:
    from kvref_bench.load.plan import Kind
    from kvref_bench.load.result import WorkerResult

pytestmark = pytest.mark.live

TRIALS = 6
SECOND = 1_000_000_000
TABLE = Table("lag", "lag", Keys(20, length=12), Values((20, 20)))
NUMBERS = Table("lag", "lag", Keys(20, shape="int"), Values((20, 20)))


def bins(result: WorkerResult, kind: Kind) -> dict[int, int]:
    found: dict[int, int] = {}
    for cell, counts in result.histograms.items():
        if cell.kind == kind and cell.timing == "service":
            for place, count in counts.items():
                found[place] = found.get(place, 0) + count
    return found


@pytest.mark.parametrize(
    ("target", "table", "early", "late"),
    [
        # kvref commits a connection that was idle for an interval, looked at every second; 8.0.33 all at each tick.
        ("kvref-sqlite", TABLE, 0.9, 2.6),
        ("kvref-mysql-8.0", TABLE, 0.9, 2.6),
        ("mysql-8.0-plugin", TABLE, 0.0, 1.6),
        ("mysql-8.0-plugin", NUMBERS, 0.0, 1.6),
    ],
)
def test_idle_commit_makes_writes_visible(target: str, table: Table, early: float, late: float) -> None:
    with peers.open(PeerSpec(endpoint=target), QUIET) as peer:
        peer.start({"daemon_memcached_w_batch_size": 1000, "innodb_api_bk_commit_interval": 1})
        peer.prepare(table)
        dsn = peer.sql_dsn or peer.peer.sql
        assert peer.address is not None
        assert dsn is not None
        done: list[int] = []
        [result] = lag.measure(peer.address, dsn, table, trials=TRIALS, interval=1, watch=done.append)
        assert done == [1, 2, 3, 4, 5, 6]
        assert result.open == 0, result.stopped
        kinds = {cell.kind for cell in result.histograms}
        assert kinds == ({VISIBLE} if target == "kvref-sqlite" else {VISIBLE, UNCOMMITTED, UNLOCKED})
        for kind in kinds:
            assert sum(bins(result, kind).values()) == TRIALS
        seen = bins(result, VISIBLE)
        assert early * SECOND <= histogram.quantile(seen, 0) <= histogram.quantile(seen, 1) <= late * SECOND
        if UNCOMMITTED in kinds:
            assert histogram.quantile(bins(result, UNCOMMITTED), 0.5) < 0.2 * SECOND
            # The locks go with the commit.
            apart = histogram.quantile(bins(result, UNLOCKED), 0.5) - histogram.quantile(seen, 0.5)
            assert abs(apart) < 0.2 * SECOND
        again = lag.measure(peer.address, dsn, table, trials=1, interval=1)  # the rows were deleted
        assert sum(bins(again[0], VISIBLE).values()) == 1


def test_a_mapping_that_is_not_there() -> None:
    with peers.open(PeerSpec(endpoint="kvref-sqlite"), QUIET) as peer:
        dsn = peer.sql_dsn or peer.peer.sql
        assert peer.address is not None
        assert dsn is not None
        with pytest.raises(BenchError, match="containers has no row 'lag'"):
            lag.measure(peer.address, dsn, TABLE, trials=1, interval=1)
