"""How a MySQL or MariaDB server is reached: the DSN, and a connection of PyMySQL, which knows every way to log in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pymysql

from kvref_bench.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

SCHEME: Final = "mysql"
FORMS: Final = "mysql://USER[:PASSWORD]@HOST[:PORT]/ or mysql://USER@localhost/?unix_socket=PATH"
# The same variable as for `kvref serve`, so that no password is on a command line.
PASSWORD: Final = "KVREF_MYSQL_PASSWORD"  # noqa: S105 - the variable's name
PORT: Final = 3306
CONNECT_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Login:
    """Address and account of a server.

    socket: path of its UNIX socket, instead of host and port.
    """

    host: str
    port: int
    user: str
    password: str
    socket: str | None

    @property
    def where(self) -> str:
        """Return the server's place, for messages."""
        return self.socket or f"{self.host}:{self.port}"

    def connect(self, database: str | None = None, flags: int = 0) -> Connection[Cursor]:
        """Open a connection with autocommit on; its texts are latin-1 on both sides, so that no byte is converted.

        flags: further capabilities of the client.

        Raises:
            BenchError: it is not reached, or refuses; the text has the server's words.
        """
        place: dict[str, Any] = {"unix_socket": self.socket} if self.socket else {}
        try:
            return pymysql.connect(
                host=self.host, port=self.port, user=self.user, password=self.password, database=database,
                client_flag=flags,
                charset="latin1", autocommit=True, connect_timeout=CONNECT_SECONDS, ssl_disabled=True, **place,
            )  # fmt: skip
        except pymysql.MySQLError as error:
            raise BenchError(f"the SQL server at {self.where}: {cause(error)}") from error


def parse(dsn: str, environment: Mapping[str, str] = os.environ) -> Login:
    """Read a DSN.

    environment: where the password may stand instead, as KVREF_MYSQL_PASSWORD.

    Raises:
        BenchError: it is of none of the forms.
    """
    refusal = BenchError(f"SQL DSN {without_password(dsn)!r}: write {FORMS}")
    try:
        parts = urlsplit(dsn)
        port = parts.port or PORT
        options = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
    except ValueError as error:
        raise refusal from error
    if parts.scheme != SCHEME or not parts.hostname or parts.path not in ("", "/") or options.keys() - {"unix_socket"}:
        raise refusal
    password = environment.get(PASSWORD, "") if parts.password is None else unquote(parts.password)
    socket = options.get("unix_socket", [None])[0]
    return Login(parts.hostname, port, unquote(parts.username or "root"), password, socket)


def without_password(dsn: str) -> str:
    """Return a DSN as a run may tell it: without a password, and of a file or socket only the name."""
    dsn = re.sub(r"(?<=://)([^:/@]*):[^@]*@", r"\1:…@", dsn)
    scheme, _, path = dsn.partition(":///")
    if path:
        return f"{scheme}:///{PurePath(path).name}"
    head, sign, socket = dsn.partition("unix_socket=")
    return f"{head}{sign}{quote(PurePath(unquote(socket)).name)}"


def cause(error: pymysql.MySQLError) -> str:
    """Return the server's words for an error, its number in front."""
    return " ".join(str(word) for word in error.args[:2])
