"""The reference server with one rule broken: `python serve_mutant.py NAME serve --listen ... --store ...`."""

from __future__ import annotations

import sys

import batch_mutants  # noqa: F401 - registers its mutants
import binary_mutants  # noqa: F401
import cache_mutants  # noqa: F401
import meta_mutants  # noqa: F401
import protocol_mutants  # noqa: F401
import table_mutants  # noqa: F401
from mutant import MUTANTS

from kvref.cli import main

if __name__ == "__main__":
    MUTANTS[sys.argv[1]]()
    main(sys.argv[2:])
