"""`kvref serve`: the reference server on one store, or several."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import uvloop

from kvref import profiles
from kvref.addresses import Address, parse_address
from kvref.cli import completion
from kvref.errors import ConfigError, StoreError
from kvref.profiles import Profile
from kvref.server import garbage
from kvref.server.listeners import sockets
from kvref.server.listeners.listener import Listener, listener
from kvref.server.listeners.sockets import METRICS
from kvref.server.server import Server, lock_wait
from kvref.server.settings import parse, placement_of, read_file, server_parameters
from kvref.server.telemetry import logs
from kvref.server.telemetry.exporter import Exporter
from kvref.server.telemetry.sources import of_server
from kvref.server.workers.parent import Parent
from kvref.server.workers.plan import Plan, refuse_settings
from kvref.storage.base import Store, without_password
from kvref.storage.config.catalog import DEFAULT_NAME
from kvref.storage.several import Placement, tables_of
from kvref.storage.sqlite.file import SCHEME, path_of, warn_of_network
from kvref.storage.sqlite.schema import refuse_foreign
from kvref.storage.sqlite.store import SQLiteStore
from kvref.storage.stores import open_store, scheme_of

OTHER = "Other options"


class _ServeCommand(click.Command):
    """A command that lists its options by _GROUPS; each has an environment variable: KVREF_TLS_CERT is `--tls-cert`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            if isinstance(parameter, click.Option):
                parameter.envvar = f"KVREF_{parameter.opts[0].strip('-').replace('-', '_').upper()}"
                parameter.show_envvar = True

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        group_of = {name: title for title, names in _GROUPS.items() for name in names}
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in (*_GROUPS, OTHER)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                records[group_of.get(parameter.name or "", OTHER)].append(record)
        for title, rows in records.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


DEFAULT_ADDRESS: Final = "127.0.0.1:11211"
DEFAULT_PROFILE: Final = "kvref"
MAX_LISTENERS: Final = 256  # a worker receives the number of a connection's listener in one byte
_PATH: Final = click.Path(path_type=str)
LISTENER_PARAMETERS: Final = (
    "address", "socket_mode", "socket_owner",
    "auth_file", "tls_cert", "tls_key", "tls_client_ca", "mappings", "read_only", "no_flush", "metadump", "open",
)  # fmt: skip


def _table(given: dict[str, Any]) -> dict[str, Any]:
    """Return the listener's options that are given as a table that `listener` accepts."""
    table = {
        name: list(given[name]) if name == "mappings" else given[name]
        for name in LISTENER_PARAMETERS
        if given[name] or (name == "metadump" and given[name] is not None)
    }
    if table.pop("no_flush", False):
        table["flush_all"] = False
    return table


def listeners(listen: dict[str, Any], config: Path | None, passed: list[socket.socket]) -> list[Listener]:
    """Return the listeners of the options or of the file. Raises ConfigError if both or invalid ones are given.

    Args:
        listen: the options as a table of a listener.
        passed: sockets from the service manager, in place of an address.
    """
    tables = read_file(config).listeners
    if max(len(tables), len(passed)) > MAX_LISTENERS:
        raise ConfigError(f"{max(len(tables), len(passed))} listeners: one server supports at most {MAX_LISTENERS}")
    if tables and listen:
        raise ConfigError(
            f"configuration file {config} has [[listener]]: configure listeners either there or by options"
        )
    if passed and tables:
        raise ConfigError(
            f"configuration file {config} has [[listener]], but systemd passed sockets: remove [[listener]]"
        )
    if passed and "address" in listen:
        raise ConfigError(f"--listen {listen['address']}: systemd passed sockets: remove --listen")
    if passed:
        return [listener(listen, each) for each in passed]
    return [listener(table) for table in tables or [{"address": DEFAULT_ADDRESS, **listen}]]


MAX_WORKERS = 64
_DEMO = "the configuration tables and the plugin's demo rows"
_CACHE = f"the configuration tables and the cache table {DEFAULT_NAME}"

_HELP = f"""Serve mapped tables over the memcached protocols, text and binary.

Reads the plugin's configuration tables (containers, config_options) from the database and serves the tables they name.
SIGHUP reloads them and the --config file; only settings that `kvref settings` marks with * change without a restart.
SIGTERM drains connections; a second SIGTERM stops immediately. Sockets passed by systemd replace --listen; the one
named `{METRICS}` replaces --metrics.

\b
Exit codes:
  0  stopped by SIGTERM or SIGINT; all acknowledged writes are committed
  1  internal error; see the log
  2  invalid options, settings or configuration tables, or an unavailable listen address
  3  the database cannot be opened or reached, or rejects the connection

An option overrides the environment variable in its brackets, that overrides the --config file, and the file overrides
the default. `kvref config show` prints the result, `kvref settings` the settings for --set.
"""


def _use_file(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """Take the values of a configuration file as defaults of the other options."""
    if file is not None:
        context.default_map = server_parameters(file)
    return file


_GROUPS = {
    "Store": ("dsn", "create", "demo", "profile"),
    "Listener": LISTENER_PARAMETERS,
    "Configuration": ("config", "pairs", "workers"),
    "Metrics and log": ("metrics", "metrics_hosts", "log_format", "log_level"),
}


@click.command(cls=_ServeCommand, help=_HELP)
@click.option(
    "--listen",
    "address",
    metavar="HOST:PORT|unix:PATH",
    help=f"Address or unix socket to listen on. Port 0 selects any free port.  [default: {DEFAULT_ADDRESS}]",
)
@click.option(
    "--socket-mode",
    metavar="MODE",
    help="Permissions of the unix socket, in octal. Clients need write permission.  [default: 0700]",
)
@click.option(
    "--socket-owner", metavar="USER[:GROUP]", help="Owner and group of the unix socket. :GROUP sets only the group."
)
@click.option(
    "--auth-file",
    type=_PATH,
    metavar="FILE",
    help="File of `user:password` lines. Text clients authenticate with `set`, binary clients with SASL PLAIN.",
)
@click.option("--tls-cert", type=_PATH, metavar="FILE", help="PEM file of the server certificate. Enables TLS.")
@click.option(
    "--tls-key",
    type=_PATH,
    metavar="FILE",
    help="PEM file of the private key, if it is not in the --tls-cert file.",
)
@click.option(
    "--tls-client-ca",
    type=_PATH,
    metavar="FILE",
    help="PEM file of CA certificates. Clients must present a certificate that one of them signed.",
)
@click.option("--mapping", "mappings", multiple=True, metavar="NAME", help="Serve only this mapping. Repeatable.")
@click.option("--read-only", is_flag=True, help="Reject every command that writes.")
@click.option("--no-flush", is_flag=True, help="Reject flush_all.")
@click.option(
    "--metadump/--no-metadump",
    default=None,
    help="Allow or reject `lru_crawler metadump`, which lists all keys.  [default: rejected with --mapping,"
    " --read-only or --no-flush]",
)
@click.option("--open", is_flag=True, help="Allow listening on non-loopback addresses without authentication.")
@click.option(
    "--store",
    "dsn",
    metavar="DSN",
    help="Database to serve: sqlite:///PATH, mysql://USER@HOST/, or memory://, which is the plugin's demo table without"
    " durability. An empty SQLite file gets the plugin's configuration tables and a cache table. [[store]] of --config"
    " names several. [default: a new file in a temporary folder]",
)
@click.option("--create", is_flag=True, help="Create the SQLite file of --store if it does not exist.")
@click.option(
    "--demo",
    is_flag=True,
    help="Give a new SQLite file the plugin's demo table instead of a cache table. The profiles mysql-* always do.",
)
@click.option(
    "--profile",
    shell_complete=completion.profile,
    default=DEFAULT_PROFILE,
    show_default=True,
    metavar="NAME",
    help="Behavior profile; `kvref spec --profile` lists its requirements.",
)
@click.option(
    "--set",
    "pairs",
    shell_complete=completion.setting,
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of a setting; `kvref settings` lists them. Repeatable.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=_use_file,
    metavar="FILE",
    help="TOML file with store, profile, workers, metrics, metrics_hosts, log_format, log_level, and [settings] and"
    " [[listener]] tables. SIGHUP reads [settings] again, and the files of users and certificates.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of worker processes sharing the port. Incompatible settings are rejected.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve /metrics and /healthz over HTTP at this address. Requires the extra `metrics`.",
)
@click.option(
    "--metrics-host",
    "metrics_hosts",
    multiple=True,
    metavar="NAME",
    help="Additional name to accept in the Host header of --metrics. IP addresses, localhost and the"
    " machine's host name are always accepted. Repeatable.",
)
@click.option(
    "--log-format",
    type=click.Choice(logs.FORMATS),
    default="text",
    show_default=True,
    help="Format of log lines on stderr.",
)
@click.option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    default="info",
    show_default=True,
    help="Minimum level to log.",
)
def command(  # noqa: PLR0913 - one for each option
    dsn: str | None, profile: str, pairs: tuple[str, ...], config: Path | None, *, create: bool, demo: bool,
    workers: int, metrics: str | None, metrics_hosts: tuple[str, ...], log_format: str, log_level: str, **listen: Any,
) -> None:  # fmt: skip
    """Start the server; options are checked before anything is opened."""
    logs.set_up(log_format, log_level)
    try:
        passed = sockets.take()
        where = listeners(_table(listen), config, passed.clients)
        exporter = _exporter(metrics, passed.metrics, metrics_hosts)
        new = _NewStore(create, demo)
        _serve(where, stores_of(dsn, config), profile, partial(parse, list(pairs), config), workers, exporter, new)
    except StoreError as error:
        raise _StoreRefusesError(str(error)) from error


class _StoreRefusesError(click.ClickException):
    """The store rejects the connection or cannot be reached; a later retry can succeed."""

    exit_code = 3


class _NewStore(NamedTuple):
    """The options for a SQLite file that is not a store yet."""

    create: bool
    demo: bool


def _serve(
    where: list[Listener], given: Placement | None, profile: str, read: Callable[[Profile], dict[str, int]],
    workers: int, exporter: Exporter | None, fresh: _NewStore,
) -> None:  # fmt: skip
    facts = servable(profile)
    read_settings = partial(read, facts)
    settings = read_settings()
    new = given is None
    placed = given or Placement({"": f"{SCHEME}{tempfile.mkdtemp(prefix='kvref-')}/kvref.sqlite"}, {})
    dsns = list(placed.dsns.values())
    for dsn in dsns:
        refuse_settings(workers, facts, settings, scheme_of(dsn))
        if dsn.startswith(SCHEME):
            refuse_foreign(path_of(dsn), missing_is_new=new or fresh.create)
            warn_of_network(path_of(dsn))
    with ExitStack() as stack:
        stores: list[Store] = []
        for dsn in dsns:
            store = open_store(dsn, facts, lock_wait(facts, settings))
            stack.callback(store.close)
            stores.append(store)
            _initialise(store, new=new, demo=fresh.demo or not facts.flag("verbs.beyond_plugin"))
            if scheme_of(dsn).volatile:
                logging.getLogger("kvref").warning("store %s: all rows are lost when the server stops", dsn)
        if workers == 1:
            server = Server(tables_of(placed, stores, facts), facts, read_settings, where)
            if exporter is not None:
                server.scope.tally.watched = True
                exporter.serve(of_server(server, dsns))
            garbage.prepare()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(server.run())
    if workers > 1:
        plan = Plan(placed, facts, workers, read_settings, settings, where, os.getpid())
        plan.tally.watched = exporter is not None
        Parent(plan, exporter).run()
    if new:
        # Its name is in a line at the start, far above by now.
        (dsn,) = dsns
        logging.getLogger("kvref").info("the rows are in %s: to serve them again, give --store %s", path_of(dsn), dsn)


def stores_of(dsn: str | None, config: Path | None) -> Placement | None:
    """Return the store of --store, or the stores of the file; None if neither names one. Raises ConfigError."""
    found = placement_of(config)
    if dsn is None:
        return found
    if found is not None:
        raise ConfigError(
            f"--store {without_password(dsn)}: configuration file {config} has [[store]]: name the stores either there"
            " or by --store"
        )
    return Placement({"": dsn}, {})


def servable(profile: str) -> Profile:
    """Return a profile. Raises ConfigError if there is none of this name, or if it has no mappings."""
    facts = profiles.load(profile)
    if not facts.flag("mapping.supported"):
        able = ", ".join(profiles.with_mappings())
        raise ConfigError(f"profile {profile!r} has no mappings to serve: choose one of {able}")
    return facts


def metrics_address(text: str) -> Address:
    """Return the address of --metrics. Raises ConfigError if it is not HOST:PORT."""
    found = parse_address(text)
    if found.path:
        raise ConfigError(f"--metrics {text}: HTTP is served over TCP: write HOST:PORT")
    return found


def _exporter(address: str | None, sockets: list[socket.socket], hosts: tuple[str, ...]) -> Exporter | None:
    if address is None and not sockets:
        return None
    return Exporter(None if address is None else metrics_address(address), sockets, hosts)


def _initialise(store: Store, *, new: bool, demo: bool) -> None:
    log = logging.getLogger("kvref")
    if isinstance(store, SQLiteStore):
        if new:
            log.info("no --store given: serving a new file, sqlite:///%s", store.path)
        if store.initialise(demo=demo):
            if not demo:
                store.add_cache(DEFAULT_NAME)
            log.info("created %s in %s", _DEMO if demo else _CACHE, store.path)
