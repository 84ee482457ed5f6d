"""`kvref serve`: the reference server on one store."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvloop

from kvref import profiles
from kvref.cli.listener_options import listener_options, listeners
from kvref.errors import KvrefError
from kvref.server.server import Server, lock_wait
from kvref.server.settings import SETTINGS, parse
from kvref.server.workers.parent import Parent
from kvref.server.workers.plan import Plan
from kvref.server.workers.refusals import refuse_settings
from kvref.storage.dsn import open_store
from kvref.storage.sqlite import SQLiteStore
from kvref.storage.sqlite_file import SCHEME

if TYPE_CHECKING:
    from kvref.storage.mysql import MySQLStore

MOST_WORKERS = 64
_SETTINGS_HELP = "\n".join(
    f"{'*' if s.dynamic else ' '} {s.name}={s.default}  ({s.unit}) {s.help}" for s in SETTINGS.values()
)

_HELP = f"""Serve mapped tables over the memcached protocols, text and binary.

Reads the plugin's own configuration tables (containers, config_options) from the store and serves the tables they name.
SIGHUP reads them and --config again, SIGTERM drains. While the server runs only the settings marked * change.

\b
Settings for --set, with their defaults:
{_SETTINGS_HELP}
"""


@click.command(help=_HELP)
@listener_options
@click.option(
    "--store",
    "dsn",
    metavar="DSN",
    help="sqlite:///PATH or mysql://USER@HOST/. [default: a new file in a temporary folder]",
)
@click.option("--profile", default="kvref", show_default=True, metavar="NAME", help="Whose answers to give.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting, see above; may be repeated.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML with settings under [settings], which --set comes before and SIGHUP reads again, and [[listener]].",
)
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that serve the port together; what they cannot serve is refused.",
)
def command(
    listen: dict[str, Any], dsn: str | None, profile: str, pairs: tuple[str, ...], config: Path | None, workers: int
) -> None:
    """Start the server; options are checked before anything is opened."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="kvref: %(message)s")
    where = listeners(listen, config)
    facts = profiles.load(profile)
    read_settings = partial(parse, list(pairs), config, facts)
    settings = read_settings()
    if not facts.flag("mapping.supported"):
        able = ", ".join(profiles.with_mappings())
        raise KvrefError(f"profile {profile!r} has no mappings to serve: choose one of {able}")
    new, dsn = dsn is None, dsn or _new_file()
    refuse_settings(workers, facts, settings, database=not dsn.startswith(SCHEME))
    store = open_store(dsn, facts, lock_wait(facts, settings))
    try:
        _initialise(store, new=new)
        if workers == 1:
            server = Server(store, facts, read_settings, where)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(server.run())
    finally:
        store.close()
    if workers > 1:
        Parent(Plan(dsn, facts, workers, read_settings, settings, where, os.getpid())).run()


def _new_file() -> str:
    return f"{SCHEME}{Path(tempfile.mkdtemp(prefix='kvref-')) / 'kvref.sqlite'}"


def _initialise(store: SQLiteStore | MySQLStore, *, new: bool) -> None:
    log = logging.getLogger("kvref")
    if isinstance(store, SQLiteStore):
        if new:
            log.info("no --store given: serving a new file, sqlite:///%s", store.path)
        if store.initialise():
            log.info("created the configuration tables and the plugin's demo rows in %s", store.path)
