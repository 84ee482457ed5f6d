"""The servers of one row: booted on their processors, with filled tables, stopped at the end of the block.

All servers over MySQL share one mysqld with the plugin loaded and one table: kvref serves it, the plugin accesses it,
and SQL queries go to it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from kvref_bench import peers
from kvref_bench.errors import BenchError
from kvref_bench.pairs import cpus, floor
from kvref_bench.peers import PeerSpec, processes, wire
from kvref_bench.peers.mysql_tables import MySQLTables
from kvref_bench.peers.sqlite_tables import SCHEME, SQLiteTables
from kvref_bench.sql import login
from kvref_testbed.targets import QUIET, MissingError, kvref_server
from kvref_testbed.targets.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from kvref_bench.pairs.rows import ServerName
    from kvref_bench.peers import OpenPeer
    from kvref_bench.scenario.records import Table
    from kvref_bench.sql.login import Login
    from kvref_testbed.targets.progress import Progress

PLUGIN: Final = "mysql-8.0-plugin"
# More than any table here needs; otherwise the disk would be measured.
OPTIONS: Final = ("--innodb_buffer_pool_size=1G",)
# What the row cache needs of a server, and of kvref.
LOGGED: Final = ("--server-id=1", "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
ROW_CACHE: Final = ("--set", "row_cache_binlog=1")
LOOPBACK: Final = "127.0.0.1"
DURABLE: Final = {"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF"}
# Not visible from outside: kvref/storage/sqlite/wal.py itself does what FULL does in each commit.
SYNCHRONOUS: Final = "as FULL: fdatasync of the log before a write is answered"


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs.

    address: HOST:PORT of the memcached protocol; None: SQL only.
    sql: where its SQL is; None: it has none.
    pids: its processes by name. facts: what makes its writes durable, and its version.
    """

    name: ServerName
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
    compiled: Python of a compiled kvref; None: there is none.
    """

    def __init__(
        self, stack: ExitStack, table: Table, options: Sequence[str], progress: Progress, compiled: Path | None
    ) -> None:
        self._stack = stack
        self._compiled = compiled
        self._options = tuple(options)
        self._table = table
        self._progress = progress
        self._known: dict[ServerName, Server] = {}
        self._open: dict[ServerName, Callable[[], Server]] = {
            "kvref-sqlite": self._kvref_sqlite,
            "kvref-sqlite-metrics": self._kvref_sqlite_metrics,
            "kvref-workers": self._kvref_workers,
            "kvref-mysql": self._kvref_mysql,
            "kvref-mysql-level-0": partial(self._kvref_at_level, 0, "kvref-mysql-level-0"),
            "kvref-mysql-level-2": partial(self._kvref_at_level, 2, "kvref-mysql-level-2"),
            "plugin": self._plugin,
            "mysql": self._mysql,
            "memcached": self._memcached,
            "plugin-logged": partial(self._plugin, "plugin-logged", LOGGED),
            "mysql-logged": lambda: _sql_only(self.get("plugin-logged")),
            "kvref-cached": partial(self._kvref_logged, "kvref-cached", ROW_CACHE),
            "kvref-uncached": partial(self._kvref_logged, "kvref-uncached", ()),
            "floor": self._floor,
            "kvref-compiled": self._kvref_compiled,
            "kvref-compiled-mysql": self._kvref_compiled_mysql,
        }

    def get(self, name: ServerName) -> Server:
        """Return a server, running and filled.

        Raises:
            BenchError: it refuses its table. TargetError: it cannot be booted; MissingError: the machine lacks it.
        """
        if name not in self._known:
            self._known[name] = self._open[name]()
        return self._known[name]

    def _filled(self, target: str, options: tuple[str, ...] = ()) -> OpenPeer:
        peer = self._stack.enter_context(peers.open(PeerSpec(endpoint=target, options=options), self._progress))
        peer.prepare(self._table)
        return peer

    def _kvref_sqlite_metrics(self) -> Server:
        metrics = f"{LOOPBACK}:{free_port()}"
        server = self._kvref_sqlite("--metrics", metrics)
        over = threading.Event()
        # Not on the processors of the servers, where this thread is now.
        elsewhere = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
        scraper = threading.Thread(target=_scrape, args=(metrics, elsewhere, over))
        scraper.start()
        self._stack.callback(scraper.join)
        self._stack.callback(over.set)
        return replace(server, name="kvref-sqlite-metrics")

    def _kvref_workers(self) -> Server:
        return replace(self._kvref_sqlite("--workers", "2"), name="kvref-workers")

    def _kvref_sqlite(self, *options: str) -> Server:
        peer = self._filled("kvref-sqlite", (*self._options, *options))
        address = _address(peer)
        assert peer.tables_dsn is not None, "it serves a file"
        facts = {"sqlite_synchronous": SYNCHRONOUS, **SQLiteTables(peer.tables_dsn).variables()}
        return Server("kvref-sqlite", address, None, _listening(kvref=address), _facts(address) | facts)

    def _kvref_compiled(self) -> Server:
        python, build = _compiled(self._compiled)
        kvref = self._stack.enter_context(kvref_server("kvref", self._options, python=python))
        if not kvref.start():
            raise BenchError("kvref serve refuses its options: see its log")
        tables = SQLiteTables(f"{SCHEME}{kvref.file}")
        tables.create(self._table)
        tables.map(self._table)
        tables.fill(self._table, self._progress)
        if not kvref.reload():
            raise BenchError("kvref serve refuses its table: see its log")
        address = "{}:{}".format(*kvref.address)
        facts = {"sqlite_synchronous": SYNCHRONOUS, "build": build, **tables.variables()}
        return Server("kvref-compiled", address, None, _listening(kvref=address), _facts(address) | facts)

    def _kvref_compiled_mysql(self) -> Server:
        python, build = _compiled(self._compiled)
        server = self._kvref_over("kvref-compiled-mysql", self.get("mysql"), (), python)
        return replace(server, facts=dict(server.facts) | {"build": build})

    def _memcached(self) -> Server:
        address = _address(self._filled("memcached"))
        facts = _facts(address) | {"durable": "no: it keeps nothing"}
        return Server("memcached", address, None, _listening(memcached=address), facts)

    def _floor(self) -> Server:
        with socket.create_server((LOOPBACK, 0)) as place:
            address = "{}:{}".format(*place.getsockname())
            argv = [sys.executable, "-m", floor.__name__, str(place.fileno())]
            process = subprocess.Popen(argv, pass_fds=[place.fileno()])
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return Server("floor", address, None, {"floor": process.pid}, {"durable": "no: it keeps nothing"})

    def _plugin(self, name: ServerName = "plugin", options: tuple[str, ...] = ()) -> Server:
        peer = self._filled(PLUGIN, (*OPTIONS, *options))
        address = _address(peer)
        assert peer.sql_dsn is not None, "the plugin's server has a SQL port"
        sql = login.parse(peer.sql_dsn)
        tables = MySQLTables(sql)
        variables = tables.variables()
        facts = {
            name: variables[name]
            for name in (*DURABLE, "sync_binlog", "innodb_buffer_pool_size", "innodb_flush_method")
        }
        return Server(name, address, sql, _listening(mysqld=address), _facts(address) | facts)

    def _mysql(self) -> Server:
        return _sql_only(self.get("plugin"))

    def _kvref_mysql(self) -> Server:
        return self._kvref_over("kvref-mysql", self.get("mysql"), ())

    def _kvref_at_level(self, level: int, name: ServerName) -> Server:
        return self._kvref_over(name, self.get("mysql"), ("--set", f"innodb_api_trx_level={level}"))

    def _kvref_logged(self, name: ServerName, options: tuple[str, ...]) -> Server:
        return self._kvref_over(name, _sql_only(self.get("plugin-logged")), options)

    def _kvref_over(
        self, name: ServerName, behind: Server, options: tuple[str, ...], python: Path | None = None
    ) -> Server:
        kvref = self._stack.enter_context(kvref_server("kvref", (*self._options, *options), behind.dsn, python))
        if not kvref.start():
            raise BenchError("kvref serve refuses the tables of the plugin's server: see its log")
        address = "{}:{}".format(*kvref.address)
        pids = _listening(kvref=address) | dict(behind.pids)
        return Server(name, address, behind.sql, pids, dict(behind.facts) | _facts(address))


def _sql_only(plugin: Server) -> Server:
    """Return the SQL of the plugin's server, through its socket."""
    assert plugin.sql is not None, "the plugin's server has a SQL port"
    socket = str(MySQLTables(plugin.sql).query("SELECT @@socket")[0][0])
    return replace(plugin, name="mysql", address=None, sql=replace(plugin.sql, socket=socket))


def boot(
    stack: ExitStack,
    names: Iterable[ServerName],
    table: Table,
    where: frozenset[int],
    *,
    options: Sequence[str] = (),
    progress: Progress = QUIET,
    compiled: Path | None = None,
) -> dict[ServerName, Server]:
    """Boot servers on some processors, all with one table; they end with the stack.

    Args:
        stack: ends them. names: which. table: what each has. where: their processors.
        options: further ones of `kvref serve`. progress: of what is downloaded, booted and filled.
        compiled: Python of a compiled kvref, for the servers that need it.

    Raises as `Servers.get`.
    """
    with cpus.on(where):
        servers = Servers(stack, table, options, progress, compiled)
        return {name: servers.get(name) for name in names}


def require_durable(server: Server) -> None:
    """Raise BenchError where a MySQL server answers before a commit is on disk, or writes a second log."""
    wrong = {name: server.facts[name] for name, value in DURABLE.items() if server.facts.get(name, value) != value}
    if wrong:
        raise BenchError(f"{server.name} is not durable as agreed: {wrong} instead of {DURABLE}")


def _compiled(python: Path | None) -> tuple[Path, str]:
    """Return the Python of a compiled kvref, and its version.

    Raises:
        MissingError: none is given. BenchError: its kvref is not compiled.
    """
    if python is None:
        raise MissingError("no compiled kvref: make one with `bash .ci/build venv VENV` and give --compiled VENV")
    command = [str(python), "-P", "-m", "kvref", "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not version.endswith("compiled"):
        raise BenchError(f"--compiled: {python} has {version}, which is not compiled")
    return python, version


def _scrape(metrics: str, processors: set[int], over: threading.Event) -> None:
    """Read the metrics each second until it is over."""
    os.sched_setaffinity(0, processors)
    while not over.wait(1.0):
        with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=5) as reply:
            reply.read()


def _address(peer: OpenPeer) -> str:
    assert peer.address is not None, "the peer has a memcached port"
    return peer.address


def _facts(address: str) -> dict[str, str]:
    return {"version": wire.version(address)}


def _listening(**addresses: str) -> dict[str, int]:
    found = {}
    for name, address in addresses.items():
        pid = processes.listener(address)
        if pid is None:
            raise BenchError(f"no process listens at {address}")
        found[name] = cpus.root(pid)
    return found
