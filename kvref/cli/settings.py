"""`kvref settings`: the settings of the server, with defaults and limits."""

from __future__ import annotations

import json

import click

from kvref.server.settings import SETTINGS


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print an object with default, limits, unit and help of each.")
def command(*, as_json: bool) -> None:
    """List the settings for `kvref serve --set` and the table [settings] of its file.

    A reload changes those marked *; others change with a restart.
    """
    if as_json:
        rows = {
            each.name: {
                "default": each.default, "low": each.low, "high": each.high, "unit": each.unit, "help": each.help,
                "dynamic": each.dynamic,
            }
            for each in SETTINGS.values()
        }  # fmt: skip
        click.echo(json.dumps(rows, indent=2))
        return
    for each in SETTINGS.values():
        click.echo(
            f"{'*' if each.dynamic else ' '} {each.name}={each.default}  ({each.unit}, {each.low} to {each.high})"
        )
        click.echo(f"      {each.help}")
