"""`kvref bench`: measure endpoints with the experiments of the articles, compare runs.

The work is done in `kvref_bench`; results go to standard output, progress to standard error. Exit code 0 measured,
2 not, or not to the end, 130 ended by Ctrl-C; what was measured until then is kept.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kvref.addresses import parse_address
from kvref.cli.output import print_results
from kvref.errors import KvrefError, printable
from kvref_bench import experiment, scenario, specs, summary
from kvref_bench import quick as quicker
from kvref_bench.display import Screen, duration
from kvref_bench.order import estimate
from kvref_bench.runs import compare as comparing
from kvref_bench.runs import document, folder, verdict
from kvref_bench.turns import commands as turns
from kvref_testbed.targets import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref_bench.experiment import Outcome

INTERRUPTED: Final = 130
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_scale = click.option(
    "--scale",
    type=click.Choice(scenario.SCALES),
    default="laptop",
    show_default=True,
    help="Scale of the run. small: seconds, for tests. laptop: minutes. full: as published.",
)
_overrides = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a value of the scenario, for example sessions=1,8 or work.depth=16. Repeatable.",
)


def _scenarios(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    return [name for name in scenario.names() if name.startswith(incomplete)]


def _server(name: str, metavar: str, text: str, **options: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(f"--{name}", multiple=True, metavar=f"[NAME=]{metavar}", help=f"{text} Repeatable.", **options)


@click.group("bench")
def command() -> None:
    """Measure endpoints over memcached and SQL with the experiments of published articles."""


@command.command()
@click.argument("name", metavar="SCENARIO", shell_complete=_scenarios)
@_server("endpoint", "HOST:PORT|unix:PATH", "Endpoint to measure.")
@_server(
    "target",
    "TARGET",
    "Target to start as a private instance and measure; see `kvref target list`.",
    shell_complete=catalogue.complete,
)
@_server("sql", "DSN", "Database of the endpoint NAME. With a NAME that no endpoint has, a SQL server to measure.")
@_server("reload", "COMMAND", "Shell command that makes an endpoint reload its configuration tables.")
@_server(
    "restart", "COMMAND", "Shell command that restarts an endpoint. Settings are appended as NAME=VALUE arguments."
)
@_server("report", "DIR", "Conformance report of a server, written by `kvref conform --report DIR`.")
@click.option("--allow-destructive", is_flag=True, help="Allow the run to delete items and mappings of an endpoint.")
@_scale
@_overrides
@click.option(
    "--out",
    metavar="DIR",
    default="kvref-runs",
    show_default=True,
    help="Directory in which to create the folder of the run.",
)
@click.option("--conform", is_flag=True, help="Run `kvref conform` on each endpoint first and keep its report.")
@click.option("--processes", type=click.IntRange(1, 1024), metavar="N", help="Maximum number of load worker processes.")
@click.option("--pin", is_flag=True, help="Pin each load worker to a CPU.")
@click.option(
    "--dask", metavar="SCHEDULER", help="Run the load workers on the Dask cluster of this scheduler, tcp://HOST:PORT."
)
@click.option(
    "--control-host", metavar="HOST", help="Address under which the workers of the Dask cluster reach this machine."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@_as_json
@click.pass_context
def run(context: click.Context, /, name: str, as_json: bool, **options: Any) -> None:
    """Measure a SCENARIO, by name or TOML file, on one or more servers, interleaved.

    Each run writes a folder. Ctrl-C stops the run and keeps the results; a second Ctrl-C stops immediately.
    """
    chosen = scenario.load(name, options["scale"], options["overrides"])
    servers = specs.read(**{name: options[name] for name in specs.OPTIONS})
    workers = _workers(options)
    made = Path(options["out"], document.new_id())
    try:
        with Screen() as screen:
            if options["conform"]:
                servers = verdict.judge(servers, made, screen)
            request = experiment.Request(chosen, servers, workers, made, options["seed"], sys.argv)
            outcome = experiment.measure(request, screen)
    except KeyboardInterrupt:
        click.echo("interrupted before anything was measured", err=True)
        context.exit(INTERRUPTED)
    _show(outcome, as_json)
    if outcome.stopped == experiment.STOPPED:
        context.exit(INTERRUPTED)
    if outcome.stopped is not None:
        raise KvrefError(f"{outcome.stopped}; partial results are in {outcome.folder}")


def _workers(options: dict[str, Any]) -> experiment.Workers:
    dask, control = options["dask"], options["control_host"]
    if dask is not None and options["pin"]:
        raise KvrefError("--pin applies only to workers on this machine: remove it or --dask")
    if control is not None and dask is None:
        raise KvrefError("--control-host applies only to workers of a cluster: add --dask")
    return experiment.Workers(options["processes"], options["pin"], dask, control)


def _show(outcome: Outcome, as_json: bool) -> None:
    measured = folder.read(outcome.folder)
    info = measured.info
    if as_json:
        facts = {name: info[name] for name in ("run_id", "stopped", "warnings", "notes")}
        servers = [{key: each[key] for key in ("name", "kind", "version", "judged")} for each in info["servers"]]
        found = {"folder": str(outcome.folder), **facts, "servers": servers, "rows": summary.rows(measured)}
        click.echo(json.dumps(found, indent=2, allow_nan=False))
        return
    print_results(summary.table(measured))
    for each in info["servers"]:
        click.echo(printable(f"{each['name']} ({each['version']}): {each['judged']}{verdict.fix(each)}"))
    for text in (*info["warnings"], *info["notes"]):
        click.echo(printable(text))
    click.echo(f"run: {outcome.folder}")


@command.command()
@click.argument("address", metavar="HOST:PORT|unix:PATH")
@click.option(
    "--sessions",
    type=click.IntRange(1, quicker.KEYS),
    default=quicker.SESSIONS,
    show_default=True,
    help="Number of connections.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of load worker processes.  [default: half of the processors, at most 4]",
)
@_as_json
@click.pass_context
def quick(context: click.Context, /, address: str, sessions: int, processes: int | None, *, as_json: bool) -> None:
    """Measure an endpoint in about ten seconds and delete nothing of it.

    Adds 1,000 items with a key prefix of its own, measures gets and a mix of gets and sets, one command at a time and
    16 in one write, and deletes the items. Works with memcached, kvref and the plugin.
    """
    where = parse_address(address)
    if not (where.path or where.port):
        raise KvrefError(f"{address!r}: port 0 is none; write HOST:PORT")
    try:
        with Screen() as screen:
            outcome = quicker.measure(address, screen, sessions, processes)
    except KeyboardInterrupt:
        click.echo("interrupted before anything was measured", err=True)
        context.exit(INTERRUPTED)
    if as_json:
        click.echo(json.dumps(outcome, indent=2, allow_nan=False))
    else:
        print_results(quicker.table(outcome))
        for text in outcome["notes"]:
            click.echo(printable(text))
    if outcome["stopped"]:
        context.exit(INTERRUPTED)


@command.command("list")
@_as_json
def list_(as_json: bool) -> None:
    """List the scenarios with their question, their article and the minimum time per server."""
    found = [{scale: scenario.load(name, scale) for scale in scenario.SCALES} for name in scenario.names()]
    if as_json:
        click.echo(json.dumps([_listed(each) for each in found], indent=2))
        return
    for each in found:
        one = each["full"]
        times = ", ".join(f"{scale} {duration(estimate(resolved))}" for scale, resolved in each.items())
        click.secho(one.name, bold=True, nl=False)
        click.echo(f": {'up to ' if _limited(one) else ''}{times}")
        for text in (one.question, f"After {_article(one)}"):
            click.echo(click.wrap_text(text, 110, "  ", "  "))


def _listed(scales: dict[str, scenario.Scenario]) -> dict[str, Any]:
    one = scales["full"]
    seconds = {scale: round(estimate(resolved)) for scale, resolved in scales.items()}
    facts = {"name": one.name, "question": one.question, "source": _article(one)}
    return {**facts, "seconds": seconds, "at_most": _limited(one)}


def _article(one: scenario.Scenario) -> str:
    return " ".join(one.source.partition(". ")[0].split())


def _limited(one: scenario.Scenario) -> bool:
    # Where sessions have a number of operations the time is only their limit.
    return any(series.work.operations is not None for series in one.series)


@command.command()
@click.argument("name", metavar="SCENARIO", shell_complete=_scenarios)
@_scale
@_overrides
def show(name: str, scale: str, overrides: tuple[str, ...]) -> None:
    """Print a SCENARIO, by name or TOML file, resolved at a scale, as JSON."""
    click.echo(json.dumps(asdict(scenario.load(name, scale, overrides)), indent=2))


@command.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=comparing.THRESHOLD,
    show_default=True,
    help="Relative difference below which two results count as equal.",
)
@_as_json
def compare(a: str, b: str, threshold: float, as_json: bool) -> None:
    """Compare two runs or two parts of one. Write each as RUN, RUN:SERVER or RUN:SERVER:SERIES.

    The result is the ratio of medians with its confidence interval, which can show no difference.
    """
    found = comparing.compare(comparing.Selection.parse(a), comparing.Selection.parse(b), threshold)
    if as_json:
        click.echo(json.dumps(found.json(), indent=2, default=str))
        return
    print_results(found.table())
    for server, words in found.judged.items():
        click.echo(f"{server}: {words}")
    for text in (*found.warnings, *found.left_out):
        click.echo(text)


for _each in turns.COMMANDS:
    command.add_command(_each)
