"""Meaning of an error of COMMIT: rejected, failed, or unknown."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from kvref.engine.operations import LockWaitError
from kvref.storage.mysql.connection import commit
from kvref.storage.mysql.errors import CycleError, LostError
from kvref.storage.mysql.login import cause

UNKNOWN = ": it is not known whether it was written"


class Refusing:
    """A connection whose COMMIT ends with an error; which error, no server can be made to say at will."""

    open = True

    def __init__(self, error: Exception) -> None:
        self._error = error

    def commit(self) -> None:
        raise self._error


def outcome(error: Exception) -> str | None:
    connection: Any = Refusing(error)
    return commit(connection, cause)


@pytest.mark.parametrize(
    ("number", "text", "kind"),
    [
        (1213, "Deadlock found when trying to get lock; try restarting transaction", CycleError),
        (3101, "Plugin instructed the server to rollback the current transaction.", CycleError),
        (1047, "WSREP has not yet prepared node for application use", LostError),
        (1205, "Lock wait timeout exceeded; try restarting transaction", LockWaitError),
    ],
)
def test_refused_and_not_written(number: int, text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"^{number} {text}$"):
        outcome(pymysql.err.OperationalError(number, text))


@pytest.mark.parametrize(
    ("number", "text", "end"),
    [
        (1180, "Error while appending streaming replication fragment(provider status: Not connected)", UNKNOWN),
        (1180, "Maximum writeset size exceeded", ""),
        (3100, "Error on observer while running replication hook 'before_commit'.", UNKNOWN),
        (2013, "Lost connection to MySQL server during query", UNKNOWN),
    ],
)
def test_lost_or_in_doubt(number: int, text: str, end: str) -> None:
    assert outcome(pymysql.err.OperationalError(number, text)) == f"commit: {number} {text}{end}"


def test_a_connection_that_breaks() -> None:
    assert outcome(ConnectionResetError("reset")) == f"commit: reset{UNKNOWN}"
