"""Wheels and sdists: the same each time, and holding what git has of the packages and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from supply.locked import ROOT

import kvref

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


# Of each distribution: its folder, its packages there, and the most that a wheel or an sdist may have, in bytes. For kvref that
# is a promise; for the others about twice what they have: a data file that got in by mistake is mostly larger than that.
DISTRIBUTIONS = {
    "kvref": (".", ("kvref",), 1_000_000),
    "kvref-conformance": ("conformance", ("kvref_conformance", "kvref_conformance_cli", "kvref_testbed"), 2_500_000),
    "kvref-bench": ("bench", ("kvref_bench",), 500_000),
}
INFO = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
EGG_INFO = {"PKG-INFO", "SOURCES.txt", "dependency_links.txt", "entry_points.txt", "requires.txt", "top_level.txt"}
EACH = pytest.mark.parametrize("name", DISTRIBUTIONS)


def tracked(name: str) -> set[str]:
    """Return what the last commit has of the packages of a distribution, by path in its folder."""
    folder, packages, _ = DISTRIBUTIONS[name]
    command = ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD", *packages]
    listed = subprocess.run(command, cwd=ROOT / folder, capture_output=True, text=True, check=True)
    return set(listed.stdout.split("\0")) - {""}


@EACH
def test_a_wheel_holds_the_packages_and_nothing_else(name: str, built: dict[str, tuple[Path, Path]]) -> None:
    wheel, _ = built[name]
    wanted = tracked(name)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/METADATA").decode()
    info = {f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/{name}" for name in INFO}
    assert names - wanted == info
    assert wanted - names == set(), "not declared as package data"
    assert not [each for each in names if PurePosixPath(each).suffix in {".pyc", ".so"} or "tests" in each.split("/")]
    assert wheel.stat().st_size < DISTRIBUTIONS[name][2]
    assert "file:" not in metadata


@EACH
def test_an_sdist_holds_what_the_wheel_is_built_from(name: str, built: dict[str, tuple[Path, Path]]) -> None:
    _, sdist = built[name]
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    inside = {member.name.partition("/")[2] for member in members if member.isfile()}
    egg_info = f"{name.replace('-', '_')}.egg-info"
    generated = {"PKG-INFO", "setup.cfg", *(f"{egg_info}/{each}" for each in EGG_INFO)}
    assert inside == tracked(name) | {"pyproject.toml", "README.md", "LICENSE"} | generated
    assert {(member.uid, member.gid, member.uname, member.mtime) for member in members} == {
        (0, 0, "", members[0].mtime)
    }
    assert {member.mode for member in members} <= {0o644, 0o755}
    assert sdist.stat().st_size < DISTRIBUTIONS[name][2]


def test_a_wheel_built_in_a_clone_names_no_folder_of_it(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*pip, str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [archive.read(each).decode() for each in archive.namelist() if each.endswith("/METADATA")]
    assert re.findall(r"^Requires-Dist: (kvref-[^;]*)", metadata, re.MULTILINE) == [
        f"kvref-bench=={kvref.__version__}", f"kvref-conformance=={kvref.__version__}"
    ]  # fmt: skip
