"""A trace replayed on memcached: every operation of it, in order, each with a reply that fits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from helpers.live import target_or_skip

from kvref_bench.load.work import Keys, Values, Work
from kvref_bench.workload.trace import read_trace

from .player import play

pytestmark = [pytest.mark.live, pytest.mark.nightly]

OPERATIONS = ("add", "get", "set", "get", "append", "gets", "replace", "delete", "get", "prepend")


@pytest.mark.parametrize("protocol", ["text", "binary"])
def test_every_request_of_a_trace_is_answered(tmp_path: Path, protocol: str) -> None:
    path = tmp_path / "trace.csv"
    rows = [(n, f"nz:key:{n * 7 % 13}", n * 53 % 900, OPERATIONS[n % len(OPERATIONS)]) for n in range(600)]
    path.write_text("".join(f"{n},{key},{len(key)},{size},1,{verb},0\n" for n, key, size, verb in rows))
    work = Work(
        keys=Keys(len(read_trace(str(path)).keys), distribution="trace", file=str(path)),
        values=Values((0, 900), trace=str(path)),
        verbs=dict.fromkeys(OPERATIONS, 1.0),
        protocol=protocol,  # type: ignore[arg-type]
        pool=len(rows),
    )
    with target_or_skip("memcached") as memcached:
        played = play(work, memcached.memcached(), len(rows))
    assert played.unexpected == []
    sent = [kinds[0].verb for _, kinds in played.exchanges]
    assert sent == [verb for *_, verb in rows]
    outcomes = Counter((kinds[0].verb, kinds[0].outcome) for _, kinds in played.exchanges)
    assert outcomes["get", "hit"] > 0
    assert outcomes["set", "stored"] == OPERATIONS.count("set") * len(rows) // len(OPERATIONS)
    assert not [kind for kind in outcomes if kind[1] == "error"]
