"""Packages that the examples need in addition to kvref."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from platformdirs import user_cache_path

EXAMPLES = Path(__file__).parents[2] / "examples"


def example_packages() -> Path:
    """Return a folder with the packages of the examples, kept in the user's cache; skip the test if pip cannot install them."""
    pins = (EXAMPLES / "requirements.txt").read_bytes()
    key = hashlib.sha256(pins + repr(sys.version_info[:2]).encode()).hexdigest()[:16]
    folder = user_cache_path("kvref") / "examples" / key
    if not folder.exists():
        building = folder.with_name(f"{key}.{os.getpid()}")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, "--target", str(building), "-r", str(EXAMPLES / "requirements.txt")],
            capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(building, ignore_errors=True)
            reason = f"pip cannot install examples/requirements.txt: {done.stderr[-300:]}"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        if not folder.exists():
            building.rename(folder)
    return folder
