"""What an account may not do to a mapping's table: the server decides, by explaining the statements that kvref sends.

EXPLAIN needs the privileges of the statement it explains, and changes nothing. So global privileges, partial revokes,
wildcards, columns and active roles count as they do for the statement itself (observed on MySQL 8.0.33 and 9.7.4, and
MariaDB 10.11.19); SHOW GRANTS has to be read differently in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pymysql

from kvref.engine.mapping import Mapping
from kvref.engine.operations import Row
from kvref.engine.rules import rules
from kvref.profiles import Profile
from kvref.storage.mysql.accounts import account
from kvref.storage.mysql.errors import DENIED
from kvref.storage.mysql.login import cause
from kvref.storage.mysql.schema import OF_THE_CLIENT
from kvref.storage.mysql.statements import Statements

# What fails without a privilege.
_READS: Final = ("get", "gat", "append", "prepend", "incr", "decr", "touch", "delete")
_ALL_COLUMNS: Final = ("set", "add", "replace", "append", "prepend", "incr", "decr")
_INSERTS: Final = ("set", "add")
_UPDATES: Final = ("set", "add", "replace", "append", "prepend", "incr", "decr", "touch")
_DELETES: Final = ("delete", "flush_all", "the removal of expired rows")
_Query = Callable[[str], Sequence[Sequence[Any]]]


def missing(query: _Query, mapping: Mapping, profile: Profile) -> str:
    """Return which privileges an account lacks on a mapping's table, what fails, and the GRANT; empty if none.

    The account can read the table. `query` returns the rows of a statement; MySQLError: its connection is lost.
    """
    lacks: list[str] = []
    unknown = ""
    # A table that another client has locked is not waited for.
    query("SET @kvref_wait = @@lock_wait_timeout, lock_wait_timeout = 1")
    fails: list[str] = []
    for privilege, commands, statement in _statements(mapping, profile):
        try:
            query(f"EXPLAIN {statement}")
        except pymysql.err.MySQLError as error:
            if error.args[0] in OF_THE_CLIENT:
                raise
            if error.args[0] not in DENIED:
                unknown = cause(error)
                break
            lacks += [] if privilege in lacks else [privilege]
            fails += commands
    query("SET lock_wait_timeout = @kvref_wait")
    who = account(query)
    words = [f"it is not known what {who} may do with {mapping.source}: {unknown}"] if unknown else []
    if lacks:
        privileges = ", ".join(lacks)
        columns = " all columns" if lacks == ["SELECT"] else ""
        words.insert(
            0,
            f"{who} may not {privileges}{columns} in {mapping.source}, and {', '.join(dict.fromkeys(fails))} fail:"
            f" GRANT {privileges} ON {mapping.source} TO {who}",
        )
    return "; ".join(words)


def _statements(mapping: Mapping, profile: Profile) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield what kvref sends: the privilege that it needs besides SELECT on the key, what fails without it, the SQL."""
    sql = Statements(mapping)
    row = Row(None, (None,) * len(mapping.values), None, None, None)
    clears = rules(profile).clears_unmapped
    yield "SELECT", _READS, sql.lookup(None)
    if clears:
        yield "SELECT", _ALL_COLUMNS, sql.every_column
    yield "INSERT", _INSERTS, sql.insert([row], clear_unmapped=clears)
    yield "UPDATE", _UPDATES, sql.update(None, row, clear_unmapped=clears)
    yield "DELETE", _DELETES, sql.remove(None)
