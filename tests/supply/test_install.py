"""Installation into an environment of its own: `pip install kvref`, and `pip install '.[conformance]'` in a clone."""

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
from helpers import serving
from packaging.requirements import Requirement
from supply.locked import ROOT, licences

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


# What the dependencies of pyproject.toml bring along themselves.
BROUGHT = {"markdown-it-py", "mdurl", "pygments"}
NOT_REACHED = re.compile(r"No matching distribution|Connection|Max retries|Temporary failure")


@pytest.fixture(autouse=True, scope="module")
def nothing_of_the_tree() -> Iterator[None]:
    """Let no package be found but those that are installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        yield


def environment(folder: Path, package: str) -> Path:
    """Return the interpreter of a new environment with a package, in the versions of the lock."""
    (folder / "constraints.txt").write_text("".join(f"{pin}\n" for pin in licences.pins()))
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    made = folder / "venv" / "bin" / "python"
    pip = [str(made), "-m", "pip", "install", "--quiet", "--constraint", str(folder / "constraints.txt")]
    done = subprocess.run([*pip, package], capture_output=True, text=True, check=False)
    if done.returncode != 0 and NOT_REACHED.search(done.stderr) and not os.environ.get("CI"):
        pytest.skip(f"no package index is reached: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return made


def run(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(python), *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def python(
    nothing_of_the_tree: None, built: dict[str, tuple[Path, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the interpreter of an environment into which the wheel of kvref was installed alone."""
    return environment(tmp_path_factory.mktemp("installed"), str(built["kvref"][0]))


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


def test_doctor_and_clients_work(python: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/shop.sqlite"
    assert run(python, tmp_path, "-m", "kvref", "init", "--demo", "--store", store).returncode == 0
    done = run(python, tmp_path, "-m", "kvref", "doctor", "--store", store, "--profile", "kvref")
    assert (done.returncode, done.stderr, "rows of containers: 1 usable" in done.stdout) == (0, "", True)
    assert run(python, tmp_path, "-c", "from kvref.client import AsyncMappedClient, Columns").returncode == 0


def test_commands_of_the_other_distributions_name_what_installs_them(python: Path, tmp_path: Path) -> None:
    words = run(python, tmp_path, "-m", "kvref", "--help").stdout.split("Not installed:")[1]
    for name, extra in (("conform", "conformance"), ("target", "conformance"), ("bench", "bench")):
        fix = f"pip install 'kvref[{extra}]'"
        done = run(python, tmp_path, "-m", "kvref", name, "--any")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"Error: `kvref {name}` needs the package 'kvref-{extra}': {fix}\n"
        assert fix in words
    assert run(python, tmp_path, "-m", "kvref", "spec", "KV-MAP-001").stdout.endswith(
        ": pip install 'kvref[conformance]'\n"
    )


def test_an_extra_in_a_clone_installs_the_folders_of_the_clone(nothing_of_the_tree: None, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    python = environment(tmp_path, f"{clone}[conformance]")
    assert run(python, tmp_path, "-m", "pip", "check").returncode == 0
    done = run(python, tmp_path, "-m", "kvref", "conform", "--only", "KV-MAP-001", "--report", str(tmp_path / "report"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pip install 'kvref[bench]'" in run(python, tmp_path, "-m", "kvref", "bench").stderr
