"""The comparison with memcaslap understands what memcaslap prints; its figures are for a quiet machine."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from live import missing_skips, target_or_skip
from rich.console import Console

from kvref_bench.errors import BenchError
from kvref_testbed.targets.needs import tool

SCRIPT = Path(__file__).parents[2] / "bench" / "memcaslap_pairs.py"

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def pairs() -> Any:
    specification = importlib.util.spec_from_file_location("memcaslap_pairs", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["memcaslap_pairs"] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def test_what_memcaslap_prints_is_read(pairs: Any) -> None:
    with missing_skips():
        tool("memcaslap")
    with target_or_skip("memcached") as target:
        operations, a_second, cpu = pairs.memcaslap(target.address, "-x", "6400")
        assert operations == 6400
        assert a_second > 0
        assert cpu > 0
        with pytest.raises(BenchError, match="memcaslap ended with"):
            pairs.memcaslap(target.address, "--no-such-option")


def test_ratios_are_of_one_round(pairs: Any) -> None:
    rounds = [
        [pairs.Result(pairs.MEMCASLAP, 100.0, 10.0), pairs.Result(pairs.SINGLE, 90.0, 12.0), pairs.Result(pairs.DEEP, 300.0, 4.0)],
        [pairs.Result(pairs.DEEP, 600.0, 5.0), pairs.Result(pairs.SINGLE, 220.0, 11.0), pairs.Result(pairs.MEMCASLAP, 200.0, 10.0)],
    ]  # fmt: skip
    table, document = pairs.told(rounds)
    assert document["ratios"][pairs.SINGLE] == {"operations": [0.9, 1.1], "cpu": [1.2, 1.1]}
    assert document["medians"][pairs.DEEP] == {"operations": 3.0, "cpu": 0.45}
    json.dumps(document)
    console = Console(width=160, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    assert "1.00" in captured.get()
