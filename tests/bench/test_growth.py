"""The script that measures how costs grow, and its chart."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from helpers.live import missing_skips

from generators import growth as charts
from kvref_testbed.targets.needs import tool

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "bench" / "growth.py"


@pytest.fixture(scope="module")
def growth() -> ModuleType:
    spec = importlib.util.spec_from_file_location("growth", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["growth"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_the_exponent_is_that_of_the_power(growth: ModuleType, power: float) -> None:
    assert growth.exponent([(at, 3 * at**power) for at in (1, 10, 1000)]) == pytest.approx(power)


def test_the_table_has_medians_and_the_largest_step(growth: ModuleType) -> None:
    costs = {1: (4, 5, 9), 10: (10, 9, 11), 100: (11, 12, 10)}
    points = [
        {"axis": "rows", "at": at, "server": "memcached", "verb": verb, "cpu": cpu, "p99": 2 * cpu, "per_second": 1}
        for (at, of), verb in product(costs.items(), ("get", "set"))
        for cpu in of
    ]
    settings = {"turns": 3, "seconds": 1, "server_cpus": "0", "client_cpus": "1"}
    document = {
        "made": "2026-01-02", "machine": {"cpu_model": "one"}, "settings": settings, "axes": {"rows": "rows"},
        "servers": {"memcached": "memcached"}, "points": points,
    }  # fmt: skip
    (line,) = [line for line in growth.table(document).splitlines() if line.startswith("| memcached 1.6.18 | get")]
    assert line == "| memcached 1.6.18 | get | 5.0 | 10.0 | 11.0 | 0.17 | 2.00 at 10 | 10 to 22 |"
    panels = ElementTree.fromstring(charts.chart(document)).findall("{http://www.w3.org/2000/svg}g")
    assert len(panels) == 1
    assert len(panels[0].findall("{http://www.w3.org/2000/svg}polyline")) == 2


def test_the_page_has_the_figures_of_the_committed_points(growth: ModuleType) -> None:
    document = growth.read(ROOT / "bench" / "results" / "growth.json", "points")
    text = (ROOT / "docs" / "explanation" / "growth.md").read_text(encoding="utf-8")
    assert growth.insert_table(text, growth.table(document), "growth") == text


@pytest.mark.live
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_each_axis_is_measured(growth: ModuleType, tmp_path: Path) -> None:
    with missing_skips():
        tool("memcached")
    file = tmp_path / "points.json"
    words = ["--servers", "kvref-sqlite,memcached", "--largest", "10", "--turns", "1", "--seconds", "0.3"]
    axes = [name for name in growth.AXES if name not in {"rows", "values"}]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words, "--axes", ",".join(axes), "--json", str(file)],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    points = json.loads(file.read_text())["points"]
    assert {each["axis"] for each in points} == set(axes)
    assert all(0 < each["cpu"] < each["p99"] * 1000 for each in points)
