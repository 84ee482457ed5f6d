"""Logging in: authentication methods that PyMySQL does not do as servers expect, and the fix for each refusal."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

import pymysql
from pymysql import _auth
from pymysql.constants import CR

EXTRA: Final = "pip install 'kvref[mysql]'"
_PORT: Final = "name the host and port of a MySQL or MariaDB server for the classic protocol, usually 3306"
_METHOD: Final = (
    "give the account a supported method: ALTER USER … IDENTIFIED WITH caching_sha2_password BY '…' in MySQL,"
    " IDENTIFIED VIA ed25519 USING PASSWORD('…') or IDENTIFIED BY '…' in MariaDB"
)
_TLS: Final = "name the CA of the server's certificate, ?ssl_ca=PATH"
_PASSWORD: Final = "a new password: ALTER USER … IDENTIFIED BY '…'"  # noqa: S105 - a statement
_UNLOCK: Final = "unlock it: ALTER USER … ACCOUNT UNLOCK"
_CONNECTIONS: Final = "close other programs' connections, raise the server's limit, or lower ?connections=N"
# By the error's number in MySQL's and MariaDB's message files; 2000 to 2999 are the driver's.
_FIXES: Final = {
    1040: _CONNECTIONS,
    1203: _CONNECTIONS,
    1226: _CONNECTIONS,
    1129: "remove the cause, then FLUSH HOSTS, or from MySQL 8.0 on TRUNCATE TABLE performance_schema.host_cache",
    1130: "create an account for this host: CREATE USER USER@HOST",
    1251: _METHOD,
    1275: _METHOD,
    1524: _METHOD,
    1698: "the account is for the operating system's user of this name: run kvref as that user with ?unix_socket=PATH,"
    f" or give the account {_PASSWORD}",
    1820: f"give the account {_PASSWORD}",
    1862: f"give the account {_PASSWORD}",
    3118: _UNLOCK,
    3955: _UNLOCK,
    4151: _UNLOCK,
    3159: _TLS,
    CR.CR_AUTH_PLUGIN_CANNOT_LOAD: _METHOD,
}
_DENIED: Final = 1045


def refusal(error: Exception, *, password: bool, encrypted: bool) -> str:
    """Return why a login failed, by whatever PyMySQL raised while it connected, and the fix, in one line."""
    if isinstance(error, RuntimeError):  # a package that the account's method needs is missing
        return f"{error}: {EXTRA}"
    if not isinstance(error, pymysql.err.MySQLError) or isinstance(error, pymysql.err.InternalError):
        # PyMySQL checks nothing that it unpacks: a text of another protocol raises any error.
        return f"the server's answer is not a login of MySQL's ({type(error).__name__}: {error}): {_PORT}"
    number, text = (*error.args, "", "")[:2]
    rendered = f"{number} {text}".strip().rstrip(".")
    if number == _DENIED:
        return f"{rendered}: {_of_denial(password=password, encrypted=encrypted)}"
    if number == CR.CR_SERVER_LOST:
        return f"{rendered}: the server closed the connection during the login: {_PORT}"
    if isinstance(number, int):
        return f"{rendered}: {_FIXES[number]}" if number in _FIXES else rendered
    return f"{rendered}: {_METHOD}"  # PyMySQL's own, about a packet of the authentication


def _of_denial(*, password: bool, encrypted: bool) -> str:
    if not password:
        return "no password was given: put it into KVREF_MYSQL_PASSWORD, or into a file named by ?password_file=PATH"
    more = "" if encrypted else "; if the account requires TLS, " + _TLS
    return f"check the user, the host that it is for, and the password in KVREF_MYSQL_PASSWORD or password_file{more}"


def account(query: Callable[[str], Sequence[Sequence[Any]]]) -> str:
    """Return the account of a connection as GRANT names it; `query` returns the rows of a statement."""
    ((name,),) = query("SELECT CURRENT_USER()")
    user, _, host = str(name).rpartition("@")
    return "@".join("'" + each.replace("\\", "\\\\").replace("'", "''") + "'" for each in (user, host))


class _Sha256:
    """MySQL's `sha256_password`: the password in clear over TLS only, otherwise encrypted with the server's key.

    PyMySQL also sends it in clear over a unix socket, which the server refuses as a wrong password (observed on 8.0.33
    and 9.7.4). `caching_sha2_password` takes it there.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def authenticate(self, packet: Any) -> Any:
        self._connection._secure = _is_encrypted(self._connection)
        return _auth.sha256_password_auth(self._connection, packet)  # type: ignore[no-untyped-call]


class _Clear:
    """`mysql_clear_password`, for LDAP and PAM: PyMySQL sends the password in clear over any connection."""

    def __init__(self, connection: Any) -> None:
        _require_privacy(connection)
        self._connection = connection

    def authenticate(self, packet: Any) -> Any:  # noqa: ARG002 - PyMySQL's
        return _auth._roundtrip(self._connection, self._connection.password + b"\0")  # type: ignore[attr-defined]


class _Dialog:
    """`dialog`, MariaDB's PAM: each hidden prompt gets the password. PyMySQL itself does the rest of the exchange."""

    def __init__(self, connection: Any) -> None:
        _require_privacy(connection)
        self._password = connection.password

    def prompt(self, echo: bool, prompt: bytes) -> bytes:
        if echo:
            raise pymysql.err.OperationalError(
                CR.CR_AUTH_PLUGIN_CANNOT_LOAD, f"prompt {prompt.decode(errors='replace')!r} of PAM is not supported"
            )
        return bytes(self._password)


class _Old:
    """`mysql_old_password` of MySQL before 4.1, which PyMySQL names, but does not have."""

    def __init__(self, connection: Any) -> None:  # noqa: ARG002 - PyMySQL's
        raise pymysql.err.OperationalError(
            CR.CR_AUTH_PLUGIN_CANNOT_LOAD, "Authentication plugin 'mysql_old_password' not configured"
        )


METHODS: Final[dict[str, Callable[[Any], Any]]] = {
    "mysql_old_password": _Old,
    "sha256_password": _Sha256,
    "mysql_clear_password": _Clear,
    "dialog": _Dialog,
}


def _is_encrypted(connection: Any) -> bool:
    return isinstance(connection._sock, ssl.SSLSocket)


def _require_privacy(connection: Any) -> None:
    """Raise OperationalError where others could read what is sent."""
    if not _is_encrypted(connection) and not connection.unix_socket:
        raise pymysql.err.OperationalError(
            CR.CR_AUTH_PLUGIN_ERR,
            "the account's method sends the password in clear, and this connection is not encrypted:"
            f" {_TLS}, or ?unix_socket=PATH",
        )
