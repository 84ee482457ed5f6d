"""A plugin server in use, as the machine of a `PluginTarget`: it is never started, stopped or killed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql

from kvref.errors import SuiteError
from kvref_conformance.corpus.targets.sqlite import plugin_schema
from kvref_conformance.errors import CannotJudge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from kvref.addresses import SocketAddress


class RunningPlugin:
    """One server, for conversations without options of mysqld.

    Args:
        address: where the plugin listens once it is installed.
        dsn: mysql://user[:password]@host:port/ or mysql://user@localhost/?unix_socket=PATH.

    Raises:
        CannotJudge: the DSN cannot be read.
    """

    def __init__(self, address: SocketAddress, dsn: str) -> None:
        self.address = address
        parts = urlsplit(dsn)
        if parts.scheme != "mysql" or not parts.hostname:
            raise CannotJudge(f"--sql {dsn!r}: conversations set up a MySQL server: write mysql://user@host:port/")
        self._host, self._port = parts.hostname, parts.port or 3306
        self._user, self._password = unquote(parts.username or "root"), unquote(parts.password or "")
        self._socket = parse_qs(parts.query).get("unix_socket", [None])[0]

    def boot(self, options: Sequence[str]) -> None:
        """Accept the server unchanged.

        Raises:
            SuiteError: there are options.
        """
        if options:
            raise SuiteError(f"needs a server with {' '.join(options)}: kvref did not start this one")

    def start(self) -> None:
        """Refuse: raises SuiteError."""
        raise SuiteError("kvref did not start this server and cannot restart it")

    stop = kill = start

    def exit_status(self) -> int | None:
        """Know nothing of its end."""
        return None

    def connect(self, patience: float) -> Connection[Cursor]:
        """Open a SQL connection with autocommit; `patience` as `plugin.Machine` has it."""
        return pymysql.connect(
            host=self._host,
            port=self._port,
            user=self._user,
            password=self._password,
            unix_socket=self._socket,
            autocommit=True,
            read_timeout=patience,
        )

    def config_script(self) -> list[str]:
        """Return the statements of the plugin's own schema."""
        return ["CREATE DATABASE innodb_memcache", *plugin_schema()]
