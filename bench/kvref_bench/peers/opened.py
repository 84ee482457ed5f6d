"""A server that a run measures: started with settings, its table filled, its counters read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from kvref_bench.errors import BenchError
from kvref_bench.peers import processes, wire
from kvref_bench.peers.base_tables import rows
from kvref_bench.peers.mysql_tables import MySQLTables
from kvref_bench.peers.processes import Sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvref_bench.peers.base_tables import Tables
    from kvref_bench.peers.settings import Starter
    from kvref_bench.runs.records import Peer
    from kvref_bench.scenario.records import Table
    from kvref_testbed.targets.progress import Progress

RELOAD_SECONDS: Final = 15.0
# Numbers of `stats` that are not counters.
NOT_COUNTED: Final = ("pid", "uptime", "time", "pointer_size")


@dataclass
class OpenPeer:
    """A server that answers; made by `peers.open`.

    address: HOST:PORT or unix:PATH of the memcached protocol, None for SQL alone.
    tables_dsn: of the tables behind, with its password; None for native memcached.
    _spared: whether a mapping of another schema with the name of the benchmark's must stay.
    """

    address: str | None
    tables_dsn: str | None
    _known: Peer
    _tables: Tables | None
    _starter: Starter
    _reload: Callable[[], None] | None
    _progress: Progress
    _spared: bool = False
    _table: Table | None = field(default=None)
    _filled: bool = False
    _running: dict[str, int] | None = None

    @property
    def sql_dsn(self) -> str | None:
        """Return the DSN of the SQL server behind it; None if there is none."""
        return self.tables_dsn if isinstance(self._tables, MySQLTables) else None

    @property
    def has_tables(self) -> bool:
        """Return whether there is a table behind it; native memcached has none."""
        return self._tables is not None

    @property
    def tables(self) -> Tables:
        """Return the tables behind it; only where it has tables."""
        assert self._tables is not None, "it has tables"
        return self._tables

    @property
    def settable(self) -> bool:
        """Return whether it can be started with settings."""
        return self._starter.settable

    @property
    def peer(self) -> Peer:
        """Return its description, with the settings of the last start and the table of the last `prepare`."""
        tables, table = self._tables, self._table
        variables = {} if tables is None else tables.variables()
        if self.address is not None:
            shown = wire.stats(self.address, "settings")
            variables |= {f"stats settings {name}": value for name, value in shown.items()}
        return replace(
            self._known,
            variables=variables,
            containers=tables.containers() if tables is not None and table is not None and self.address else [],
            ddl=tables.ddl(table) if tables is not None and table is not None else "",
            pid=next(iter(self.processes().values()), None),
        )

    def start(self, settings: Mapping[str, int]) -> None:
        """Let it run with these settings and no others, on the same data.

        settings: by the plugin's own names; variables of a SQL server too.

        Raises:
            BenchError: it does not know one, or cannot be started again; it runs without settings then.
        """
        self._running = None
        try:
            self._starter.start(settings)
        except BenchError as error:
            raise BenchError(f"{self._known.name}: {error}") from error

    def prepare(self, table: Table) -> None:
        """Create the table again, map it, fill it, and wait until it is served; no session may be open.

        Native memcached receives the same keys and values over its protocol.

        Raises:
            BenchError: the database or the endpoint returns an error.
        """
        self._progress.step(f"{self._known.name}: {table.keys.count} rows of {table.name}")
        self._table = None
        if self._tables is None:
            self._fill_memcached(table)
            return
        if self.address is None:
            self._tables.create(table)
            self._tables.fill(table, self._progress)
        else:
            self._make_mapped(self.address, self._tables, table)
        self._table = table

    def sample(self) -> Sampling:
        """Return a sample that is to begin: of its counters, and of its processes where these are on this machine."""
        return Sampling(self.processes(), self._counters)

    def _fill_memcached(self, table: Table) -> None:
        assert self.address is not None, "what has no address has tables"
        if self._known.kind != "memcached":
            raise BenchError(f"{self._known.name} serves tables: give --sql DSN, so that one can be made")
        wire.flush(self.address)
        self._filled = True
        for done in wire.load(self.address, rows(table)):
            self._progress.advance(f"items of {table.name}", done, table.keys.count)
        self._check(self.address, "", table)

    def leave(self) -> None:
        """Flush native memcached that was filled: it was empty before, or the user allowed to delete what it had."""
        if self._filled and self.address is not None:
            wire.flush(self.address)

    def _make_mapped(self, address: str, tables: Tables, table: Table) -> None:
        plugin = tables if isinstance(tables, MySQLTables) and tables.has_plugin() else None
        if self._reload is None and plugin is None:
            raise BenchError(f"{self._known.name}: give --reload COMMAND, which makes it read its tables again")
        if self._spared and (theirs := tables.replaced(table)) is not None:
            raise BenchError(
                f"{self._known.name}: the mapping {table.mapping} is of {theirs}, and the benchmark would replace it:"
                " --set table.mapping=NAME, or give --allow-destructive"
            )
        if plugin is not None:
            plugin.unload_plugin()
        try:
            tables.make(table, self._progress)
        finally:
            if plugin is not None:
                plugin.load_plugin()
        if self._reload is not None and plugin is None:
            self._reload()
        wire.wait(address)
        # A server reads its configuration some time after the request.
        wire.until(lambda: self._check(address, f"@@{table.mapping}{tables.delimiter()}", table), RELOAD_SECONDS)

    def _check(self, address: str, before: str, table: Table) -> None:
        if before and wire.get(address, f"@@{table.mapping}".encode()) is None:
            raise BenchError(f"{self._known.name} does not know the mapping {table.mapping}: look into its log")
        for key, value in islice(rows(table), 1):
            word = before.encode() + key
            if (got := wire.get(address, word)) != value:
                raise BenchError(f"{self._known.name} answers `get {word.decode()}` with {got!r} instead of {value!r}")

    def processes(self) -> dict[str, int]:
        """Return its processes on this machine: the server, and the database where that is another one."""
        # Finding them goes through every socket of the machine: they stay what they are until the next start.
        if self._running is not None:
            return self._running
        found: dict[str, int | None] = {}
        if self.address is not None:
            found[processes.SERVER] = processes.listener(self.address)
        if isinstance(self._tables, MySQLTables):
            login = self._tables.login
            server_pid = (
                processes.owner(login.socket) if login.socket else processes.listener(f"{login.host}:{login.port}")
            )
            if server_pid not in found.values():
                found[processes.SERVER if self.address is None else processes.DATABASE] = server_pid
        elif self._tables is None and (server := found.get(processes.SERVER)) is not None:
            found[processes.DATABASE] = processes.database(server)
        self._running = {role: pid for role, pid in found.items() if pid is not None}
        return self._running

    def _counters(self) -> dict[str, int]:
        reported = {} if self.address is None else wire.stats(self.address)
        counted = {name: int(value) for name, value in reported.items() if value.isdigit() and name not in NOT_COUNTED}
        return counted if self._tables is None else counted | self._tables.counters()
