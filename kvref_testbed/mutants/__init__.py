"""The reference server broken on purpose, one rule at a time, to put the judge on trial.

    python -m kvref_testbed.mutants                           # the page README.md: each mutant and how it is broken
    python -m kvref_testbed.mutants NAME serve ...            # `kvref serve` with that rule broken, without a row cache
    python -m kvref_testbed.mutants NAME@default-path serve ...    # the same with the row cache and the fast paths

`kvref conform --self-test` starts each of them both ways and counts it as killed when a case of its requirement fails
each time. Read `mutant.py` first; the other modules hold the mutants, by what of the server they break.
"""

from __future__ import annotations

from typing import Final

from kvref_testbed.mutants import batches, binary, cache, commands, kept_rows, mapping, meta, order, tables, toys
from kvref_testbed.mutants.mutant import Mutant

__all__ = [
    "CONTROL",
    "DEFAULT_PATH",
    "GROUPS",
    "MUTANTS",
    "OF_KEPT_ROWS",
    "SLOW_PATH_ONLY",
    "TOYS",
    "Mutant",
    "trials_of",
]

# The server as it is, for which `python -m kvref_testbed.mutants` has a name too.
CONTROL: Final = "none"
# By the first sentence of the module that defines them.
GROUPS: Final = {
    (module.__doc__ or "").splitlines()[0]: [each for each in vars(module).values() if isinstance(each, Mutant)]
    for module in (mapping, commands, order, meta, tables, batches, cache, binary, kept_rows, toys)
}
OF_KEPT_ROWS: Final = frozenset(each.name for each in vars(kept_rows).values() if isinstance(each, Mutant))
TOYS: Final = tuple(each.name for each in vars(toys).values() if isinstance(each, Mutant))
MUTANTS: Final = {each.name: each for group in GROUPS.values() for each in group}
# Behind a mutant's name: the server has the row cache and the fast paths that it has by default.
DEFAULT_PATH: Final = "@default-path"
# Mutants that survive on the default path, and why no case can see them there.
SLOW_PATH_ONLY: Final = {
    "shares_the_binding": "a connection chooses its fast path by its own binding, when it binds",
    "shows_the_stored_spelling": "the fast path answers under the word of the request, never under the row's key",
}


def trials_of(name: str) -> tuple[str, ...]:
    """Return what `python -m kvref_testbed.mutants` is given for each trial of a mutant.

    Args:
        name: of the mutant.
    """
    if name in OF_KEPT_ROWS:
        return (f"{name}{DEFAULT_PATH}",)
    return (name,) if name in SLOW_PATH_ONLY else (name, f"{name}{DEFAULT_PATH}")
