"""The wheel and the sdist: the same each time, and holding what git has of the packages and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from supply.locked import CI, ROOT

pytestmark = pytest.mark.nightly


PACKAGES = {
    "kvref": "",
    "conformance/kvref_testbed": "conformance/",
    "conformance/kvref_conformance": "conformance/",
    "conformance/kvref_conformance_cli": "conformance/",
    "bench/kvref_bench": "bench/",
}
INFO = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
EGG_INFO = {"PKG-INFO", "SOURCES.txt", "dependency_links.txt", "entry_points.txt", "requires.txt", "top_level.txt"}
# Twice what they have now, in bytes: a data file that got in by mistake is mostly larger than that.
MOST = 4_000_000


def tracked() -> set[str]:
    """Return what the last commit has of the packages."""
    command = ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD", *PACKAGES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.split("\0")) - {""}


def test_the_wheel_holds_the_packages_and_nothing_else(built: tuple[Path, Path]) -> None:
    wheel, _ = built
    wanted = set()
    for path in tracked():
        prefix = next(cut for package, cut in PACKAGES.items() if path.startswith(f"{package}/"))
        wanted.add(path.removeprefix(prefix))
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = {f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/{name}" for name in INFO}
    assert names - wanted == info
    assert wanted - names == set(), "not declared as package data"
    assert not [name for name in names if PurePosixPath(name).suffix in {".pyc", ".so"} or "tests" in name.split("/")]
    assert wheel.stat().st_size < MOST


def test_the_sdist_holds_what_the_wheel_is_built_from(built: tuple[Path, Path]) -> None:
    _, sdist = built
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    inside = {member.name.partition("/")[2] for member in members if member.isfile()}
    generated = {"PKG-INFO", "setup.cfg", *(f"kvref.egg-info/{name}" for name in EGG_INFO)}
    assert inside == tracked() | {"pyproject.toml", "README.md", "LICENSE"} | generated
    assert {(member.uid, member.gid, member.uname, member.mtime) for member in members} == {
        (0, 0, "", members[0].mtime)
    }
    assert {member.mode for member in members} <= {0o644, 0o755}
    assert sdist.stat().st_size < MOST


def test_a_difference_is_told(tmp_path: Path) -> None:
    # A build of its own that is never the same twice: it writes the process into a file that goes along.
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nfor source; do :; done\n[ "$2" != build ] || echo "# $$" >> "$source/kvref/errors.py"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python)}
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
