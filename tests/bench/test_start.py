"""`bench/start.py` starts a server and prints two medians."""

from __future__ import annotations

import re
import subprocess
import sys


def test_it_measures_both() -> None:
    done = subprocess.run(
        [sys.executable, "bench/start.py", "--times", "1"], capture_output=True, text=True, check=True
    )
    assert re.findall(r"^(.*): \d\.\d{3} s \(", done.stdout, re.MULTILINE) == [
        "kvref serve, first answer",
        "kvref --help",
    ]
