"""Count how transactions were written to the binary log: alone, or several in one group.

MySQL stores with each transaction the number of the last one that had been committed when it was ready
(`last_committed`, in its GTID event since 5.7). Those with the same number were ready together, and the log is flushed
and synchronized for them once. `SHOW BINLOG EVENTS` does not return that number, so the log is read as a replica reads
it. MariaDB counts groups itself (`Binlog_group_commits`); 5.6 has no such data.

The number of transactions, and their bytes, are in the server's own counters: `Binlog_cache_use`, `Binlog_bytes`.
"""

from __future__ import annotations

import struct
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import ER

from kvref_bench.errors import BenchError
from kvref_bench.sql import login as logins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref_bench.sql.login import Login

TRANSACTIONS: Final = "Binlog_seen_transactions"
GROUPS: Final = "Binlog_seen_groups"
# As much of the log is read as takes half a second.
LIMIT: Final = 8 << 20
_DUMP: Final = 0x12  # COM_BINLOG_DUMP
_NON_BLOCKING: Final = 1
_GTID: Final = (33, 34)  # GTID_LOG_EVENT, ANONYMOUS_GTID_LOG_EVENT
_NUMBERS: Final = struct.Struct("<Q")
_HEADER: Final = 19
_LAST_COMMITTED: Final = _HEADER + 1 + 16 + 8 + 1  # flags, source, its number, kind of clock
# No server_id, or an account that is no replica's.
_REFUSALS: Final = (ER.MASTER_FATAL_ERROR_READING_BINLOG, ER.SPECIFIC_ACCESS_DENIED_ERROR)

Mark = tuple[str, int]


class BinaryLog:
    """The binary log of one server.

    login: where it is.
    """

    def __init__(self, login: Login) -> None:
        self._login = login

    def end(self) -> Mark | None:
        """Return file and position of its end; None where the server writes none. Raises BenchError."""
        with closing(self._login.connect()) as connection, connection.cursor() as cursor:
            try:
                cursor.execute("SELECT @@GLOBAL.log_bin")
                if not cursor.fetchall()[0][0]:
                    return None
                cursor.execute("SHOW BINARY LOGS")
                file, position = cursor.fetchall()[-1][:2]
            except pymysql.MySQLError as error:
                where = self._login.where
                raise BenchError(f"the SQL server at {where} could not list its logs: {logins.cause(error)}") from error
        return str(file), int(position)

    def groups(self, mark: Mark) -> dict[str, int]:
        """Count transactions and their groups in the log, from a mark on and up to 8 MiB.

        Returns:
            TRANSACTIONS and GROUPS; nothing where the server has no groups or does not let its log be read.
        """
        transactions, last, groups = 0, -1, 0
        with closing(self._login.connect()) as connection:
            try:
                for event in _events(connection, mark):
                    if event[4] in _GTID:
                        (committed,) = _NUMBERS.unpack_from(event, _LAST_COMMITTED)
                        transactions += 1
                        groups += committed != last
                        last = committed
            except pymysql.MySQLError as error:
                if error.args[0] not in _REFUSALS:
                    where = self._login.where
                    raise BenchError(f"the SQL server at {where}, its log: {logins.cause(error)}") from error
        return {TRANSACTIONS: transactions, GROUPS: groups} if transactions else {}


def _events(connection: Connection[Cursor], mark: Mark) -> Iterator[bytes]:
    # The names of before and since 8.0.26: the server refuses who does not know checksums.
    with connection.cursor() as cursor:
        cursor.execute("SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'")
    file, position = mark
    # PyMySQL has no public name for a command that is no query.
    link: Any = connection
    link._execute_command(_DUMP, struct.pack("<IHI", position, _NON_BLOCKING, 0) + file.encode())
    read = 0
    while read < LIMIT:
        packet = link._read_packet()
        if packet.is_eof_packet():
            return
        event: bytes = packet.get_all_data()[1:]
        read += len(event)
        yield event
