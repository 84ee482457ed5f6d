"""How to reach a MySQL or MariaDB server: the DSN, the password that is never in it, and a connection ready for use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT, FIELD_TYPE
from pymysql.cursors import Cursor

from kvref.errors import ConfigError, StoreError
from kvref.storage.dsn import MYSQL, without_password

PASSWORD: Final = "KVREF_MYSQL_PASSWORD"  # noqa: S105 - the variable's name
PORT: Final = 3306
CONNECT_SECONDS: Final = 10
MOST_CONNECTIONS: Final = 16
_FORM: Final = "write mysql://USER@HOST[:PORT]/[?unix_socket=PATH&password_file=PATH&ssl_ca=PATH&connections=N]"
_INTEGERS: Final = (
    FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG, FIELD_TYPE.YEAR,
)  # fmt: skip
# Everything else arrives as the text, or the bytes, that SQL shows.
_DECODERS: Final[dict[Any, Any]] = dict.fromkeys(_INTEGERS, int)
# Nothing that a server's configuration brings along changes what a statement does, cuts it short or refuses it; what
# stands in /*! or /*M! only MySQL or only MariaDB reads. An invisible index serves as any other (seen on 8.0.33).
_SESSION: Final = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00',"
    " autocommit = 1, completion_type = 'NO_CHAIN', sql_safe_updates = 0, sql_big_selects = 1,"
    " sql_select_limit = 18446744073709551615, innodb_lock_wait_timeout = {lock_wait}"
    " /*!80000 , max_execution_time = 0, optimizer_switch = 'use_invisible_indexes=on' */"
    " /*M! , max_statement_time = 0 */"
)


@dataclass(frozen=True, slots=True)
class Login:
    """Where the server is and who asks.

    Args:
        host: name or address; the DSN's own words for messages are in `text`.
        port: TCP port.
        user: account.
        password: from the environment or a file.
        socket: UNIX socket, instead of host and port; "" for none.
        tls: PyMySQL's ssl arguments, empty for none.
        connections: at most so many at once.
        text: the DSN, for messages.
    """

    host: str
    port: int
    user: str
    password: str
    socket: str
    tls: dict[str, str]
    connections: int
    text: str

    def connect(self, lock_wait: float) -> Connection[Cursor]:
        """Open a connection in the state that every statement of the store expects.

        Args:
            lock_wait: seconds that a statement waits for a row lock, at least 1.

        Raises:
            StoreError: the server is not reached, or refuses; the text is its cause and never holds the password.
        """
        where: dict[str, Any] = {"unix_socket": self.socket} if self.socket else {"host": self.host, "port": self.port}
        try:
            return pymysql.connect(
                user=self.user, password=self.password.encode(), charset="utf8mb4", autocommit=True, conv=_DECODERS,
                client_flag=CLIENT.FOUND_ROWS, connect_timeout=CONNECT_SECONDS,
                ssl=self.tls or None, ssl_disabled=not self.tls,
                init_command=_SESSION.format(lock_wait=max(1, round(lock_wait))),
                **where,
            )  # fmt: skip
        except pymysql.err.MySQLError as error:
            raise StoreError(f"store {self.text}: {cause(error)}") from error
        except OSError as error:
            raise StoreError(f"store {self.text}: {error}") from error


def cause(error: pymysql.err.MySQLError) -> str:
    """Return the server's words for an error, its number in front."""
    number, text = (*error.args, "", "")[:2]
    return f"{number} {text}".strip()


def parse(dsn: str, environment: Mapping[str, str] = os.environ) -> Login:
    """Read a DSN.

    Args:
        dsn: see the form in the error text.
        environment: where the password may stand, as KVREF_MYSQL_PASSWORD.

    Raises:
        ConfigError: not of that form, a password in it, or a file that cannot be read.
    """
    parts = urlsplit(dsn)
    if not dsn.startswith(MYSQL) or parts.path not in ("", "/") or parts.fragment:
        raise ConfigError(f"store {without_password(dsn)!r}: {_FORM}")
    if parts.password is not None:
        raise ConfigError(
            f"store {without_password(dsn)!r}: others can read a command line: put the password into {PASSWORD},"
            " or into a file named by ?password_file=PATH"
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := given.keys() - {"unix_socket", "password_file", "ssl_ca", "ssl_cert", "ssl_key", "connections"}:
        raise ConfigError(f"store {dsn!r}: unknown {', '.join(sorted(unknown))}: {_FORM}")
    socket = given.get("unix_socket", "")
    if not parts.username or not (parts.hostname or socket):
        raise ConfigError(f"store {dsn!r}: {_FORM}")
    try:
        port = parts.port or PORT
    except ValueError as error:
        raise ConfigError(f"store {dsn!r}: {error}: {_FORM}") from error
    tls = {name.removeprefix("ssl_"): given[name] for name in ("ssl_ca", "ssl_cert", "ssl_key") if name in given}
    return Login(
        parts.hostname or "", port, unquote(parts.username), _password(dsn, given, environment), socket, tls,
        _connections(dsn, given), dsn,
    )  # fmt: skip


def _password(dsn: str, given: dict[str, str], environment: Mapping[str, str]) -> str:
    path = given.get("password_file")
    if path is None:
        return environment.get(PASSWORD, "")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"store {dsn!r}: password_file: {error}") from error


def _connections(dsn: str, given: dict[str, str]) -> int:
    text = given.get("connections", str(MOST_CONNECTIONS))
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise ConfigError(f"store {dsn!r}: connections={text}: from 1 to 1000")
    return int(text)
