"""The real thing: MySQL with its daemon_memcached plugin.

The server starts without the plugin but with the plugin's options, the plugin's own schema is created, then the plugin
is installed. That spares the second start that loading it from the command line would need.
"""

from __future__ import annotations

import os
import re
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pymysql

from kvref.errors import TargetError
from kvref_testbed.targets import mysqld
from kvref_testbed.targets.ports import LOOPBACK, NotYetError, free_port, version_at
from kvref_testbed.targets.target import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pymysql.cursors import Cursor

    from kvref_testbed.targets.mysqld import Build, Server
    from kvref_testbed.targets.progress import Progress
    from kvref_testbed.targets.run import Run

_PORT_SECONDS = 20.0
_INSTALL = "INSTALL PLUGIN daemon_memcached SONAME 'libmemcached.so'"
_PLUGIN_OPTION = re.compile(r"--(?:loose[-_])?(?P<name>daemon[-_]memcached[-_][\w-]+)")


@dataclass(frozen=True, slots=True)
class MySQLPlugin:
    """A MySQL build with daemon_memcached over the plugin's own demo table; see `recipe.Recipe` for the fields."""

    name: str
    profile: str
    summary: str
    build: Build

    def boot(self, run: Run, options: Sequence[str], progress: Progress) -> Endpoint:
        """Start mysqld, create the plugin's schema, install the plugin, wait for its port.

        options: of mysqld. Those of the plugin are its system variables, `--daemon_memcached_w_batch_size=10`.
        Raises TargetError, also for a plugin option that does not exist and for a port that never opens.
        """
        port = free_port()
        mine = with_port(options, port)
        server = mysqld.boot(run, self.build, mysqld_options(mine, port), progress)
        try:
            version = _install(server, mine)
        except pymysql.err.MySQLError as error:
            raise TargetError(
                f"{self.name}: the plugin could not be installed: {error}\n{run.last_words(run.processes[0])}"
            ) from error
        # A plugin that dislikes its configuration installs without an error and never opens its port.
        run.wait_for(f"the plugin at {LOOPBACK}:{port}", lambda: version_at(port), _PORT_SECONDS)

        def restart(settings: Mapping[str, int]) -> None:
            _forget(server)
            # Killed: in order it takes 6 s, and what was committed is there again all the same.
            run.end(run.processes[0], 0)
            mysqld.start(run, self.build, server, mysqld_options([*mine, *_as_options(settings)], port))
            _load(server)
            run.wait_for(f"the plugin at {LOOPBACK}:{port}", lambda: version_at(port), _PORT_SECONDS)

        address = f"{LOOPBACK}:{port}"
        return Endpoint(address=address, version=version, sql=server.dsn, socket=server.socket, restart=restart)


def with_port(options: Sequence[str], port: int) -> list[str]:
    """Put the memcached port in the place of `{mc_port}`."""
    return [each.replace("{mc_port}", str(port)) for each in options]


def mysqld_options(options: Sequence[str], port: int) -> list[str]:
    """Return the options with which mysqld starts before the plugin is installed.

    options: of mysqld and, as its system variables, of the plugin.
    port: where the plugin is to listen.
    """
    # As root the plugin ends the whole server without this option for a user; -U0: no UDP; -t2: two threads.
    user = " -uroot" if os.geteuid() == 0 else ""
    engine = f"--loose-daemon_memcached_option=-p{port} -l{LOOPBACK} -U0 -t2{user}"
    return [engine, *map(_loose, options)]


def _loose(option: str) -> str:
    # The variables are unknown until the plugin is installed, and only a loose option may be unknown.
    found = _PLUGIN_OPTION.match(option)
    return f"--loose-{option[found.start('name') :]}" if found else option


def _forget(server: Server) -> None:
    """Let the next start of the server not load the plugin: 8.0.33 now and then never gets ready when it does."""
    # One that is dead already will load it.
    with suppress(NotYetError, pymysql.err.OperationalError):
        server.answer()
        with closing(server.connect()) as connection:
            connection.query("DELETE FROM mysql.plugin WHERE name = 'daemon_memcached'")


def _load(server: Server) -> None:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        if not cursor.execute("SELECT 1 FROM information_schema.plugins WHERE plugin_name = 'daemon_memcached'"):
            cursor.execute(_INSTALL)


def _as_options(settings: Mapping[str, int]) -> list[str]:
    # Without a binary log innodb_api_enable_binlog makes 5.6 useless and ends 8.0 (tx:binlog-024).
    log = ["--log-bin=bin", "--binlog-format=row"] if settings.get("innodb_api_enable_binlog") else []
    return [*log, *(f"--{name}={value}" for name, value in settings.items())]


def config_script(server: Server) -> Iterator[str]:
    """Yield the statements of the plugin's own schema, `innodb_memcached_config.sql`."""
    yield from statements((server.program.base / "share" / "innodb_memcached_config.sql").read_text(encoding="utf-8"))


def _install(server: Server, options: Sequence[str]) -> str:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in config_script(server):
            cursor.execute(statement)
        cursor.execute(_INSTALL)
        for option in options:
            found = _PLUGIN_OPTION.match(option)
            if found:
                _require_variable(cursor, option, found["name"].replace("-", "_"))
        cursor.execute("SELECT VERSION()")
        return _first_column(cursor)[0]


def _require_variable(cursor: Cursor, option: str, variable: str) -> None:
    # An unknown loose option is only a warning in the log: a misspelt one would go unnoticed.
    cursor.execute("SHOW GLOBAL VARIABLES LIKE 'daemon\\_memcached%'")
    known = _first_column(cursor)
    if variable not in known:
        raise TargetError(f"option {option!r}: the plugin has no variable {variable!r}; it has {', '.join(known)}")


def _first_column(cursor: Cursor) -> list[str]:
    return [str(row[0]) for row in cursor.fetchall()]


def statements(script: str) -> Iterator[str]:
    """Split a script for the mysql client into statements a connection takes.

    script: SQL with `--` comments on lines of their own and no semicolon inside a statement. The plugin's own schema is
    one; its `USE test` line lacks the semicolon, since the client ends USE at the end of the line.
    """
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    ended = [f"{line};" if re.fullmatch(r"\s*USE\s+\w+\s*", line, re.IGNORECASE) else line for line in lines]
    for statement in "\n".join(ended).split(";"):
        if statement.strip():
            yield statement.strip()
