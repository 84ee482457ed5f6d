"""Journeys of newcomers in a bare Debian 12, from the installation on, with a wheel of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from bare_debian import bare_debian, environment
from documentation.blocks import ROOT
from documentation.journeys import Journey
from guide import Shell

from kvref_testbed.targets.needs import tool

pytestmark = [pytest.mark.nightly, pytest.mark.live, pytest.mark.timeout(900)]
PAGES = ["docs/how-to/django.md", "docs/how-to/flask.md"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(pip, check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare") / "root"
    bare_debian(folder)
    return folder


@pytest.fixture
def root(bare: Path, wheel: Path, tmp_path: Path) -> Path:
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", str(bare), str(root)], check=True)
    (root / "wheels").mkdir()
    (root / "wheels" / wheel.name).write_bytes(wheel.read_bytes())
    return root


@pytest.mark.parametrize("page", PAGES)
def test_a_newcomer_gets_what_the_page_shows(page: str, root: Path) -> None:
    journey = Journey(page)
    here = journey.environment | {
        **{name: value for name, value in environment().items() if os.environ[name] != value},
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
        "PIP_FIND_LINKS": "/wheels", "PIP_QUIET": "1",
    }  # fmt: skip
    with closing(Shell(root, here, [tool("chroot"), str(root)])) as shell:
        journey.run(shell, install=True)
