"""Every exchange is measured, with complete replies; no test asserts a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

SCRIPT = Path(__file__).parents[2] / "bench" / "micro.py"
CASES = [
    f"{what}, {protocol}" for what in ("get hit", "get miss", "get of 100", "set") for protocol in ("text", "binary")
]
CASES += ["set of 100, quiet binary", "set of 100, quiet binary, any bytes"]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=False, timeout=200
    )


def test_every_case_is_measured(tmp_path: Path) -> None:
    pyperf = pytest.importorskip("pyperf")
    file = tmp_path / "micro.json"
    done = run("--keys", "200", "--debug-single-value", "-o", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    suite = pyperf.BenchmarkSuite.load(str(file))
    assert suite.get_benchmark_names() == CASES
    assert all(value > 0 for benchmark in suite for value in benchmark.get_values())


def test_an_unknown_case_is_refused() -> None:
    pytest.importorskip("pyperf")
    done = run("--cases", "get")
    assert done.returncode == 1
    assert done.stderr.startswith("micro: no case get: choose among get hit, text; get hit, binary")
