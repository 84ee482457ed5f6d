"""The command line with one rule of the server broken: `python -m kvref_testbed.mutants NAME serve --store ...`."""

from __future__ import annotations

import runpy
import sys

from kvref_testbed.mutants import CONTROL, DEFAULT_PATH, MUTANTS, OF_KEPT_ROWS
from kvref_testbed.mutants.page import page


def main(words: list[str]) -> None:
    """Break the server and run `kvref` in this process; without words, write the page.

    Args:
        words: name of a mutant, with `DEFAULT_PATH` behind it or without, then what `kvref` is to do.
    """
    if not words:
        sys.stdout.write(page())
        return
    given, *rest = words
    name = given.removesuffix(DEFAULT_PATH)
    if name in MUTANTS:
        MUTANTS[name].patch()
        if name == given and name not in OF_KEPT_ROWS:
            rest += ["--set", "row_cache_bytes=0"]  # every command is one of the slow path
    elif name != CONTROL:
        sys.stderr.write(f"no mutant {name!r}: `python -m kvref_testbed.mutants` lists them\n")
        sys.exit(2)
    sys.argv = ["kvref", *rest]
    # By name, because the command line imports this package: it judges the mutants.
    runpy.run_module("kvref", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
