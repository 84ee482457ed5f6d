"""Reads from the secondaries of a replication group: connections, and what a client has written last and waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvref.engine.mapping import Mapping
from kvref.errors import ConfigError
from kvref.storage.isolation import READ_COMMITTED, Isolation
from kvref.storage.mysql.cluster import SECONDARY_SECONDS, Secondaries
from kvref.storage.mysql.connection import MySQLConnection
from kvref.storage.mysql.database import Database
from kvref.storage.mysql.schema import KnownTables

# Seconds that gets wait until a secondary has executed the writes of their connections.
WAIT: Final = 0.1
_COMMITTED: Final = Isolation(READ_COMMITTED)
_GROUP: Final = "SHOW GLOBAL VARIABLES LIKE 'group_replication_group_name'"


@dataclass(slots=True)
class ReplicaCounts:
    """Keys of gets, by what has answered them.

    Args:
        gets: a secondary.
        behind: the primary, because the secondary had not executed the connection's last write in time.
        unavailable: the primary, because no secondary could be read.
    """

    gets: int = 0
    behind: int = 0
    unavailable: int = 0


class Replicas(Database):
    """The secondaries of a replication group, for reading rows."""

    def __init__(self, primary: Database) -> None:
        super().__init__(primary.login, primary.profile, SECONDARY_SECONDS)
        self.nodes = Secondaries(primary.login)
        self.reply_timeout = SECONDARY_SECONDS
        self.statements = primary.statements
        self._primary = primary

    @property
    def known(self) -> KnownTables:
        return self._primary.known

    def connect(self) -> MySQLConnection:
        """Open a connection to a secondary; raises NoSecondaryError if none can be read."""
        return MySQLConnection(self, _COMMITTED, brief=True)

    def record_and_compare_columns(self, mapping: Mapping, part: str, shape: object) -> bool:
        """Return whether the primary has described the columns in the same way; a secondary may lag behind its DDL."""
        return self._primary.columns(mapping, part) == shape


class LastWrite:
    """The last write of one client connection, with reads=session: a secondary that answers its gets must have it.

    A secondary of a group executes transactions in the order of their commits (`replica_preserve_commit_order`, which
    Group Replication requires): the last write is there after all earlier ones.

    Attributes:
        gtid: of its commit; None: the connection has written nothing; "": not known, so that only the primary is
            certain to have it. A write that leaves every column as it is has no GTID, and its row may be younger than
            what a secondary has.
        reached: the connection to a secondary that has executed it.
    """

    __slots__ = ("gtid", "reached")

    def __init__(self) -> None:
        self.gtid: str | None = None
        self.reached: object = None

    def note(self, gtid: str) -> None:
        """Record a commit, or one whose outcome is not known."""
        self.gtid, self.reached = gtid, None


def has_executed(connection: MySQLConnection, gtids: str) -> bool:
    """Wait until a secondary has executed a GTID set; return False if it has not after `WAIT` seconds.

    Raises as `MySQLConnection.query`.
    """
    return connection.cells(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {WAIT})") == [[b"0"]]


def require_group(connection: MySQLConnection, database: Database) -> None:
    """Raise ConfigError if a server belongs to no replication group."""
    rows = connection.query(_GROUP)
    if not rows or not rows[0][1]:
        server = "MySQL" if connection.mariadb is None else "MariaDB"
        raise ConfigError(
            f"store {database.login.text}: reads={database.login.reads} needs a MySQL replication group, and this"
            f" {server} server is in none: leave reads out"
        )
