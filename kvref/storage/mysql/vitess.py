"""Vitess: what its gate, vtgate, does otherwise than a server, and which shard has the row of a key.

vtgate forwards each statement to the shards whose rows it is about. A transaction of kvref is of one shard: with
`transaction_mode = 'single'` vtgate refuses another one, so that no acknowledgement depends on a commit of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.cursors import Cursor

from kvref.storage.config.containers import Vindex
from kvref.storage.mysql.errors import DENIED, LOCKED, REFUSED, STALE, ends_connection
from kvref.storage.rows import text_of

_GATE: Final = "Vitess"  # in the version that it reports, see vtgate's --mysql-server-version
SETTING: Final = "SET SESSION transaction_mode = 'single'"
# What kvref does not do over Vitess, or otherwise than over one server, for people.
LIMITS: Final = (
    "Vitess: a transaction has rows of one shard: daemon_memcached_r_batch_size and daemon_memcached_w_batch_size"
    " above 1 are refused",
    "Vitess: flush_all empties one shard after another; where it fails, some may be empty",
    "Vitess: a get of several keys, or of a range, reads each shard at its own moment",
)
# Errors of a statement, after which the transaction is as it was. After any other one vtgate may have dropped the
# transaction of the shard, and yet report it as open, begin another one for the next statement, and commit that.
OF_STATEMENT: Final = (*REFUSED, *LOCKED, *STALE, *DENIED)
# The transaction is over and has written nothing: it took too long, its tablet restarted, or it is of two shards.
ENDED: Final = re.compile(r"multi-db transaction attempted|transaction \d+: (not found|ended at)")
# The tablet had rolled it back before the COMMIT.
TOO_LATE: Final = re.compile(r"transaction \d+: ended at [^(]*\(exceeded timeout")
# Seconds to wait before each further attempt after a transient error: a tablet that has noticed its stale connections
# is out of service for up to 1.3 s (seen with Vitess 0.24.4).
PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
_OF_TABLET: Final = "vttablet: rpc error"
_NO_TABLET: Final = "no healthy tablet available"
# What vtgate adds to the words of an error; after `Sql:` and `BindVars:` it quotes the statement with its values.
_ADDED: Final = re.compile(r" \(errno \d+\) \(sqlstate |: Sql: \"| \(CallerID: ")
# The words of MySQL in an error of a tablet.
_OF_MYSQL: Final = re.compile(
    r"(?:[\w ]+: )?target: \S+: vttablet: rpc error: code = \w+ desc = (?P<words>.*?) \(errno \d+\) \(sqlstate ",
    re.DOTALL,
)


def words(text: str) -> str:
    """Return what MySQL said in an error of vtgate; of any other error all but the statement and its values."""
    found = _OF_MYSQL.match(text)
    return _ADDED.split(text, 1)[0] if found is None else found["words"]


def is_transient(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is that of a tablet whose database was restarted.

    A tablet keeps idle connections to its mysqld. After a restart, it reports the first closed one that it finds by
    error 2006 or 2013, although the connection to vtgate is usable, and is then out of service until it has replaced
    all of them.
    """
    while error is not None:
        if isinstance(error, pymysql.err.MySQLError):
            text = str(error.args[-1]) if error.args else ""
            if _NO_TABLET in text or (_OF_TABLET in text and ends_connection(error)):
                return True
        error = error.__cause__
    return False


def is_gate(connection: Connection[Cursor]) -> bool:
    return _GATE in str(connection.server_version)  # type: ignore[attr-defined]


def vindex_of(rows: Callable[[str], Sequence[Sequence[Any]]], schema: str, source: str) -> Vindex | None:
    """Return what finds the shard of a row of a table, None if the keyspace `schema` has one shard for all.

    `rows` returns the rows of a statement; its MySQLError is raised if the connection is lost.
    """
    sharded = {text_of(name): text_of(value) for name, value, *_ in rows("SHOW VSCHEMA KEYSPACES")}
    if sharded.get(schema) != "true":
        return None
    try:
        shown = [[*map(text_of, row)] for row in rows(f"SHOW VSCHEMA VINDEXES ON {source}")]
    except pymysql.err.MySQLError as error:
        if error.args[0] != ER.NO_SUCH_TABLE:
            raise
        shown = []  # the shards have it, the vschema does not
    if not shown:
        return Vindex(schema, "", "", ())
    columns, name, kind, *_ = shown[0]  # the primary vindex comes first
    return Vindex(schema, name, kind, tuple(columns.split(", ")))


def shards_of(rows: Callable[[str], Sequence[Sequence[Any]]], keyspace: str) -> list[str]:
    """Return the shards of a keyspace that serve, each as USE takes it; raises MySQLError."""
    named = [text_of(row[0]).partition("/") for row in rows("SHOW VITESS_SHARDS")]
    return [f"{name}:{shard}" for name, _, shard in named if name == keyspace]
