"""The servers of one row: booted on their processors, with filled tables, stopped at the end of the block.

`rows.toml` describes them. All servers over MySQL share one mysqld with the plugin loaded and one table: kvref serves
it, the plugin accesses it, and SQL queries go to it.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from kvref_bench import peers
from kvref_bench.errors import BenchError
from kvref_bench.pairs import floor
from kvref_bench.pairs.rows import recipes
from kvref_bench.peers import PeerSpec, wire
from kvref_bench.peers.mysql_tables import MySQLTables
from kvref_bench.peers.processes import listening
from kvref_bench.peers.sqlite_tables import SCHEME, SQLiteTables
from kvref_bench.sql import login
from kvref_bench.turns import cpus, serving
from kvref_testbed.targets import QUIET, MissingError, kvref_server
from kvref_testbed.targets.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from kvref_bench.pairs.rows import Recipe
    from kvref_bench.scenario.records import Table
    from kvref_bench.sql.login import Login
    from kvref_testbed.targets.progress import Progress

PLUGIN: Final = "mysql-8.0-plugin"
# More than any table here needs; otherwise the disk would be measured.
OPTIONS: Final = ("--innodb_buffer_pool_size=1G",)
LOOPBACK: Final = "127.0.0.1"
DURABLE: Final = {"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF"}
FACTS: Final = (*DURABLE, "sync_binlog", "innodb_buffer_pool_size", "innodb_flush_method")
# Not visible from outside: kvref/storage/sqlite/wal.py itself does what FULL does in each commit.
SYNCHRONOUS: Final = "as FULL: fdatasync of the log before a write is answered"
KEEPS_NOTHING: Final = {"durable": "no: it keeps nothing"}


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs.

    address: HOST:PORT of the memcached protocol; None: SQL only.
    sql: where its SQL is; None: it has none.
    pids: its processes by name. facts: what makes its writes durable, and its version.
    """

    name: str
    address: str | None
    sql: Login | None
    pids: Mapping[str, int]
    facts: Mapping[str, str]

    @property
    def dsn(self) -> str:
        """Return the DSN of its SQL, through its socket where that is known. Raises BenchError where it has none."""
        if self.sql is None:
            raise BenchError(f"{self.name} has no SQL")
        if self.sql.socket is not None:
            return f"mysql://{self.sql.user}@localhost/?unix_socket={quote(self.sql.socket)}"
        return f"mysql://{self.sql.user}@{self.sql.host}:{self.sql.port}/"


class Servers:
    """Boots the servers of a row when they are first used; each once.

    table: the table of each server. options: further options of `kvref serve`.
    other: Python of another kvref; None: there is none.
    """

    def __init__(
        self, stack: ExitStack, table: Table, options: Sequence[str], progress: Progress, other: Path | None
    ) -> None:
        self._stack = stack
        self._other = other
        self._options = tuple(options)
        self._table = table
        self._progress = progress
        self._known: dict[str, Server] = {}

    def get(self, name: str) -> Server:
        """Return a server, running and filled.

        Raises:
            BenchError: it refuses its table. TargetError: it cannot be booted; MissingError: the machine lacks it.
        """
        if name not in self._known:
            recipe = recipes()[name]
            makes = {"kvref": self._kvref, "mysqld": self._mysqld, "memcached": self._memcached, "floor": self._floor}
            made = _sql_only(self.get(recipe.over)) if recipe.kind == "sql" else makes[recipe.kind](recipe)
            self._known[name] = replace(made, name=name)
        return self._known[name]

    def _kvref(self, recipe: Recipe) -> Server:
        """Start kvref over SQLite, or over the server that the recipe names."""
        python, facts = _other(self._other) if recipe.other else (None, {})
        options = (*self._options, *recipe.options)
        metrics = f"{LOOPBACK}:{free_port()}" if recipe.scraped else ""
        options += ("--metrics", metrics) if metrics else ()
        database = self.get(recipe.over) if recipe.over else None
        kvref = self._stack.enter_context(kvref_server("kvref", options, database.dsn if database else None, python))
        serving.start(kvref, None if database else self._table, self._progress)
        address, pids = "{}:{}".format(*kvref.address), {}
        if database is not None:
            facts, pids = {**database.facts, **facts}, dict(database.pids)
        else:
            facts |= {"sqlite_synchronous": SYNCHRONOUS, **SQLiteTables(f"{SCHEME}{kvref.file}").variables()}
        if metrics:
            serving.scrape(self._stack, metrics)
        version = {"version": wire.version(address)}
        return Server("", address, database.sql if database else None, listening(kvref=address) | pids, facts | version)

    def _filled(self, target: str, options: tuple[str, ...] = ()) -> tuple[str, str | None]:
        peer = self._stack.enter_context(peers.open(PeerSpec(endpoint=target, options=options), self._progress))
        peer.prepare(self._table)
        assert peer.address is not None, "the peer has a memcached port"
        return peer.address, peer.sql_dsn

    def _memcached(self, recipe: Recipe) -> Server:
        address, _ = self._filled("memcached", recipe.options)
        facts = {"version": wire.version(address), **KEEPS_NOTHING}
        return Server("", address, None, listening(memcached=address), facts)

    def _floor(self, _: Recipe) -> Server:
        with socket.create_server((LOOPBACK, 0)) as place:
            address = "{}:{}".format(*place.getsockname())
            argv = [sys.executable, "-m", floor.__name__, str(place.fileno())]
            process = subprocess.Popen(argv, pass_fds=[place.fileno()])
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return Server("", address, None, {"floor": process.pid}, KEEPS_NOTHING)

    def _mysqld(self, recipe: Recipe) -> Server:
        address, dsn = self._filled(PLUGIN, (*OPTIONS, *recipe.options))
        assert dsn is not None, "the plugin's server has a SQL port"
        variables = MySQLTables(login.parse(dsn)).variables()
        facts = {"version": wire.version(address)} | {name: variables[name] for name in FACTS}
        return Server("", address, login.parse(dsn), listening(mysqld=address), facts)


def _sql_only(plugin: Server) -> Server:
    """Return the SQL of the plugin's server, through its socket."""
    assert plugin.sql is not None, "the plugin's server has a SQL port"
    path = str(MySQLTables(plugin.sql).query("SELECT @@socket")[0][0])
    return replace(plugin, address=None, sql=replace(plugin.sql, socket=path))


def boot(
    stack: ExitStack,
    names: Iterable[str],
    table: Table,
    where: frozenset[int],
    options: Sequence[str] = (),
    progress: Progress = QUIET,
    other: Path | None = None,
) -> dict[str, Server]:
    """Boot servers on some processors, all with one table; they end with the stack.

    Args:
        stack: ends them. names: which. table: what each has. where: their processors.
        options: further ones of `kvref serve`. progress: of what is downloaded, booted and filled.
        other: Python of another kvref, for the servers that need it.

    Raises as `Servers.get`.
    """
    with cpus.on(where):
        servers = Servers(stack, table, options, progress, other)
        return {name: servers.get(name) for name in names}


def require_durable(server: Server) -> None:
    """Raise BenchError where a MySQL server answers before a commit is on disk, or writes a second log."""
    wrong = {name: server.facts[name] for name, value in DURABLE.items() if server.facts.get(name, value) != value}
    if wrong:
        raise BenchError(f"{server.name} is not durable as agreed: {wrong} instead of {DURABLE}")


def _other(python: Path | None) -> tuple[Path, dict[str, str]]:
    """Return the Python of another kvref, and its version as a fact; raises MissingError if none is given."""
    if python is None:
        raise MissingError("no other kvref: give --other VENV, an environment with another version")
    command = [str(python), "-P", "-m", "kvref", "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return python, {"build": version}
