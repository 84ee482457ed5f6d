"""Journeys of newcomers in a bare Debian 12, from the installation on, with wheels of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from documentation.blocks import ROOT
from documentation.journeys import Journey
from helpers.bare_debian import bare_debian, environment
from helpers.guide import Shell, blocks, fits, migration
from helpers.live import sql_server_or_skip, target_or_skip

from kvref_testbed.targets.needs import tool
from kvref_testbed.targets.ports import free_port

pytestmark = [pytest.mark.nightly, pytest.mark.live, pytest.mark.timeout(900)]
PAGES = ["docs/how-to/django.md", "docs/how-to/flask.md"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the wheels of the three distributions."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    for name in (".", "conformance", "bench"):
        subprocess.run([*pip, str(ROOT / name)], check=True)
    return list(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare") / "root"
    bare_debian(folder)
    return folder


@pytest.fixture
def root(bare: Path, wheels: list[Path], tmp_path: Path) -> Path:
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", str(bare), str(root)], check=True)
    (root / "wheels").mkdir()
    for wheel in wheels:
        (root / "wheels" / wheel.name).write_bytes(wheel.read_bytes())
    return root


def entered(root: Path, more: dict[str, str]) -> Shell:
    """Return a shell in a bare Debian, where pip finds the wheels."""
    here = more | {
        **{name: value for name, value in environment().items() if os.environ[name] != value},
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
        "PIP_FIND_LINKS": "/wheels", "PIP_QUIET": "1",
    }  # fmt: skip
    return Shell(root, here, [tool("chroot"), str(root)])


@pytest.mark.parametrize("page", PAGES)
def test_a_newcomer_gets_what_the_page_shows(page: str, root: Path) -> None:
    journey = Journey(page)
    with closing(entered(root, journey.environment)) as shell:
        journey.run(shell, install=True)


def test_an_operator_migrates_with_debians_programs(root: Path) -> None:
    """The whole guide but for the commands that boot servers of their own, from 8.0 to 9.7."""
    with target_or_skip("mysql-8.0-plugin") as old, sql_server_or_skip("mysql-9.7") as new:
        os.link(str(old.socket), root / "old.sock")
        more = {
            "COLUMNS": "200",
            "OLD_SOCKET": "/old.sock",
            "OLD_MEMCACHED": old.memcached(),
            "NEW_PORT": str(new.port),
            "KVREF": f"127.0.0.1:{free_port()}",
        }
        with closing(entered(root, more)) as shell:
            for block in blocks(migration()):
                if "kvref duel" in block.commands:
                    continue
                printed = shell.run(block.commands.replace(" --set-gtid-purged=OFF", ""))
                assert block.shown is None or fits(block.shown, printed), f"{block.commands}\nprinted\n{printed}"
