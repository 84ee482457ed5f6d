"""`pip install kvref` into an environment of its own: it brings what serving needs, and serves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import serving
from packaging.requirements import Requirement
from supply.locked import ROOT, licences

pytestmark = pytest.mark.nightly


# What the dependencies of pyproject.toml bring along themselves.
BROUGHT = {"markdown-it-py", "mdurl", "pygments"}
NOT_REACHED = re.compile(r"No matching distribution|Connection|Max retries|Temporary failure")


@pytest.fixture(autouse=True, scope="module")
def nothing_of_the_tree() -> Iterator[None]:
    """Let no package be found but those that are installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        yield


@pytest.fixture(scope="module")
def python(nothing_of_the_tree: None, built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment into which the wheel was installed, with the versions of the lock."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "constraints.txt").write_text("".join(f"{pin}\n" for pin in licences.pins()))
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    made = folder / "venv" / "bin" / "python"
    command = [
        str(made),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        str(folder / "constraints.txt"),
        str(built[0]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and NOT_REACHED.search(done.stderr) and not os.environ.get("CI"):
        pytest.skip(f"no package index is reached: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return made


def test_it_brings_only_what_serving_needs(python: Path) -> None:
    listed = subprocess.run([str(python), "-m", "pip", "list", "--format", "json"], capture_output=True, check=True)
    names = {each["name"].lower() for each in json.loads(listed.stdout)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {Requirement(each).name for each in project["dependencies"]}
    assert names - {"pip", "setuptools"} == wanted | BROUGHT | {"kvref"}


def test_it_serves(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(python))
    with serving.serving(tmp_path / "shop.sqlite") as served, served.connect() as connection:
        assert serving.ask(connection, b"get @@aaa.AA\r\n") == b"VALUE @@aaa.AA 8 12\r\nHELLO, HELLO\r\nEND\r\n"
