"""The server: start-up, what it serves, reload on SIGHUP, drain on SIGTERM and SIGINT."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Final

from kvref.engine.batch import Limits
from kvref.engine.cache.memory import Cache, Policy
from kvref.engine.counters import Counters
from kvref.engine.mapping import Directory
from kvref.engine.rules import rules
from kvref.engine.session import Session, Shared
from kvref.engine.shared_state import Crawler, Marks, VBuckets, Verbosity
from kvref.engine.stats import EVICTS
from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile
from kvref.protocol.rules import WireRules, wire_rules
from kvref.server.client_warnings import ClientWarnings
from kvref.server.connection import Connection, PassOn, protocol_factory
from kvref.server.connection_limit import TOO_MANY, Descriptors, connection_limit, log_connection_limit
from kvref.server.executors import executor_for
from kvref.server.executors.base import Executor
from kvref.server.expired_rows import ExpiredRows
from kvref.server.listeners.listener import (
    Listener,
    Loaded,
    missing_privileges,
    refuse_reads,
    refuse_shared_cache,
    unknown_mappings,
)
from kvref.server.listeners.sockets import BACKLOG
from kvref.server.listeners.tls_handshakes import Handshakes, TLSAcceptor, accept
from kvref.server.settings import changed, warn_of_restart
from kvref.server.stats_rows import SocketStats, State, of_listeners, rows_of
from kvref.server.telemetry.command_times import CommandDurations
from kvref.server.telemetry.event_counters import EventCounters
from kvref.server.telemetry.lifecycle import Lifecycle, LoopMonitor
from kvref.server.timeouts import Timeouts
from kvref.server.timers import IdleRule, Timer
from kvref.server.turns import Turns
from kvref.storage.base import MappedTables
from kvref.storage.isolation import isolation


class Scope:
    """State that connections share in addition to the tables, such as the counters of `stats`, of a single process.

    Attributes:
        alone: there are no other processes.
        first: this process does what one of them has to do.
        tally: what is counted for metrics and health, of all processes.
        own: the part of it that is this process's.
    """

    alone = True
    first = True

    def __init__(self) -> None:
        self.counters = Counters()
        self.vbuckets = VBuckets()
        self.marks = Marks()
        self.crawler = Crawler()
        self.verbosity = Verbosity()
        self.tally = EventCounters(1)
        (self.own,) = self.tally.processes

    def cas_numbers(self, store: MappedTables) -> Iterator[int]:
        return store.cas_numbers()

    def publish_get(self) -> None:
        """Show other processes of the port what one get counts."""

    def publish(self, closed: int, peak: int) -> None:
        """Show other processes what was counted, how many connections were closed and how many there were at once."""

    def rows(self) -> dict[str, str]:
        """Return the rows of `stats` that are about more than this process."""
        return {}


_log = logging.getLogger("kvref.server")

UVLOOP: Final = f"uvloop {version('uvloop')}"
IMPATIENT: Final = 1.0  # seconds a write waits for another writer where the setting does not count
ARRIVED: Final = 0.02  # seconds in which the loop reads what arrived before the signal
DRAIN_SECONDS: Final = 5.0


def lock_wait(profile: Profile, settings: dict[str, int]) -> float:
    """Return how long a write waits for another writer, in seconds."""
    return settings["innodb_lock_wait_timeout"] if profile["lock.wait"] == "setting" else IMPATIENT


def log_stop(number: int, *, again: bool) -> None:
    """Log that a signal stops the server."""
    name = signal.Signals(number).name
    _log.info("stopping at once" if again else "stopping", extra={"signal": name})


class Server:
    """Serve mapped tables.

    Args:
        read_settings: returns values by name, see `settings.parse`; called again at each reload.
        scope: state shared with other processes of the port; None: there are none.
        directory: the configuration; None: read it from the store.

    Raises:
        ConfigError: the configuration has no usable row.
    """

    def __init__(
        self,
        store: MappedTables,
        profile: Profile,
        read_settings: Callable[[], dict[str, int]],
        listeners: list[Listener],
        scope: Scope | None = None,
        directory: Directory | None = None,
    ) -> None:
        self.store = store
        self.scope = scope = scope or Scope()
        self.tally = scope.own
        self.lifecycle = Lifecycle(scope.tally, profile, store.dsn)
        self.profile = profile
        self.alone = scope.alone
        self.pass_on: PassOn | None = None
        self.listeners = listeners
        self._read_settings = read_settings
        self.settings = settings = read_settings()
        self.isolation = isolation(profile, settings)
        self.started = time.time()
        self._since = time.monotonic()  # the clock may be set
        self.connections: set[Connection] = set()
        self.closed_connections = 0  # accepted ones that are gone, rejected ones and failed handshakes included
        self._listening: list[socket.socket] = []
        self.peak_connections = 0
        self.client_warnings = ClientWarnings(scope.counters)
        self.descriptors = Descriptors()
        self.handshakes = Handshakes(self.client_warnings)
        self.turns = Turns()
        numbers = scope.cas_numbers(store)
        cache = Cache(int(self.started), numbers if profile["cache.holds"] == "what-was-committed" else None)
        self.shared = Shared(
            rules(profile), directory or store.read_directory(), numbers, scope.counters, self.process_rows,
            lambda: int(time.time()), settings["item_size_max"],
            Limits(settings["daemon_memcached_r_batch_size"], settings["daemon_memcached_w_batch_size"]),
            cache, scope.vbuckets, scope.marks, crawler=scope.crawler, clients=self.client_rows,
            verbosity=scope.verbosity,
        )  # fmt: skip
        refuse_shared_cache(listeners, self.shared.directory)
        refuse_reads(listeners, store)
        self.wire_rules = self._grammar()
        self._apply_limits()
        self.executor: Executor
        self.immediate_stop = False  # the drain waits for no client
        self._reloading: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Listen and serve until SIGTERM or SIGINT; raises ConfigError if an address cannot be listened on."""
        loop = asyncio.get_running_loop()
        self.open()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        sockets = [(listener, each) for listener in self.listeners for each in listener.listen()]
        lacks = missing_privileges(self.listeners, self.store, self.shared.directory)
        self.lifecycle.configured(self.shared.directory, self._problems(lacks), self.settings)
        servers: list[asyncio.Server | TLSAcceptor] = []
        for listener, listening in sockets:
            make = protocol_factory(self, listener)
            servers.append(await accept(listening, listener, self, make))
            self._listening.append(listening)
            listener.log(listening)
        log_connection_limit(self.settings["maxconns"])
        self.lifecycle.ready()
        await self.until(stop)
        self.lifecycle.stopping()
        for each in servers:
            each.close()
        for listener in self.listeners:
            listener.remove_files()
        await self.drain()

    def _stop(self, stop: asyncio.Event, number: int) -> None:
        """Stop; at the second signal, without waiting for clients."""
        self.immediate_stop = stop.is_set()
        log_stop(number, again=self.immediate_stop)
        stop.set()

    def open(self) -> None:
        """Begin, in the running loop; raises ConfigError if the store cannot serve with these settings."""
        if self.settings["row_cache_binlog"]:
            self._follow_binary_log()
        wait = lock_wait(self.profile, self.settings)
        self.executor = executor_for(self.store, self.isolation, wait)
        self.store.when_committed = self.tally.committed
        self.tally.begin()

    def _follow_binary_log(self) -> None:
        found = self.store.follow_binary_log(self.settings["row_cache_staleness"] / 1000, self.shared.directory.usable)
        if not self.isolation.reads_committed:
            names = "innodb_api_trx_level", "daemon_memcached_r_batch_size"
            given = " and ".join(f"{name}={self.settings[name]}" for name in names)
            found.append(
                f"no row is cached, because gets do not show the newest committed rows with {given} in profile"
                f" {self.profile.name}: serve with profile kvref and its defaults, innodb_api_trx_level=1 and"
                " daemon_memcached_r_batch_size=1"
            )
        for sentence in found if self.scope.first else ():
            _log.warning(sentence)

    @property
    def command_durations(self) -> CommandDurations | None:
        """Return what counts the durations of commands, None if no metrics are served."""
        return self.tally.commands if self.scope.tally.watched else None

    async def until(self, stop: asyncio.Event) -> None:
        """Commit idle batches until it is time to stop."""
        idle, pause = IdleRule(str(self.profile["idle.commits"])), "innodb_api_bk_commit_interval"
        sweeps: list[Timer | Timeouts | LoopMonitor | ExpiredRows] = [
            Timer(
                lambda: idle.commit(self.connections, self.settings[pause]), lambda: idle.period(self.settings[pause])
            ),
            Timeouts(lambda: list(self.connections), lambda: self.settings, self.shared.counters),
            Timer(lambda: self.shared.marks.tick(time.time())),
        ]
        if self.scope.first:
            interval = lambda: self.settings["expired_rows_purge_interval"]  # noqa: E731
            sweeps.append(ExpiredRows(self.executor, self.shared, interval))
        if self.scope.tally.watched:
            sweeps.append(LoopMonitor(self.tally, lambda: self.connections, self.executor.check, self.store))
        await stop.wait()
        for each in sweeps:
            each.stop()

    def publish(self, *, get: bool = False) -> None:
        """Show other processes of the port what was counted; called before replies leave, if there are any."""
        if get:
            self.scope.publish_get()
        else:
            self.scope.publish(self.closed_connections, self.peak_connections)

    @property
    def _open_connections(self) -> int:
        return len(self.connections) + self.handshakes.waiting

    @property
    def full(self) -> bool:
        """Return whether the maximum number of connections is open."""
        return self._open_connections >= self._max_connections

    def register(self, connection: Connection, transport: asyncio.Transport) -> bool:
        """Register a connection, or reject it if there are too many; return whether it is registered."""
        # A TLS connection still counts among those in the handshake.
        others = self._open_connections - (transport.get_extra_info("sslcontext") is not None)
        if not connection.moved and others >= self._max_connections:
            self.shared.counters.rejected_conns += 1
            self.closed_connections += 1
            transport.write(TOO_MANY)
            transport.close()
            return False
        self.connections.add(connection)
        self.peak_connections = max(self.peak_connections, len(self.connections))
        self.shared.counters.total_connections += not connection.moved
        self.descriptors.taken(transport, len(self.connections))
        return True

    def unregister(self, connection: Connection) -> None:
        """Remove a connection that was closed."""
        if connection in self.connections:
            self.connections.remove(connection)
            self.closed_connections += not connection.passed_on
        if connection.exceeded_quantum:
            self.turns.ended()
        self.publish()

    def reload(self) -> None:
        """Read the configuration tables again; where they cannot be used the old mappings stay in force."""
        self.lifecycle.reloading()
        self._reloading = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        try:
            settings = self._read_settings()
            loaded = self.load_listeners()
            directory = await self.executor.read_directory()
            refuse_shared_cache(self.listeners, directory)
            lacks = await asyncio.to_thread(missing_privileges, self.listeners, self.store, directory)
            self.take(settings, directory, loaded)
        except (ConfigError, StoreError) as error:
            self.lifecycle.not_reloaded(error)
        else:
            warn_of_restart(self.settings, settings)
            self.lifecycle.reloaded(self.shared.directory, self._problems(lacks), self.settings)

    def _problems(self, lacks: list[str]) -> list[str]:
        return [*self.store.problems, *lacks, *unknown_mappings(self.listeners, self.shared.directory)]

    def load_listeners(self) -> list[Loaded]:
        """Read the files of each listener again; raises ConfigError if one is invalid."""
        return [each.load() for each in self.listeners]

    def take(self, settings: dict[str, int], directory: Directory, loaded: list[Loaded]) -> None:
        """Activate a configuration that was read; settings that need a restart are ignored."""
        for listener, files in zip(self.listeners, loaded, strict=True):
            listener.renew(files)
        before = self.settings, self.shared.directory.options
        self.shared.directory.replace(directory)
        self.settings = changed(self.settings, settings)
        self.isolation.level = self.settings["innodb_api_trx_level"]
        self.shared.cache.restart(int(time.time()))
        self.wire_rules = self._grammar()
        self._apply_limits(keeps_rows=before == (self.settings, directory.options))

    def _grammar(self) -> WireRules:
        for_cache = self.shared.directory.policies.fills_cache
        return wire_rules(
            self.profile,
            self.settings["item_size_max"],
            for_cache=for_cache,
            key_limit=self.settings["key_size_max"],
            line_limit=self.settings["line_size_max"],
            oversized_set_removes=bool(self.settings["oversized_set_removes"]),
            tls=any(each.certificates is not None for each in self.listeners),
        )

    def _apply_limits(self, *, keeps_rows: bool = False) -> None:
        self.shared.reply_size_max = self.settings["reply_size_max"]
        self.shared.oversized_set_removes = bool(self.settings["oversized_set_removes"])
        self.shared.sticky_mapping = bool(self.settings["sticky_mapping"])
        self._max_connections = connection_limit(self.settings["maxconns"])
        self.store.limit_row_cache(self.settings["row_cache_bytes"], keeps_rows=keeps_rows)

    async def drain(self) -> None:
        """Answer the commands that have arrived, commit open batches and close every connection."""
        await asyncio.sleep(ARRIVED)
        for connection in list(self.connections):
            connection.end()
        self.executor.commit()
        deadline = time.monotonic() + DRAIN_SECONDS
        while self.connections and time.monotonic() < deadline and not self.immediate_stop:
            await asyncio.sleep(0.01)
        await self.executor.close()

    def process_rows(self) -> dict[str, str]:
        """Return the rows of `stats` and `stats settings` that only the process knows."""
        now = time.time()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        libevent = str(self.profile["stats.libevent"])
        return {
            "pid": str(os.getpid()),
            "uptime": str(int(time.monotonic() - self._since)),
            "time": str(int(now)),
            "version": self.shared.rules.release,
            "libevent": UVLOOP if libevent == "own" else libevent,
            "pointer_size": "64",
            "rusage_user": f"{usage.ru_utime:.6f}",
            "rusage_system": f"{usage.ru_stime:.6f}",
            # The daemon counts the socket it listens on (core:verb-054).
            "daemon_connections": "1",
            "curr_connections": str(len(self.connections) + 1),
            "connection_structures": str(self.peak_connections + 1),
            "limit_maxbytes": str(self.profile["stats.limit_maxbytes"]),
            "engine_maxbytes": str(self.profile["stats.limit_maxbytes"]),
            "accepting_conns": "1",
            "threads": str(self.profile["stats.threads"]),
            "num_threads": str(self.profile["stats.threads"]),
            "cas_enabled": "yes",
            "binding_protocol": "auto-negotiate",
            "auth_enabled_sasl": "yes" if any(each.users for each in self.listeners) else "no",
            "item_size_max": str(self.settings["item_size_max"]),
            "tcp_backlog": str(BACKLOG),
            **(self._newer_rows() if self.shared.rules.beyond_plugin else {}),
            **self._cache_rows(),
            **{name: str(number) for name, number in self.store.numbers().items()},
            **self.scope.rows(),
        }

    def client_rows(self, requester: Session) -> list[tuple[str, str]]:
        """Return the rows of `stats conns` in the answer to `requester`, of this process only."""
        quiet = time.monotonic() - self._since
        sockets = [
            SocketStats(each.fileno(), None, each.getsockname(), each.family, State.LISTENING, quiet)
            for each in self._listening
        ]
        connected = (each.describe(requester) for each in self.connections)
        return rows_of([*sockets, *(each for each in connected if each is not None)])

    def _cache_rows(self) -> dict[str, str]:
        """Return the rows of `stats` about the memory cache; where tables have the items too, these are counted."""
        rows = self.shared.cache.rows()
        if self.shared.rules.beyond_plugin and self.shared.directory.policies.set is not Policy.CACHE:
            del rows["curr_items"], rows["total_items"]
        return rows

    def _newer_rows(self) -> dict[str, str]:
        """Return the rows that the plugin does not have, most of them of `stats settings` of memcached 1.6."""
        maxconns = str(self._max_connections)
        return {
            **{name: str(self.settings[name]) for name in ("idle_timeout", "expired_rows_purge_interval")},
            "maxconns": maxconns,
            "max_connections": maxconns,
            "rejected_connections": str(self.shared.counters.totals()["rejected_conns"]),
            "verbosity": str(self.shared.verbosity.level),
            EVICTS: "on" if self.shared.directory.policies.fills_cache else "off",
            "shutdown_command": "no",
            "maxconns_fast": "yes",  # excess clients are rejected, not kept waiting
            "track_sizes": "no",
            **of_listeners(self.listeners),
        }
