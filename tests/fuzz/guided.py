"""Coverage-guided fuzz of the parsers with atheris; what it finds to be new is kept in a folder of inputs.

python tests/fuzz/guided.py CORPUS [-runs=N] [-max_total_time=S]      # options of libFuzzer
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))

with atheris.instrument_imports(include=["kvref.protocol"]):
    from fuzz.parsers import check


def main() -> None:
    """Run until libFuzzer ends; an input that breaks a rule is written as a file, and the exit code is not 0."""
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
