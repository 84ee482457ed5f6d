"""Options of `kvref serve` that say where it listens, for whom; `[[listener]]` in its file says the same."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from kvref.errors import ConfigError
from kvref.server.access.configured import listener
from kvref.server.access.listener import Listener
from kvref.server.config_file import read_file

DEFAULT: Final = "127.0.0.1:11211"
MOST: Final = 256  # a worker is told the number of a connection's listener in a byte
_PATH: Final = click.Path(path_type=str)
_OPTIONS: Final = (
    click.option(
        "--listen",
        "address",
        metavar="HOST:PORT|unix:PATH",
        help=f"Address or unix socket to listen on. Port 0: any free one.  [default: {DEFAULT}]",
    ),
    click.option(
        "--socket-mode",
        metavar="MODE",
        help="Permissions of the unix socket in octal digits; a client needs the permission to write.  [default: 0700]",
    ),
    click.option("--socket-owner", metavar="USER[:GROUP]", help="Owner and group of the unix socket; or :GROUP."),
    click.option(
        "--auth-file",
        type=_PATH,
        metavar="FILE",
        help="Lines user:password of those who may come: in text by memcached's `set`, in binary by SASL PLAIN.",
    ),
    click.option("--tls-cert", type=_PATH, metavar="FILE", help="PEM: speak TLS with this certificate."),
    click.option("--tls-key", type=_PATH, metavar="FILE", help="PEM: its key, where not in the same file."),
    click.option(
        "--tls-client-ca", type=_PATH, metavar="FILE", help="PEM: clients must show a certificate of these authorities."
    ),
    click.option("--mapping", "mappings", multiple=True, metavar="NAME", help="Serve only this one; may be repeated."),
    click.option("--read-only", is_flag=True, help="Refuse every command that writes."),
    click.option("--no-flush", is_flag=True, help="Refuse flush_all."),
    click.option("--open", is_flag=True, help="Listen where others reach it though nobody is asked who they are."),
)
_NAMES: Final = (
    "address", "socket_mode", "socket_owner",
    "auth_file", "tls_cert", "tls_key", "tls_client_ca", "mappings", "read_only", "no_flush", "open",
)  # fmt: skip


def listener_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it gets them as `listen`, a table as `access.configured.listener` takes it."""

    @wraps(command)
    def wrapper(**options: Any) -> None:
        table = {name: value for name in _NAMES if (value := options.pop(name))}
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
        ConfigError: both name some, or one is of no use.
    """
    _, tables = read_file(config)
    if max(len(tables), len(passed)) > MOST:
        raise ConfigError(f"{max(len(tables), len(passed))} listeners: at most {MOST} are served by one kvref")
    if tables and listen:
        raise ConfigError(f"configuration file {config} has [[listener]]: name listeners there, or by options")
    if passed and tables:
        raise ConfigError(f"configuration file {config} has [[listener]]: systemd has passed sockets: leave those out")
    if passed and "address" in listen:
        raise ConfigError(f"--listen {listen['address']}: systemd has passed sockets: leave it out")
    if passed:
        return [listener(listen, each) for each in passed]
    return [listener(table) for table in tables or [{"address": DEFAULT, **listen}]]
