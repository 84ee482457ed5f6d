"""`kvref init`: the configuration tables, a cache table and the plugin's demo table in a store."""

from __future__ import annotations

import click

from kvref import profiles
from kvref.errors import ConfigError
from kvref.protocol.rules import MAX_KEY
from kvref.storage.config.catalog import DEFAULT_NAME
from kvref.storage.sqlite.file import SCHEME, path_of, warn_of_network
from kvref.storage.sqlite.schema import refuse_clashes
from kvref.storage.stores import open_store, scheme_of

LOCK_WAIT = 10.0  # seconds


@click.command()
@click.option(
    "--store",
    "dsn",
    required=True,
    metavar="DSN",
    help="Database to prepare: sqlite:///PATH, which is created if it does not exist, or mysql://USER@HOST/.",
)
@click.option(
    "--cache",
    is_flag=False,
    flag_value=DEFAULT_NAME,
    metavar="[NAME]",
    help=f"Create a cache table and its mapping: keys of up to {MAX_KEY} bytes of any kind, values of bytes, flags, CAS"
    f" number and expiry time. NAME is the name of both.  [default name: {DEFAULT_NAME}; default without --demo]",
)
@click.option("--demo", is_flag=True, help="Create the plugin's demo table and its mapping, if the store is new.")
def command(dsn: str, cache: str | None, *, demo: bool) -> None:
    """Create containers, config_options and cache_policies, and tables to serve.

    Without --cache and --demo, a new store gets a cache table. Existing tables are not changed.
    """
    if scheme_of(dsn).volatile:
        raise ConfigError(f"store {dsn!r}: its tables would be lost when this command ends: name a database")
    if dsn.startswith(SCHEME):
        path = path_of(dsn)
        refuse_clashes(path, demo=demo, cache=cache)
        warn_of_network(path)
    store = open_store(dsn, profiles.load("kvref"), LOCK_WAIT)
    try:
        new = store.initialise(demo=demo)
        name = cache or (DEFAULT_NAME if new and not demo else None)
        added = name is not None and store.add_cache(name)
    finally:
        store.close()
    created = ["the configuration tables"] * new + ["demo rows"] * (new and demo)
    created += [f"the cache table {name}"] * added
    done = f"created {' and '.join(created)}" if created else "the configuration tables already exist"
    click.echo(f"{dsn}: {done}")
