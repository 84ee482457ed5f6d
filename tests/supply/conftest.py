"""What is built once for all tests of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from supply.locked import CI


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Return wheel and sdist of each distribution of the last commit, built by `.ci/build`, which compares two builds."""
    out = tmp_path_factory.mktemp("dist")
    environment = {**os.environ, "CI_PYTHON": sys.executable}
    done = subprocess.run(
        ["bash", str(CI / "build"), str(out)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" bytes kvref") == len(list(out.iterdir())) == 6
    found = {}
    for name in ("kvref", "kvref-conformance", "kvref-bench"):
        stem = f"{name.replace('-', '_')}-"
        (wheel,), (sdist,) = out.glob(f"{stem}*.whl"), out.glob(f"{stem}*.tar.gz")
        found[name] = (wheel, sdist)
    return found
