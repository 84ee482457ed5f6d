"""The reference server broken on purpose, one rule at a time, to put the judge on trial.

    python -m kvref_testbed.mutants                           # the page README.md: each mutant and how it is broken
    python -m kvref_testbed.mutants NAME serve ...            # `kvref serve` with that rule broken, by steps alone
    python -m kvref_testbed.mutants NAME@default-path serve ...    # the same with row cache and planned commands

`kvref conform --self-test` starts each of them both ways and counts it as killed when a case of its requirement fails
each time. With `--target kvref-mariadb`, or another kvref over a database, it does so over that database. Read
`mutant.py` first; the other modules hold the mutants, by what of the server they break.
"""

from __future__ import annotations

from typing import Final

from kvref_testbed.mutants import batches, binary, cache, commands, kept_rows, mapping, meta, order, tables, toys
from kvref_testbed.mutants.mutant import Mutant

__all__ = [
    "CONTROL",
    "DEFAULT_PATH",
    "FIRST_CALL",
    "GROUPS",
    "MUTANTS",
    "OF_KEPT_ROWS",
    "OF_SQLITE",
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
# Behind a mutant's name: the server has the row cache, and plans commands, as it does by default.
DEFAULT_PATH: Final = "@default-path"
# Environment variable of a mutant: path of the file that it creates when a function of its patch is first called.
FIRST_CALL: Final = "KVREF_MUTANT_FIRST_CALL"
# Mutants that survive on the default path, and why no case can see them there.
SLOW_PATH_ONLY: Final = {
    "shares_the_binding": "a connection chooses its planner by its own binding, when it binds",
    "shows_the_stored_spelling": "a planned get is answered under the word of the request, never under the row's key",
}


# Mutants that are not tried over a database, and why no case can see them there.
OF_SQLITE: Final = {
    **dict.fromkeys(
        (
            "takes_keys_by_their_first_letters", "compares_bounds_by_bytes", "replaces_rows_of_equal_values",
            "forgets_null_flags", "counts_a_full_page",
        ),
        "it changes statements of SQLite",
    ),
    **dict.fromkeys(
        ("locks_no_rows", "keeps_locks_after_the_end", "notices_no_deadlock", "flushes_beside_batches"),
        "it changes transactions over SQLite; a database has its own",
    ),
    **dict.fromkeys(
        ("keeps_what_sql_has_changed", "keeps_what_is_deleted"),
        "it changes the row cache of SQLite",
    ),
    "removes_expired_rows_that_it_finds": "the writes of a command that fails are rolled back",
    "stores_bytes_that_are_no_text": "the database rejects them",
    "keeps_the_view_over_a_flush": "the transaction that it leaves open blocks the suite's own statements",
}  # fmt: skip


def trials_of(name: str, *, over_sql: bool = False) -> tuple[str, ...]:
    """Return what `python -m kvref_testbed.mutants` is given for each trial of a mutant.

    Args:
        name: of the mutant.
        over_sql: the store is a database server.
    """
    if over_sql and name in OF_SQLITE:
        return ()
    if name in OF_KEPT_ROWS:
        return (f"{name}{DEFAULT_PATH}",)
    return (name,) if name in SLOW_PATH_ONLY else (name, f"{name}{DEFAULT_PATH}")
