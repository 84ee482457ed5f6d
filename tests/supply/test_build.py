"""Wheels and sdists: the same each time, and holding what git has of the packages and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from supply.locked import CI, ROOT

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


def test_a_difference_is_reported(tmp_path: Path) -> None:
    # A build of its own that is never the same twice: it writes the process into a file that goes along.
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nfor source; do :; done\n[ "$2" != build ] || echo "# $$" >> "$source/kvref/errors.py"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    environment = {**os.environ, "CI_PYTHON": str(python)}
    done = subprocess.run(
        ["bash", str(CI / "build"), str(tmp_path / "out")], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout
    assert "is not the same when it is built again" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("owner", [0, 1000])
def test_an_sdist_is_packed_again_without_its_time_and_owner(tmp_path: Path, owner: int) -> None:
    paths = [tmp_path / f"{number}.tar.gz" for number in range(2)]
    for number, path in enumerate(paths):
        (tmp_path / "file").write_text("x")
        os.utime(tmp_path / "file", (number + 0.5, number + 0.5))
        with tarfile.open(path, "w:gz") as archive:
            member = archive.gettarinfo(tmp_path / "file", "file")
            member.uid = owner * number
            with (tmp_path / "file").open("rb") as content:
                archive.addfile(member, content)
        subprocess.run(
            [sys.executable, str(CI / "repack.py"), str(path)],
            env={**os.environ, "SOURCE_DATE_EPOCH": "1000"},
            check=True,
        )
    assert paths[0].read_bytes() == paths[1].read_bytes()
