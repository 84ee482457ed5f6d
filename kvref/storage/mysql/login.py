"""How to reach a MySQL or MariaDB server: the DSN, the password that is never in it, and a connection ready for use."""

from __future__ import annotations

import logging
import os
import ssl
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND, CR, FIELD_TYPE
from pymysql.cursors import Cursor

from kvref.errors import ConfigError, StoreError, cause_of, choices, suggestion
from kvref.storage.base import MYSQL, PRIMARY, READS, SESSION, without_password
from kvref.storage.mysql import vitess
from kvref.storage.mysql.accounts import METHODS, refusal
from kvref.storage.mysql.errors import HangError
from kvref.storage.mysql.result_set import length_encoded, run

_log = logging.getLogger("kvref.storage")
_Default = TypeVar("_Default", int, None)

PASSWORD: Final = "KVREF_MYSQL_PASSWORD"  # noqa: S105 - the variable's name
PORT: Final = 3306
MAX_CONNECTIONS: Final = 16
MAX_WITH_BATCHES: Final = 64  # an open batch holds one
ANSWER_SECONDS: Final = 10
MAX_TOGETHER: Final = 128
_NAMES: Final = (
    "unix_socket", "password_file", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity", "connections", "timeout",
    "coalesce", "wsrep_sync_wait", "reads",
)  # fmt: skip
_FORM: Final = f"write mysql://USER@HOST[:PORT][,HOST[:PORT]…]/[?NAME=VALUE&…], the names are {', '.join(_NAMES)}"
_MAX_TABLE_WAIT: Final = 31536000  # a year, MySQL's own limit of lock_wait_timeout
_MAX_REPLY_TIMEOUT: Final = 2_000_000  # seconds: a socket's limit is 2^31 ms
_INTEGERS: Final = (
    FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG, FIELD_TYPE.YEAR,
)  # fmt: skip
# Everything else arrives as the text, or the bytes, that SQL shows.
_DECODERS: Final[dict[Any, Any]] = dict.fromkeys(_INTEGERS, int)
# No setting of the server may change, truncate or reject a statement. Text in /*! is read only by MySQL, text in
# /*M! only by MariaDB. An invisible index works like any other (observed on 8.0.33).
_SESSION: Final = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00',"
    " autocommit = 1, completion_type = 'NO_CHAIN', sql_safe_updates = 0, sql_big_selects = 1,"
    # MySQL's own value is 2^64 - 1, which Vitess cannot read.
    " sql_select_limit = 9223372036854775807, innodb_lock_wait_timeout = {locks},"
    # A table that DDL or LOCK TABLES holds is waited for no longer than a row.
    " lock_wait_timeout = {tables}"
    " /*!80000 , max_execution_time = 0, optimizer_switch = 'use_invisible_indexes=on'{tracked} */"
    " /*M! , max_statement_time = 0{sync} */"
)


@dataclass(frozen=True, slots=True)
class Login:
    """Address of the server, account, and connection options.

    Args:
        host: name or address; the DSN's own words for messages are in `text`.
        port: TCP port.
        user: account.
        password: from the environment or a file.
        socket: UNIX socket, instead of host and port; "" for none.
        tls: context that verifies the server, None: TLS is not used.
        connections: maximum number of open connections; None: `max_connections` decides.
        timeout: seconds for connecting, and for a reply in addition to the lock wait.
        text: the DSN, for messages.
        together: maximum number of keys in one statement; below 2 each command has its own statements.
        sync_wait: MariaDB's wsrep_sync_wait, before which statements a node catches up with its cluster; None: as the
            server has it.
        nodes: host and port of each server of a cluster, preferred ones first; empty: there is one, at `host`.
        reads: which server answers plain gets: `primary`; `replica`: a secondary; `session`: a secondary that has
            executed the last write of the client's connection.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    socket: str
    tls: ssl.SSLContext | None
    connections: int | None
    timeout: int
    text: str
    together: int = MAX_TOGETHER
    sync_wait: int | None = None
    nodes: tuple[tuple[str, int], ...] = ()
    reads: str = PRIMARY

    def each(self) -> tuple[Login, ...]:
        """Return a login for each server, which is named in messages by itself."""
        if not self.nodes:
            return (self,)
        return tuple(
            replace(self, host=host, port=port, nodes=(), text=f"mysql://{quote(self.user)}@{host}:{port}/")
            for host, port in self.nodes
        )

    def reply_timeout(self, lock_wait: float) -> float:
        """Return after how many seconds without an answer the server counts as hanging."""
        return min(max(1.0, lock_wait) + self.timeout, _MAX_REPLY_TIMEOUT)

    def max_connections(self, *, batches: bool) -> int:
        """Return how many connections there may be at once."""
        return self.connections or (MAX_WITH_BATCHES if batches else MAX_CONNECTIONS)

    def connect(self, lock_wait: float) -> Connection[Cursor]:
        """Open a connection in the state that every statement of the store expects.

        Args:
            lock_wait: seconds that a statement waits for a row lock, at least 1. No packet of the handshake waits for a
                lock, so that `timeout` alone limits the wait for each.

        Raises:
            HangError: the server does not reply.
            StoreError: the server is unreachable or rejects the connection; the text never contains the password.
        """
        where: dict[str, Any] = {"unix_socket": self.socket} if self.socket else {}
        reply_timeout, locks = self.reply_timeout(lock_wait), max(1, round(lock_wait))
        sync = "" if self.sync_wait is None else f", wsrep_sync_wait = {self.sync_wait}"
        tracks = self.reads == SESSION
        session = _SESSION.format(
            locks=locks, tables=min(locks, _MAX_TABLE_WAIT), sync=sync, tracked=TRACKED if tracks else ""
        )
        try:
            opened: Any = (TrackingConnection if tracks else StoreConnection)(
                host=self.host or None, port=self.port,
                user=self.user, password=self.password.encode(), charset="utf8mb4", autocommit=True, conv=_DECODERS,
                client_flag=CLIENT.FOUND_ROWS, connect_timeout=self.timeout, read_timeout=self.timeout,
                write_timeout=reply_timeout, ssl=self.tls, ssl_disabled=self.tls is None,
                init_command=session, auth_plugin_map=METHODS,
                **where,
            )  # fmt: skip
        except OSError as error:
            raise StoreError(f"store {self.text}: {cause_of(error)}") from error
        # An account or a server that PyMySQL does not expect makes it raise errors of any type.
        except Exception as error:
            if hangs(error):
                raise HangError(
                    f"store {self.text}: no answer within {self.timeout} s: the server is busy, or this is not the port"
                    " of a MySQL or MariaDB server"
                ) from error
            words = self._unreachable(error) or refusal(
                error, password=bool(self.password), encrypted=self.tls is not None
            )
            raise StoreError(f"store {self.text}: {words}") from error
        opened._read_timeout = reply_timeout  # PyMySQL has one for all of a connection's life
        connection: Connection[Cursor] = opened
        return connection

    def _unreachable(self, error: Exception) -> str:
        """Return where no connection can be made, and why; "" for another error."""
        original = getattr(error, "original_exception", None)
        if error.args[:1] != (CR.CR_CONN_HOST_ERROR,) or original is None:
            return ""
        # PyMySQL names the host, `localhost` if the DSN has none, also where it used a socket.
        where = f"through socket {self.socket!r}" if self.socket else f"on {self.host!r}"
        reason = f"{CR.CR_CONN_HOST_ERROR} Can't connect to MySQL server {where} ({cause_of(original)})"
        return f"{reason}: is it running there?"


def fetch_all(connection: Connection[Cursor], sql: str, *parameters: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, with %s for each parameter, as PyMySQL converts them; raises MySQLError."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return list(cursor.fetchall())


def cause(error: pymysql.err.MySQLError) -> str:
    """Return the server's words for an error, its number in front."""
    number, text = (*error.args, "", "")[:2]
    return f"{number} {vitess.words(str(text))}".strip()


def hangs(error: BaseException) -> bool:
    """Return whether an error is that of a server that gave no answer in time."""
    return isinstance(error.__context__, TimeoutError) and error.args[:1] != (CR.CR_CONN_HOST_ERROR,)


def parse(dsn: str, environment: Mapping[str, str] = os.environ) -> Login:
    """Read a DSN; the password may be in the environment, as KVREF_MYSQL_PASSWORD.

    Raises ConfigError: not of the form, a password in it, or a file that cannot be read.
    """
    parts, hosts = _split(dsn)
    # An @ behind the path ends a password with a slash, which is not shown.
    if dsn.startswith(MYSQL) and parts.username and parts.path.strip("/") and "@" not in parts.path:
        raise ConfigError(
            f"store {without_password(dsn)!r}: containers has the schema of each table: leave {parts.path.strip('/')!r}"
            " out"
        )
    if not dsn.startswith(MYSQL) or parts.path not in ("", "/") or parts.fragment:
        raise ConfigError(f"store {without_password(dsn)!r}: {_FORM}")
    if parts.password is not None:
        raise ConfigError(
            f"store {without_password(dsn)!r}: others can read a command line: put the password into {PASSWORD},"
            " or into a file named by ?password_file=PATH"
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    shown = without_password(dsn)
    if unknown := sorted(given.keys() - set(_NAMES)):
        raise ConfigError(f"store {shown!r}: unknown {', '.join(unknown)}{suggestion(unknown[0], _NAMES)}: {_FORM}")
    socket = given.get("unix_socket", "")
    if not parts.username:
        raise ConfigError(f"store {shown!r}: {_FORM}")
    nodes = _nodes(shown, hosts)
    (host, port), *others = nodes
    if not (all(name for name, _ in nodes) or (socket and not others)):
        raise ConfigError(f"store {shown!r}: {_FORM}")
    if others and socket:
        raise ConfigError(f"store {shown!r}: unix_socket is one server's, and {len(nodes)} are named")
    return Login(
        host, port, unquote(parts.username),
        _password(dsn, given, environment), socket,
        _tls(dsn, given), _number(dsn, given, "connections", 1000, None),
        _number(dsn, given, "timeout", 86400, ANSWER_SECONDS), dsn,
        _number(dsn, given, "coalesce", 1000, MAX_TOGETHER, minimum=0),
        _number(dsn, given, "wsrep_sync_wait", 15, None, minimum=0),
        tuple(nodes) if others else (), _reads(shown, given, several=bool(others)),
    )  # fmt: skip


def _split(dsn: str) -> tuple[SplitResult, str]:
    """Return the parts of a DSN without its servers, and the servers.

    `urlsplit` raises ValueError for brackets in a list of servers, since the fix of CVE-2025-0938 also for valid ones.
    """
    scheme, mark, rest = dsn.partition("://")
    end = next((place for place, letter in enumerate(rest) if letter in "/?#"), len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    user = user.replace("[", "%5B").replace("]", "%5D")
    return urlsplit(f"{scheme}{mark}{user}{at}{rest[end:]}"), hosts


def _nodes(shown: str, hosts: str) -> list[tuple[str, int]]:
    nodes = []
    for each in hosts.split(","):
        try:
            part = urlsplit(f"//{each}")
            nodes.append((part.hostname or "", part.port or PORT))
        except ValueError as error:
            raise ConfigError(f"store {shown!r}: {each!r} is not a valid HOST:PORT: {_FORM}") from error
    if len(set(nodes)) < len(nodes):
        raise ConfigError(f"store {shown!r}: a server is named twice")
    return nodes


def _reads(shown: str, given: dict[str, str], *, several: bool) -> str:
    reads = given.get("reads", PRIMARY)
    if reads not in READS:
        raise ConfigError(f"store {shown!r}: reads={reads}{choices(reads, READS)}")
    if reads != PRIMARY and not several:
        raise ConfigError(f"store {shown!r}: reads={reads}: name the other members of the group too, HOST,HOST,HOST")
    return reads


def _password(dsn: str, given: dict[str, str], environment: Mapping[str, str]) -> str:
    path = given.get("password_file")
    if path is None:
        return environment.get(PASSWORD, "")
    try:
        password = Path(path).read_text(encoding="utf-8").rstrip("\n")
        mode = Path(path).stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"store {dsn!r}: password_file: {cause_of(error)}") from error
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        # In a container, secrets are mounted with these permissions, and there are no other users.
        _log.warning("password_file %s: other users of this machine may read it: chmod 600 it", path)
    return password


def _tls(dsn: str, given: dict[str, str]) -> ssl.SSLContext | None:
    ca, cert, key, identity = (given.get(f"ssl_{name}") for name in ("ca", "cert", "key", "verify_identity"))
    if ca is None:
        if cert is key is identity is None:
            return None
        raise ConfigError(f"store {dsn!r}: name the CA of the server's certificate too, ssl_ca=PATH")
    if identity not in (None, "0", "1"):
        raise ConfigError(f"store {dsn!r}: ssl_verify_identity={identity}: 1, or 0 for a certificate of no host name")
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ConfigError(f"store {dsn!r}: ssl_ca={ca}: {cause_of(error)}") from error
    context.check_hostname = identity != "0"
    # Certificates that servers generate for themselves lack extensions that RFC 5280 requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cert is not None:
        try:
            context.load_cert_chain(cert, key)
        except OSError as error:
            raise ConfigError(f"store {dsn!r}: ssl_cert={cert}, ssl_key={key}: {cause_of(error)}") from error
    return context


def _number(
    dsn: str, given: dict[str, str], name: str, maximum: int, default: _Default, minimum: int = 1
) -> int | _Default:
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and minimum <= int(text) <= maximum):
        raise ConfigError(f"store {dsn!r}: {name}={text}: write a number from {minimum} to {maximum}")
    return int(text)


# MySQL reports the GTID of a connection's own commit in the OK packet of COMMIT. Format:
# dev.mysql.com/doc/dev/mysql-server, "OK_Packet", with CLIENT_SESSION_TRACK; the tracker is SESSION_TRACK_GTIDS.
TRACKED: Final = ", session_track_gtids = OWN_GTID"  # of SET SESSION
_STATE_CHANGED: Final = 0x4000  # SERVER_SESSION_STATE_CHANGED
_GTIDS: Final = 3  # SESSION_TRACK_GTIDS
_AS_TEXT: Final = 0  # the only encoding of a GTID


class StoreConnection(Connection):
    """A connection of PyMySQL that reads the replies to statements without rows as `result_set` does."""

    def begin(self) -> None:
        run(self, "START TRANSACTION")

    def commit(self) -> None:
        run(self, "COMMIT")

    def rollback(self) -> None:
        run(self, "ROLLBACK")


class TrackingConnection(StoreConnection):
    """A connection of PyMySQL that keeps the GTID of its last COMMIT; "": that has reported none, or has failed."""

    def __init__(self, *, client_flag: int = 0, **options: Any) -> None:
        self.last_gtid = ""
        super().__init__(client_flag=client_flag | CLIENT.SESSION_TRACK, **options)

    def commit(self) -> None:
        raw: Any = self
        self.last_gtid = ""
        raw._execute_command(COMMAND.COM_QUERY, "COMMIT")
        ok = raw._read_ok_packet()
        if ok.server_status & _STATE_CHANGED:
            self.last_gtid = reported_gtid(ok.message)


def reported_gtid(message: bytes) -> str:
    """Return the GTID that the end of an OK packet reports, from its text on, if the session has changed; "": none."""
    _, at = _string(message, 0)
    states, _ = _string(message, at)
    at = 0
    while at < len(states):
        kind = states[at]
        state, at = _string(states, at + 1)
        if kind == _GTIDS and state[0] == _AS_TEXT:
            return _string(state, 1)[0].decode()
    return ""


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    """Return a string with its length in front of it, and where the next one begins."""
    size, at = length_encoded(data, at)
    return data[at : at + size], at + size
