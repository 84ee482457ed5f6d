"""The stages of an exchange are all measured, and answer what the whole answers; no test asserts a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "micro.py"
STAGES = {"parse", "dispatch", "storage", "commit", "reply", "run", "rest", "whole"}
CASES = {
    f"{what}, {protocol}" for what in ("get hit", "get miss", "get of 100", "set") for protocol in ("text", "binary")
}
FEW = ("--keys", "200", "--count", "40")


def run(folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    command = [sys.executable, str(SCRIPT), *FEW, *options, "--json", "micro.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "micro.json").read_text()), done.stdout


@pytest.mark.nightly
def test_every_stage_of_every_case_is_measured(tmp_path: Path) -> None:
    made, told = run(tmp_path, "--rounds", "2")
    results = {each["case"]: each["stages"] for each in made["results"]}
    assert results.keys() == CASES
    for case, stages in results.items():
        assert stages.keys() == STAGES
        assert case in told
        for stage in ("parse", "storage", "reply", "whole"):
            assert stages[stage]["us"] > 0, (case, stage)
        assert (stages["commit"]["us"] > 0) == case.startswith("set")
        for cell in stages.values():
            assert cell["min"] <= cell["us"] <= cell["max"]
        # With two rounds a median is a mean, and means add up.
        assert stages["whole"]["share"] == 1
        parts = [cell for stage, cell in stages.items() if stage not in {"run", "whole"}]
        assert sum(cell["share"] for cell in parts) == pytest.approx(1)
        assert sum(cell["us"] for cell in parts) == pytest.approx(stages["whole"]["us"])
        assert stages["dispatch"]["us"] + stages["storage"]["us"] == pytest.approx(stages["run"]["us"])
    assert made["settings"] == {"count": 40, "rounds": 2, "keys": 200, "tick": 32}
    assert str(tmp_path) not in json.dumps(made)


@pytest.mark.nightly
def test_a_profile_tells_functions(tmp_path: Path) -> None:
    made, told = run(tmp_path, "--profile", "0.3", "--cases", "get hit, text", "--cases", "set, binary")
    assert [each["case"] for each in made["results"]] == ["get hit, text", "set, binary"]
    for each in made["results"]:
        assert each["samples"] > 0
        assert sum(each["rooms"].values()) == pytest.approx(1)
        assert {"kvref/server", "kvref/storage"}.intersection(each["rooms"])
        assert any(function["file"].startswith("kvref/") for function in each["functions"])
        assert each["calls"] > 1
        assert each["case"] in told


def test_an_unknown_case_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--cases", "get"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("micro: no case get: choose among get hit, text; get hit, binary")
