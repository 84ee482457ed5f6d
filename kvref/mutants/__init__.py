"""The reference server broken on purpose, one rule at a time, to put the judge on trial.

    python -m kvref.mutants                                 # the page README.md: each mutant and how it is broken
    python -m kvref.mutants NAME serve --listen ...         # `kvref serve` with that rule broken

`kvref conform --self-test` starts each of them and counts it as killed when a case of its requirement fails. Read
`mutant.py` first; the other modules hold the mutants, by what of the server they break.
"""

from __future__ import annotations

from typing import Final

from kvref.mutants import batches, binary, cache, commands, kept_rows, mapping, meta, tables
from kvref.mutants.mutant import Mutant

__all__ = ["CONTROL", "GROUPS", "MUTANTS", "OF_KEPT_ROWS", "Mutant"]

# The server as it is, for which `python -m kvref.mutants` has a name too.
CONTROL: Final = "none"
# By the first sentence of the module that defines them.
GROUPS: Final = {
    (module.__doc__ or "").splitlines()[0]: [each for each in vars(module).values() if isinstance(each, Mutant)]
    for module in (mapping, commands, meta, tables, batches, cache, binary, kept_rows)
}
OF_KEPT_ROWS: Final = frozenset(each.name for each in vars(kept_rows).values() if isinstance(each, Mutant))
MUTANTS: Final = {each.name: each for group in GROUPS.values() for each in group}
