"""`kvref target`: boot real endpoints on loopback, say where they are, stop them.

Answers go to standard output, progress to standard error. The work is done in `kvref_testbed.targets`.
"""

from __future__ import annotations

import json

import click

from kvref_testbed import targets
from kvref_testbed.targets import catalogue

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("target")
def command() -> None:
    """Start and stop real endpoints: the MySQL plugin, memcached, kvref, and SQL servers without the plugin."""


@command.command("list")
@_as_json
def list_(as_json: bool) -> None:
    """List the known targets."""
    known = [{"name": each.name, "profile": each.profile, "summary": each.summary} for each in catalogue.recipes()]
    if as_json:
        click.echo(json.dumps(known, indent=2))
        return
    for each in known:
        click.echo(f"{each['name']:18} {each['summary']}")


@command.command()
@click.argument("name", metavar="NAME", shell_complete=catalogue.complete)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="OPTION",
    help="Additional command-line option of the server, for example"
    " --option=--daemon_memcached_w_batch_size=10. {mc_port} is replaced by the memcached port."
    " Repeatable.",
)
@_as_json
def up(name: str, options: tuple[str, ...], as_json: bool) -> None:
    """Start the target NAME; it runs until `down`. A running target is not restarted."""
    with targets.Terminal() as progress:
        target = targets.up(name, options, progress)
    if as_json:
        click.echo(json.dumps(target.as_json(), indent=2))
    else:
        _print_running(target)


@command.command()
@click.argument("name", metavar="NAME", required=False, shell_complete=catalogue.complete)
@click.option("--all", "everything", is_flag=True, help="Stop every target.")
@_as_json
def down(name: str | None, everything: bool, as_json: bool) -> None:
    """Stop the target NAME and remove its folder. Does nothing if it is not running."""
    if (name is None) != everything:
        raise click.UsageError("give either the NAME of a target or --all")
    chosen = targets.names() if name is None else (name,)
    with targets.Terminal() as progress:
        stopped = {each: targets.down(each, progress) for each in chosen}
    if as_json:
        click.echo(
            json.dumps(
                [{"name": each, "was_running": target is not None} for each, target in stopped.items()], indent=2
            )
        )
        return
    for each, target in stopped.items():
        click.echo(f"{each}: not running" if target is None else f"{each}: stopped (pid {target.pid})")


@command.command()
@_as_json
def status(as_json: bool) -> None:
    """Show the state of each target: running, crashed or stopped."""
    seen = targets.status()
    if as_json:
        click.echo(json.dumps([each.as_json() for each in seen], indent=2))
        return
    for each in seen:
        if each.state == "running" and each.target is not None:
            _print_running(each.target)
        elif each.target is not None:
            click.echo(f"{each.name} crashed: {each.reason}")
            click.echo(f"  log      {each.target.log}")
            for line in each.log_tail:
                click.echo(f"           {line}")
        else:
            click.echo(f"{each.name} stopped")


def _print_running(target: targets.Target) -> None:
    click.echo(f"{target.name} running: version {target.version}, pid {target.pid}")
    facts = {
        "address": target.address,
        "sql": target.sql,
        "socket": target.socket,
        "store": target.store,
        "profile": target.profile,
        "log": target.log,
    }
    for label, value in facts.items():
        if value is not None:
            click.echo(f"  {label:8} {value}")
