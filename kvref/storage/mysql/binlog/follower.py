"""Follow the binary log of one server: a connection and a thread of their own, which report changes to the event loop.

kvref connects as a replica with its own server id. Events are read by `events.py` and not by the library
mysql-replication, which skips events that it does not know, so that a change could be missed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND
from pymysql.cursors import Cursor

from kvref.errors import KvrefError
from kvref.storage.mysql import vitess
from kvref.storage.mysql.accounts import account
from kvref.storage.mysql.binlog.events import LogReader
from kvref.storage.mysql.binlog.local_log import UNUSED, LocalLog
from kvref.storage.mysql.binlog.positions import FilePosition, GtidSet, LogError, Position, executed
from kvref.storage.mysql.binlog.row_cache import RowCache
from kvref.storage.mysql.login import Login, cause, fetch_all

_log = logging.getLogger("kvref.storage")

MIN_SERVER_ID: Final = 1 << 31  # replicas that people number have small ones
HEARTBEAT: Final = 1  # seconds without an event after which the server says that it is there
SILENCE: Final = 5  # seconds without anything after which the connection is given up
MIN_PAUSE: Final = 0.1  # seconds before the first new connection; each further one waits twice as long
MAX_PAUSE: Final = 5.0
_THROUGH_GTID: Final = 4  # flag of COM_BINLOG_DUMP_GTID
_FIRST_OFFSET: Final = 4
_END: Final = 0xFE  # first byte of an EOF packet
_PEER: Final = struct.Struct("3i")  # process, user and group at the other end of a Unix socket
_CHECKED: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'binlog_row_image', 'gtid_mode',"
    " 'log_replica_updates', 'log_slave_updates', 'binlog_transaction_compression', 'log_bin_compress', 'wsrep_on',"
    " 'binlog_row_value_options', 'version', 'server_id')"
)
# What each variable must be, and what sets it; a server that lacks the variable passes.
_WANTED: Final = (
    ("log_bin", "ON", "start the server with --log-bin"),
    ("binlog_format", "ROW", "SET GLOBAL binlog_format = 'ROW', and connect its clients again"),
    ("binlog_row_image", "FULL", "SET GLOBAL binlog_row_image = 'FULL', and connect its clients again"),
    ("gtid_mode", "ON", "start the server with --gtid-mode=ON --enforce-gtid-consistency"),
    ("log_replica_updates", "ON", "start the server with --log-slave-updates"),
    ("wsrep_on", "OFF", "name a server that is not part of a Galera cluster"),
    ("binlog_transaction_compression", "OFF", "SET GLOBAL binlog_transaction_compression = OFF"),
    ("log_bin_compress", "OFF", "SET GLOBAL log_bin_compress = OFF"),
    ("binlog_row_value_options", "", "SET GLOBAL binlog_row_value_options = ''"),
)
_STATUS: Final = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")  # from MySQL 8.2 on, and before
_GRANT: Final = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO"
_SETUP: Final = (
    "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum",
    f"SET @master_heartbeat_period = {HEARTBEAT * 10**9}, @source_heartbeat_period = {HEARTBEAT * 10**9}",
)


def refusal(login: Login) -> str:
    """Return why the row cache cannot follow the binary log of a server, empty if it can; raises StoreError.

    Clauses with `;` between them: each is a predicate of "the row cache" and ends with what to change.
    """
    if login.nodes:
        return "follows the log of one server: name one host"
    with closing(_Source(login)) as source:
        if vitess.is_gate(source.connection):
            return "follows the log of one server, and Vitess has one for each shard: leave row_cache_binlog out"
        who = account(source.query)
        try:
            if found := source.refusal():
                return found
            source.dump(next_id())
        except LogError as error:
            return f"cannot follow the log: {error}: leave row_cache_binlog out"
        except pymysql.err.MySQLError as error:
            return f"cannot read the log: {cause(error)}: {_GRANT} {who}"
    return ""


def next_id() -> int:
    return MIN_SERVER_ID + secrets.randbelow(MIN_SERVER_ID)


class _Source:
    """One connection to the server whose log is followed; blocks."""

    def __init__(self, login: Login) -> None:
        self.connection: Connection[Cursor] = login.connect(1.0)
        self.query = partial(fetch_all, self.connection)
        self.mariadb: int | None = None  # its server id
        self.first = b""  # the first event, which names the file

    def refusal(self) -> str:
        """Return which options of the server keep its log from being followed, see `refusal` of the module."""
        values = {str(name).lower(): str(value) for name, value in self.query(_CHECKED)}
        number, version = int(values.pop("server_id")), values.pop("version")
        self.mariadb = number if "MariaDB" in version else None
        values.setdefault("log_replica_updates", values.pop("log_slave_updates", "ON"))
        found = [
            f"needs {name}={wanted or repr(wanted)}, not {values[name]}: {fix}"
            for name, wanted, fix in _WANTED
            if values.get(name, wanted).upper() != wanted
        ]
        _, _, only, without, *_ = self._status()
        for name, value in (("binlog_do_db", only), ("binlog_ignore_db", without)):
            if value:
                found.append(f"misses the changes that {name}={value} keeps out of the log: start without it")
        return "; ".join(found)

    def dump(self, server_id: int) -> Position:
        """Let the server send its log from what it has executed by now, which is returned."""
        for each in _SETUP:
            self.query(each)
        position, raw = executed(self.query, self.mariadb), self._raw
        if isinstance(position, GtidSet):
            known = _encoded(position)
            head = struct.pack("<HIIQI", _THROUGH_GTID, server_id, 0, _FIRST_OFFSET, len(known))
            raw._execute_command(COMMAND.COM_BINLOG_DUMP_GTID, head + known)
        else:
            assert isinstance(position, FilePosition)
            self.query("SET @mariadb_slave_capability = 4")
            base, _, digits = str(self._status()[0]).rpartition(".")
            name = f"{base}.{position.point.file:0{len(digits)}}"
            head = struct.pack("<IHI", position.point.offset, 0, server_id)
            raw._execute_command(COMMAND.COM_BINLOG_DUMP, head + name.encode())
        raw._read_timeout = SILENCE
        self.first = self.packet()  # it is always there: a refusal, or the name of the file
        return position

    def directories(self) -> tuple[str, str]:
        """Return where the files of the log are, seen from the server's root directory and from this process."""
        ((path,),) = self.query("SELECT @@GLOBAL.log_bin_basename")
        directory = str(Path(str(path)).parent)
        peer = self._raw._sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        pid, _, _ = _PEER.unpack(peer)
        return f"/proc/{pid}/root{directory}", directory

    def packet(self) -> bytes:
        packet: bytes = self._raw._read_packet().get_all_data()
        if packet[0] == _END:
            raise LogError("the server has ended the binary log")
        return packet[1:]

    def close(self) -> None:
        """Close the connection without a word: the server may be sending."""
        self._raw._force_close()

    def interrupt(self) -> None:
        """Let `packet` raise, in the thread that waits for it."""
        sending = self._raw._sock
        if sending is not None:
            with suppress(OSError):  # it was closed meanwhile
                sending.shutdown(socket.SHUT_RDWR)

    @property
    def _raw(self) -> Any:
        return self.connection

    def _status(self) -> tuple[Any, ...]:
        for last, sql in enumerate(_STATUS):
            try:
                rows = self.query(sql)
            except pymysql.err.ProgrammingError:
                if last:
                    raise
                continue
            return rows[0] if rows else ("", 0, "", "")
        raise AssertionError("the last statement returns or raises")


def _encoded(known: GtidSet) -> bytes:
    """Return a GTID set as COM_BINLOG_DUMP_GTID has it; the ends of intervals are exclusive."""
    parts = [struct.pack("<Q", len(known.intervals))]
    for source, intervals in known.intervals.items():
        parts.append(bytes.fromhex(source) + struct.pack("<Q", len(intervals)))
        parts += [struct.pack("<QQ", first, last + 1) for first, last in intervals]
    return b"".join(parts)


class Follower:
    """Follows the log of one server until it is closed, and connects again whenever the connection ends.

    The cache gets the changes, in the running loop.
    """

    def __init__(self, login: Login, cache: RowCache) -> None:
        self._login = login
        self._cache = cache
        self._loop = asyncio.get_running_loop()
        self._source: _Source | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kvref-binlog", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        self._closing.set()
        self.reconnect()
        await self._loop.run_in_executor(None, self._thread.join)

    def reconnect(self) -> None:
        """Begin again on another connection."""
        if self._source is not None:
            self._source.interrupt()

    def _run(self) -> None:
        pause = MIN_PAUSE
        while not self._closing.is_set():
            try:
                with closing(_Source(self._login)) as source:
                    self._source = source
                    pause = self._follow(source)
            except (KvrefError, pymysql.err.MySQLError, OSError) as error:
                self._ended(error)
            self._closing.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def _follow(self, source: _Source) -> float:
        if found := source.refusal():
            raise LogError(found)
        log = self._local_log(source)
        position = source.dump(next_id())
        reader = LogReader(mariadb=source.mariadb is not None, first=source.first)
        self._report(self._cache.begin, position, log)
        _log.info("following the binary log of %s", self._login.text)
        version, end = -1, None
        while not self._closing.is_set():
            try:
                packet = source.packet()
            except (LogError, pymysql.err.MySQLError, OSError) as error:
                self._ended(error)
                break
            if reader.between:
                version = self._cache.version
                reader.wanted = self._cache.wanted
            change = reader.read(packet)
            read_to = end if log is None or not reader.between else reader.end
            if change is not None or read_to != end:
                end = read_to
                self._report(self._cache.take, change, version, end)
        return MIN_PAUSE

    def _local_log(self, source: _Source) -> LocalLog | None:
        """Return the files of the log; None if they are not known to be on this machine, or cannot be read."""
        if not self._login.socket:  # the server behind another address may change
            return None
        for directory in source.directories():
            try:
                return LocalLog(directory)
            except OSError as error:
                problem = error
        _log.info(UNUSED, problem)
        return None

    def _ended(self, error: Exception) -> None:
        self._report(self._cache.end)
        if not self._closing.is_set():
            text = cause(error) if isinstance(error, pymysql.err.MySQLError) else str(error)
            _log.warning("the binary log is not followed, rows are not cached: %s", text)

    def _report(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # the loop is closed
            self._closing.set()
