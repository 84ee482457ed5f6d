"""Errors of a MySQL or MariaDB server and the exceptions that they become, in addition to those of every store."""

from __future__ import annotations

from typing import Final

import pymysql
from pymysql.constants import ER

from kvref.engine.operations import LockWaitError
from kvref.errors import KvrefError, StoreError

# What a table says to a row that it does not take: a constraint, a type, a trigger.
REFUSED: Final = (
    ER.BAD_NULL_ERROR, ER.DUP_ENTRY, ER.WARN_DATA_OUT_OF_RANGE, ER.WARN_DATA_TRUNCATED, ER.TRUNCATED_WRONG_VALUE,
    ER.NO_DEFAULT_FOR_FIELD, ER.TRUNCATED_WRONG_VALUE_FOR_FIELD, ER.DATA_TOO_LONG, ER.ROW_IS_REFERENCED,
    ER.NO_REFERENCED_ROW, ER.ROW_IS_REFERENCED_2, ER.NO_REFERENCED_ROW_2, 1690,
    1300, 1367, 1411, 1416, 1644, 3140, 3144, 3819, 4025,
)  # fmt: skip
# The account lacks a privilege: on a database, a table, a column, or for an administrative statement.
DENIED: Final = (
    ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR,
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
)  # fmt: skip
# No privilege DROP; other tables refer to it.
NO_TRUNCATE: Final = (ER.TABLEACCESS_DENIED_ERROR, 1701)
ROW_LOCKED: Final = 3572
LOCKED: Final = (ER.LOCK_WAIT_TIMEOUT, ROW_LOCKED)
# The server is read-only, and has written nothing: by a variable, or as a secondary of its cluster.
READ_ONLY: Final = (ER.OPTION_PREVENTS_STATEMENT, 1836)
STALE: Final = (ER.BAD_FIELD_ERROR, ER.NO_SUCH_TABLE, ER.KEY_DOES_NOT_EXITS, ER.BAD_DB_ERROR, ER.TABLE_DEF_CHANGED)
# A node that is not in the primary component of its Galera cluster rejects every statement.
NOT_READY: Final = 1047
_LOST: Final = [(number,) for number in (2006, 2013, 2055, 1053, 1927, 3169, 4031, NOT_READY)]


class RetryableError(KvrefError):
    """The data that the command has read is out of date: run the command again."""


class DuplicateError(RetryableError):
    """A row came up under the key that was missing when the command looked."""


class RowLockedError(LockWaitError):
    """A statement with NOWAIT found a locked row; MariaDB has the same error for that and for a locked table."""


class CycleError(RetryableError):
    """Transactions wait for each other; the server has ended this one, or only its statement."""


class LostError(StoreError):
    """The connection is gone; nothing of an open transaction is left."""


class HangError(StoreError):
    """The server did not answer within the timeout; a retry would not help."""


def ends_connection(error: pymysql.err.MySQLError) -> bool:
    """Return whether the connection is unusable after an error."""
    return error.args[:1] in _LOST
