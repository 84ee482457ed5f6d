"""From what a user says of a server to one that answers."""

from __future__ import annotations

import os
import re
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError
from kvref_bench.peers import settings, wire
from kvref_bench.peers.mysql_tables import MySQLTables
from kvref_bench.peers.opened import OpenPeer
from kvref_bench.peers.settings import Both, Globals, OfTarget, Starter
from kvref_bench.peers.sqlite_tables import SCHEME, SQLiteTables
from kvref_bench.runs import verdict
from kvref_bench.runs.records import Peer
from kvref_bench.sql import login
from kvref_testbed import targets
from kvref_testbed.targets.kvref_server import OF_DATABASE, PID_FILE
from kvref_testbed.targets.ports import LOOPBACK, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvref_bench.peers.base_tables import Tables
    from kvref_testbed.targets.progress import Progress

ADDRESS: Final = re.compile(r".+:\d+")
# The plugin's text after VERSION is the server's version.
RELEASE: Final = re.compile(r"(5\.[67]|8\.\d+)\.\d+")
# The articles' tables are in memory as a whole, and they have up to 512 connections. 8.0 has a binary log by default,
# and flushes it with each commit over SQL; 5.6 has none, and the plugin of both writes none until
# innodb_api_enable_binlog is set, which also switches the log on.
MYSQL: Final = ("--innodb_buffer_pool_size=512M", "--max_connections=2000", "--skip-log-bin")
MEMCACHED: Final = ("-m", "4096", "-c", "4096")


@dataclass(frozen=True, slots=True)
class PeerSpec:
    """One server to measure, as a user says.

    endpoint: HOST:PORT or unix:PATH of the memcached protocol, or the name of a target (`kvref target list`), booted
        for the run and removed after it; None: only a SQL server, that of `sql`.
    name: name in the run's tables; "" derives one from the target or from the server's version.
    sql: DSN of the tables behind it, `mysql://…` or `sqlite:///PATH`; a target has its own.
    reload: shell command that makes the endpoint read its configuration tables again; without it, the plugin is
        reloaded over SQL.
    report: folder of a report of `kvref conform` on this endpoint.
    options: further options of a target's server.
    allow_destructive: whether items and mappings that are not the benchmark's may be deleted. A target's are always.
    """

    endpoint: str | None = None
    name: str = ""
    sql: str | None = None
    reload: str | None = None
    report: Path | None = None
    options: tuple[str, ...] = ()
    allow_destructive: bool = False


@contextmanager
def open_peer(spec: PeerSpec, progress: Progress = targets.QUIET) -> Iterator[OpenPeer]:
    """Reach a server, or boot it if it is a target, for the block.

    Raises:
        BenchError: it is not reached, or what it is cannot be found out.
        TargetError: no such target, or it does not start.
    """
    if spec.endpoint is None or ADDRESS.fullmatch(spec.endpoint):
        peer = _given(spec, progress)
        try:
            yield peer
        finally:
            with suppress(BenchError):  # it has ended, with all items
                peer.leave()
        return
    if spec.sql or spec.reload:
        raise BenchError(f"the target {spec.endpoint} knows its own --sql and --reload: leave them out")
    options, dsn = _options(spec.endpoint)
    with targets.private(spec.endpoint, (*options, *spec.options), progress) as private:
        target = private.target
        tables = _tables(dsn := dsn or target.sql or target.store)
        database = tables if isinstance(tables, MySQLTables) else None
        starter, reload = Starter(f"the target {target.name} has no settings"), None
        if target.store is not None:
            starter = OfTarget(private, None)
            starter = starter if database is None else Both(starter, database)
            reload = partial(_hang_up, target.folder / PID_FILE)
        elif database is not None:
            starter = Globals(database) if target.address is None else OfTarget(private, database)
        known = _known(spec, spec.name or target.name, target.address, dsn)
        yield OpenPeer(target.address, dsn, known, tables, starter, reload, progress)


def _hang_up(pid_file: Path) -> None:
    os.kill(int(pid_file.read_text()), signal.SIGHUP)


def _options(name: str) -> tuple[tuple[str, ...], str | None]:
    """Return further options of a target's server, and the DSN that they let it answer at."""
    if name.endswith("-plugin"):
        # Both protocols over TCP, so that they can be compared.
        port = free_port()
        network = ("--skip-networking=0", f"--port={port}", f"--bind-address={LOOPBACK}")
        # As many threads as memcached has by default, and the plugin; more connections than the plugin's 1000.
        user = " -uroot" if os.geteuid() == 0 else ""
        engine = f"--daemon_memcached_option=-p{{mc_port}} -l{LOOPBACK} -U0 -t4 -c4096{user}"
        return (*MYSQL, *network, engine), f"mysql://root@{LOOPBACK}:{port}/"
    if name.startswith("kvref-"):
        return () if name.startswith("kvref-sqlite") else tuple(f"{OF_DATABASE}{each}" for each in MYSQL), None
    return (MEMCACHED if name == "memcached" else MYSQL), None


def _given(spec: PeerSpec, progress: Progress) -> OpenPeer:
    address, tables = spec.endpoint, _tables(spec.sql)
    database = tables if isinstance(tables, MySQLTables) else None
    if address is None and database is None:
        raise BenchError("give an endpoint, HOST:PORT, unix:PATH or the name of a target, or the DSN of a SQL server")
    starter = Starter("only a target or a SQL server is started with settings; set them at the endpoint yourself")
    if address is None and database is not None:
        starter = Globals(database)
    reload = None if spec.reload is None else partial(settings.run_reload, spec.reload)
    known = _known(spec, spec.name, address, spec.sql)
    spared = not spec.allow_destructive
    if spared and address is not None and known.kind == "memcached":
        _require_empty(address, known.name)
    return OpenPeer(address, spec.sql, known, tables, starter, reload, progress, spared)


def _require_empty(address: str, name: str) -> None:
    """Refuse to flush what an endpoint holds: raises BenchError unless `stats` counts no items."""
    items = wire.items(address)
    if items != 0:
        holds = "`stats` does not count items" if items is None else f"the endpoint holds {items} items"
        raise BenchError(
            f"{name}: {holds}, and flush_all would delete them: measure an empty one, or give --allow-destructive"
        )


def _tables(dsn: str | None) -> Tables | None:
    if dsn is None:
        return None
    return SQLiteTables(dsn) if dsn.startswith(SCHEME) else MySQLTables(login.parse(dsn))


def _known(spec: PeerSpec, name: str, address: str | None, dsn: str | None) -> Peer:
    tables = _tables(dsn)
    if address is None:
        assert isinstance(tables, MySQLTables), "what has no address has SQL"
        version = tables.version()
        kind = "mariadb" if "MariaDB" in version else "mysql"
    else:
        version = wire.version(address)
        kind = _kind(address, version, tables)
    return Peer(
        name=name or f"{kind} {version}",
        kind=kind,
        version=version,
        address=address,
        sql=login.without_password(dsn) if dsn else None,
        verdict=verdict.read(spec.report) if spec.report is not None else None,
    )


def _kind(address: str, version: str, tables: Tables | None) -> str:
    if "kvref" in version:
        return "kvref"
    if not wire.has_mappings(address):
        return "memcached"
    if isinstance(tables, MySQLTables):
        return "plugin" if tables.has_plugin() else "kvref"
    return "plugin" if tables is None and RELEASE.fullmatch(version) else "kvref" if tables is not None else "other"
