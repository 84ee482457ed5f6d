"""What memcaslap prints is read; an error of it is one of the run."""

from __future__ import annotations

import pytest
from helpers.live import missing_skips, target_or_skip

from kvref_bench.errors import BenchError
from kvref_bench.load import drivers
from kvref_testbed.targets.needs import tool

pytestmark = [pytest.mark.live, pytest.mark.nightly]


def test_what_memcaslap_prints_is_read() -> None:
    with missing_skips():
        tool("memcaslap")
    with target_or_skip("memcached") as target:
        done = drivers.memcaslap(target.address, 64, 0.9, 100, ["-x", "6400"])
        assert done.operations == 6400
        assert done.seconds > 0
        assert done.cpu > 0
        with pytest.raises(BenchError, match="memcaslap ended with"):
            drivers.memcaslap(target.address, 64, 0.9, 100, ["--no-such-option"])
