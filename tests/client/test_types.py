"""mypy over a user's program: what a client returns, and which calls are wrong, by line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("user_program.py.txt")
_ERROR = re.compile(r"^[^:]+:(\d+): error: .*\[([a-z-]+)\]$", re.MULTILINE)


@pytest.mark.programs
def test_mypy_finds_the_wrong_calls_and_no_others(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.read_text())
    words = [
        "--strict",
        "--config-file",
        os.devnull,
        "--cache-dir",
        str(tmp_path / "cache"),
        "--python-version",
        "3.11",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, str(program)],
        env=os.environ | {"MYPYPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    lines = program.read_text().splitlines()
    wanted = [(number, code) for number, line in enumerate(lines, 1) for code in re.findall(r"# error: (\S+)$", line)]
    found = {(int(number), code) for number, code in _ERROR.findall(done.stdout)}
    assert found == set(wanted), done.stdout + done.stderr
    assert len(wanted) > 15
