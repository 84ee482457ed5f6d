"""What is built once for all tests of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from supply.locked import CI


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the wheel and the sdist of the last commit, built by `.ci/build`, which compares two builds."""
    out = tmp_path_factory.mktemp("dist")
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        ["bash", str(CI / "build"), str(out)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    assert done.stdout.count(" bytes kvref-") == len(list(out.iterdir())) == 2
    return wheel, sdist
