"""`kvref init`: the plugin's configuration schema and demo rows in a store."""

from __future__ import annotations

import click

from kvref import profiles
from kvref.errors import ConfigError
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
def command(dsn: str) -> None:
    """Create containers, config_options and cache_policies with the plugin's demo rows.

    Existing tables are not changed.
    """
    if scheme_of(dsn).volatile:
        raise ConfigError(f"store {dsn!r}: its tables would be lost when this command ends: name a database")
    store = open_store(dsn, profiles.load("kvref"), LOCK_WAIT)
    try:
        created = store.initialise()
    finally:
        store.close()
    click.echo(
        f"{dsn}:"
        f" {'created the configuration tables and demo rows' if created else 'the configuration tables already exist'}"
    )
