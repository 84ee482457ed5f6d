"""A page of measured figures is not older than the version of kvref that it describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvref import __version__
from support import answer

ROOT = Path(__file__).parents[2]
RUNS = sorted((ROOT / "notebooks" / "data" / "laptop").glob("*/run.json"))
RESULTS = ROOT / "bench" / "results"
PAIRS = [*sorted(RESULTS.glob("pairs*.json")), *sorted(RESULTS.glob("shards*.json"))]
PLUGINS = {"mysql-5.6-plugin", "mysql-8.0-plugin"}
STORES = {"kvref-sqlite", "kvref-mysql-8.0"}


def record(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def minor(version: str) -> tuple[int, ...]:
    """Return the part of a version that a release with new figures changes: 0.3 of 0.3.1."""
    return tuple(int(part) for part in version.split(".")[:2])


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_a_run_of_the_notebooks_measured_this_version(path: Path) -> None:
    run = record(path)
    measured = {run["tool"]["version"]}
    measured |= {each["version"].split("+")[1].split("-")[0] for each in run["servers"] if each["kind"] == "kvref"}
    old = {version for version in measured if minor(version) < minor(__version__)}
    assert not old, (
        f"{run['scenario']['name']} measured {old}: git rm -r notebooks/data/laptop; bash .ci/part notebook-runs laptop"
    )


@pytest.mark.parametrize("path", [*PAIRS, RESULTS / "setups.json"], ids=lambda path: path.stem)
def test_a_table_of_speed_measured_this_version(path: Path) -> None:
    assert minor(record(path)["tool"]["version"]) >= minor(__version__), (
        f"kvref bench pairs and setups write {path.name}"
    )


def test_the_runs_of_the_notebooks_have_both_plugins_and_both_stores() -> None:
    assert RUNS
    for path in RUNS:
        assert {each["name"] for each in record(path)["servers"]} >= PLUGINS | STORES, path


def test_the_source_line_of_a_chart_has_versions_days_and_machine() -> None:
    runs = [record(path) for path in RUNS[:1]]
    line = answer.source(runs)
    machine = runs[0]["machine"]
    for part in (
        f"kvref {runs[0]['tool']['version']}",
        runs[0]["began"][:10],
        f"{machine['cpu_model']}, {machine['cores']} cores",
    ):
        assert part in line
    other = runs[0] | {"began": "2030-01-01T00:00:00Z", "tool": {"version": "9.9.0"}}
    assert f"{runs[0]['began'][:10]} to 2030-01-01" in answer.source([*runs, other])
    assert "kvref 9.9.0" in answer.source([*runs, other])
