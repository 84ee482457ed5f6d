"""The stage of a private kvref, over SQLite or InnoDB, that `kvref replay` and `kvref duel` hold conversations on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvref_conformance.corpus import innodb_stage
from kvref_conformance.corpus.innodb_stage import InnoDBStage
from kvref_conformance.corpus.sqlite_stage import SQLiteStage
from kvref_testbed import targets

if TYPE_CHECKING:
    from contextlib import ExitStack

    from kvref_conformance.corpus.player import Stage

EMBEDDED: Final = "kvref-sqlite"


def open_kvref(name: str, profile: str, version: str, stack: ExitStack) -> Stage:
    """Start kvref and return its stage; both end with the stack.

    Args:
        name: EMBEDDED, or a target that is kvref over a SQL server.
        profile: of kvref.
        version: the MySQL version whose defaults the tables take.
        stack: ends them.

    Raises:
        TargetError: it cannot be started.
    """
    if name == EMBEDDED:
        return SQLiteStage(stack.enter_context(targets.kvref_server(profile)), version)
    options = innodb_stage.options(version, mariadb=name == "kvref-mariadb")
    return InnoDBStage(*stack.enter_context(targets.kvref_over_sql(name, profile, options)), version)
