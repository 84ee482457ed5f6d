"""What batches gain, what the binary log leaves, and when SQL sees a batch."""

from __future__ import annotations

import pandas as pd
import pytest

from kvref_bench.load import histogram
from support import batching

pytestmark = pytest.mark.nightly


def points(batches: tuple[int, ...] = (1, 100)) -> pd.DataFrame:
    """Make five repetitions: a batch of n writes n times as fast as none, the binary log halves."""
    return pd.DataFrame([
        {"run_id": "r", "label": "a", "sessions": 8, "rep": rep, "use": "valid", "ops": 10, batching.W_BATCH: batch,
         batching.BINLOG: log, "qps": (100 + rep) * batch / (1 + log)}
        for rep in range(5) for batch in batches for log in (0, 1)
    ])  # fmt: skip


def test_the_cost_of_the_log_is_a_ratio_in_pairs() -> None:
    rows = batching.cost(points(), ["label", batching.W_BATCH])
    assert rows["ratio"].tolist() == [0.5, 0.5]
    assert rows[["low", "high"]].to_numpy().ravel().tolist() == pytest.approx([0.5] * 4)


def test_one_side_alone_has_no_cost() -> None:
    rows = points()
    assert batching.cost(rows[rows[batching.BINLOG] == 0], ["label"]).empty


def test_lags_are_reported_by_what_was_waited_for() -> None:
    rows = [("visible", 1.2), ("visible", 1.8), ("unlocked", 1.5), ("error", 9.0)]
    hist = pd.DataFrame([
        {"run_id": "r", "point_id": 0, "second": 0, "verb": "set", "outcome": what, "clock": "service",
         "bin_index": histogram.index(int(seconds * 1e9)), "count": 1}
        for what, seconds in rows
    ])  # fmt: skip
    where = pd.DataFrame({"run_id": ["r"], "point_id": [0], "label": ["a"], batching.INTERVAL: [1]})
    curves = batching.lags(hist, where, ["label", batching.INTERVAL])
    table = batching.lag_table(curves, ["server", "interval"]).set_index("what")
    assert table.index.tolist() == ["unlocked", "visible"]
    assert table.loc["visible", ["shortest", "longest"]].tolist() == pytest.approx([1.2, 1.8], rel=0.008)
    reply = batching.conclude(None, curves)
    assert "a shows an open batch after 1.20 to 1.80 s at an interval of 1 s" in reply.sentence


def test_without_runs_nobody_can_tell() -> None:
    assert not batching.conclude(None, batching.lags_of(None)).known
    assert batching.surface_page(None).png().startswith(b"\x89PNG")
