"""`kvref implement`: the starter kit of an implementation of the specification."""

from __future__ import annotations

from pathlib import Path

import click

from kvref import profiles
from kvref.cli import output
from kvref.errors import KvrefError
from kvref.specification.starter_kit import SCRIPTS, starter_files


@click.command("implement")
@click.argument("folder", metavar="DIR")
@click.option(
    "--profile",
    metavar="NAME",
    type=click.Choice(profiles.names()),
    default="kvref",
    show_default=True,
    help="Profile that the implementation follows.",
)
def command(folder: str, profile: str) -> None:
    """Write a starter kit for a server of your own.

    The kit has the schema for SQLite and MySQL, sample scripts, collation vectors, a CI file and a README. DIR is
    created; a file that is there is never replaced.
    """
    made = starter_files(profile)
    there = [name for name in made if (Path(folder) / name).exists()]
    if there:
        raise KvrefError(f"{folder} already has {', '.join(there)}: choose another folder")
    for name, text in made.items():
        output.write(str(Path(folder) / name), text, parents=True)
    for name in SCRIPTS:
        (Path(folder) / name).chmod(0o755)
    click.echo(f"{folder}: read {Path(folder) / 'README.md'} first")
