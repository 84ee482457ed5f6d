"""Options of `kvref serve`: where it listens and for whom, and their groups in `--help`."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from kvref.errors import ConfigError
from kvref.server.listeners.listener import Listener, listener
from kvref.server.settings import read_file

OTHER = "Other options"


class GroupedCommand(click.Command):
    """A command that lists its options in groups; each option has an environment variable.

    Args:
        groups: titles, each with the names of its parameters; options of no group are in the last one.
        prefix: of the names of the environment variables: `--tls-cert` is PREFIX_TLS_CERT.
    """

    def __init__(self, *args: Any, groups: dict[str, tuple[str, ...]], prefix: str, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            if isinstance(parameter, click.Option):
                parameter.envvar = f"{prefix}_{parameter.opts[0].strip('-').replace('-', '_').upper()}"
                parameter.show_envvar = True
        self._group_of = {name: title for title, names in groups.items() for name in names}
        self._titles = [*groups, OTHER]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group below its title."""
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in self._titles}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                records[self._group_of.get(parameter.name or "", OTHER)].append(record)
        for title, rows in records.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


DEFAULT: Final = "127.0.0.1:11211"
MAX_LISTENERS: Final = 256  # a worker receives the number of a connection's listener in one byte
_PATH: Final = click.Path(path_type=str)
_OPTIONS: Final = (
    click.option(
        "--listen",
        "address",
        metavar="HOST:PORT|unix:PATH",
        help=f"Address or unix socket to listen on. Port 0 selects any free port.  [default: {DEFAULT}]",
    ),
    click.option(
        "--socket-mode",
        metavar="MODE",
        help="Permissions of the unix socket, in octal. Clients need write permission.  [default: 0700]",
    ),
    click.option(
        "--socket-owner", metavar="USER[:GROUP]", help="Owner and group of the unix socket. :GROUP sets only the group."
    ),
    click.option(
        "--auth-file",
        type=_PATH,
        metavar="FILE",
        help="File of `user:password` lines. Text clients authenticate with `set`, binary clients with SASL PLAIN.",
    ),
    click.option("--tls-cert", type=_PATH, metavar="FILE", help="PEM file of the server certificate. Enables TLS."),
    click.option(
        "--tls-key",
        type=_PATH,
        metavar="FILE",
        help="PEM file of the private key, if it is not in the --tls-cert file.",
    ),
    click.option(
        "--tls-client-ca",
        type=_PATH,
        metavar="FILE",
        help="PEM file of CA certificates. Clients must present a certificate that one of them signed.",
    ),
    click.option("--mapping", "mappings", multiple=True, metavar="NAME", help="Serve only this mapping. Repeatable."),
    click.option("--read-only", is_flag=True, help="Reject every command that writes."),
    click.option("--no-flush", is_flag=True, help="Reject flush_all."),
    click.option(
        "--metadump/--no-metadump",
        default=None,
        help="Allow or reject `lru_crawler metadump`, which lists all keys.  [default: rejected with --mapping,"
        " --read-only or --no-flush]",
    ),
    click.option("--open", is_flag=True, help="Allow listening on non-loopback addresses without authentication."),
)
NAMES: Final = (
    "address", "socket_mode", "socket_owner",
    "auth_file", "tls_cert", "tls_key", "tls_client_ca", "mappings", "read_only", "no_flush", "metadump", "open",
)  # fmt: skip


def listener_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it gets them as `listen`, a table as `access.configured.listener` takes it."""

    @wraps(command)
    def wrapper(**options: Any) -> None:
        given = {name: options.pop(name) for name in NAMES}
        table = {name: value for name, value in given.items() if value or (name == "metadump" and value is not None)}
        if "mappings" in table:
            table["mappings"] = list(table["mappings"])
        if table.pop("no_flush", False):
            table["flush_all"] = False
        command(listen=table, **options)

    decorated: Callable[..., None] = wrapper
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def listeners(listen: dict[str, Any], config: Path | None, passed: list[socket.socket]) -> list[Listener]:
    """Return the listeners of the options or of the file.

    Args:
        listen: what the options say.
        config: TOML, None: there is none.
        passed: sockets from the service manager, in the place of an address; all other options hold for them.

    Raises:
        ConfigError: both configure listeners, or one is invalid.
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
    return [listener(table) for table in tables or [{"address": DEFAULT, **listen}]]
