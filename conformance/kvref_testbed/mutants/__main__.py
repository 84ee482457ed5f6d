"""The page README.md of this package: every mutant, how it is broken, and the requirement that must fail it."""

from __future__ import annotations

import os
import runpy
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from kvref.storage.base import MYSQL
from kvref_testbed.mutants import (
    CONTROL,
    DEFAULT_PATH,
    FIRST_CALL,
    GROUPS,
    MUTANTS,
    OF_KEPT_ROWS,
    OF_SQLITE,
    SLOW_PATH_ONLY,
    TOYS,
)
from kvref_testbed.mutants.mutant import planted_code
from kvref_testbed.steps import plan_nothing

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import CodeType, FrameType

HEAD = f"""\
# Mutants

Written by `python -m kvref_testbed.mutants > conformance/kvref_testbed/mutants/README.md`.

{len(MUTANTS)} servers, each with one broken rule. {len(TOYS)} of them are toy servers: they reply as if they had run a
command or applied a setting, and do nothing. `kvref conform --self-test` judges each mutant by the cases of its
requirement, of which at least one must fail, and the unbroken server by all of these cases, which must hold.
Each mutant runs twice: by the steps of its verbs, without a row cache, and on the default path, where commands are
planned. With `--target kvref-mysql-8.0`, or another kvref over a database, both runs are over that database.
`kvref spec ID` shows a requirement. `python -m kvref_testbed.mutants NAME serve --store sqlite:///FILE` starts a
mutant.
"""


def page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD]
    for title, mutants in GROUPS.items():
        lines += [f"## {title.rstrip('.')}", "", "| mutant | how it is broken | requirement |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {each.about} | {each.requirement} |" for each in mutants]
        lines.append("")
    lines += ["## Not tried on the default path", "", "| mutant | why no case can see it there |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in SLOW_PATH_ONLY.items()]
    lines += ["", "## Not tried over a database", "", "| mutant | why no case can see it there |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in OF_SQLITE.items()]
    return "\n".join([*lines, ""])


def record_first_call(codes: Collection[CodeType], file: Path) -> None:
    """Create a file at the first call of some code, in any thread of this process.

    Args:
        codes: of functions.
        file: that does not exist yet.
    """

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in codes:
            file.touch()
            sys.setprofile(None)

    threading.setprofile(profile)
    sys.setprofile(profile)


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
    if name not in {CONTROL, *MUTANTS}:
        sys.stderr.write(f"no mutant {name!r}: `python -m kvref_testbed.mutants` lists them\n")
        sys.exit(2)
    if name in MUTANTS:
        MUTANTS[name].patch()
        if file := os.environ.get(FIRST_CALL):
            record_first_call(planted_code(MUTANTS[name]), Path(file))
    if name == given and name not in OF_KEPT_ROWS:
        plan_nothing()
        rest = [f"{each}?coalesce=0" if each.startswith(MYSQL) else each for each in rest]
        rest += ["--set", "row_cache_bytes=0"]
    sys.argv = ["kvref", *rest]
    # By name, because the command line imports this package: it judges the mutants.
    runpy.run_module("kvref", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
