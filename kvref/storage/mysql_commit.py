"""COMMIT: made durable, refused by a cluster, or nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.cursors import Cursor

from kvref.storage.mysql_errors import NOT_READY, CycleError, LostError, ends_connection

_UNKNOWN: Final = "it is not known whether it was written"
# The cluster has certified another transaction of the same rows: Galera's words, and Group Replication's.
_REFUSED: Final = (ER.LOCK_DEADLOCK, 3101)
# The node lost the others while it waited for a place in their order: they may have the transaction. With this text
# it never asked for one.
_IN_DOUBT: Final = (1180, 3100)
_TOO_LARGE: Final = "Maximum writeset size exceeded"


def commit(connection: Connection[Cursor], words: Callable[[pymysql.err.MySQLError], str]) -> str | None:
    """Make the transaction of a connection durable; returns why it is lost, or that its outcome is not known.

    Args:
        connection: in a transaction.
        words: tells what an error says.

    Raises:
        CycleError: the cluster refuses it for another's that came first; nothing of it is written.
        LostError: the node is none of its cluster any more; nothing of it is written.
    """
    try:
        connection.commit()
    except pymysql.err.MySQLError as error:
        number, text = (*error.args, "", "")[:2]
        if number == NOT_READY:
            raise LostError(words(error)) from error
        if number in _REFUSED:
            raise CycleError(words(error)) from error
        in_doubt = number in _IN_DOUBT and _TOO_LARGE not in str(text)
        unknown = in_doubt or ends_connection(error) or not connection.open
        return f"commit: {words(error)}{f': {_UNKNOWN}' if unknown else ''}"
    except OSError as error:
        return f"commit: {error}: {_UNKNOWN}"
    return None
