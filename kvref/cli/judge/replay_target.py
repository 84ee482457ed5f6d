"""The target of a private kvref, over SQLite or InnoDB, that `kvref replay` and `kvref duel` hold conversations on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus.targets import innodb
from kvref_conformance.corpus.targets.innodb import InnoDBTarget
from kvref_conformance.corpus.targets.sqlite import SQLiteTarget
from kvref_testbed import targets

if TYPE_CHECKING:
    from contextlib import ExitStack

    from kvref_conformance.corpus.player import ReplayTarget

EMBEDDED: Final = "kvref-sqlite"


def open_kvref(name: str, profile: str, version: str, stack: ExitStack) -> ReplayTarget:
    """Start kvref and return its target; both end with the stack.

    Args:
        name: EMBEDDED, or a target that is kvref over a SQL server.
        profile: of kvref.
        version: the MySQL version whose defaults the tables take.
        stack: ends them.

    Raises:
        TargetError: it cannot be started.
    """
    if name == EMBEDDED:
        return SQLiteTarget(stack.enter_context(targets.kvref_server(profile)), version)
    options = innodb.options(version, mariadb=name == "kvref-mariadb")
    return InnoDBTarget(*stack.enter_context(targets.kvref_over_sql(name, profile, options)), version)
