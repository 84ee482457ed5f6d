"""`kvref bench`: measure endpoints with the experiments of the articles, or servers in turns.

The work is done in `kvref_bench`; results go to standard output, progress to standard error. Exit code 0 measured,
2 not, or not to the end, 130 ended by Ctrl-C; what was measured until then is kept.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kvref.addresses import parse_address
from kvref.cli.output import print_results
from kvref.errors import KvrefError, printable
from kvref_bench import experiment, scenario, specs, summary
from kvref_bench import quick as quicker
from kvref_bench.display import Screen, duration
from kvref_bench.errors import BenchError
from kvref_bench.load.work import Clock
from kvref_bench.order import estimate
from kvref_bench.pairs import document as documents
from kvref_bench.pairs import rows
from kvref_bench.pairs.measure import Settings
from kvref_bench.pairs.measure import measure as measure_pairs
from kvref_bench.peers.cpu_quota import LEAST
from kvref_bench.runs import document, folder, verdict
from kvref_bench.setups import document as setups_document
from kvref_bench.setups import entries
from kvref_bench.setups.measure import measure as measure_setups
from kvref_bench.turns import cold, cpus, growth, idle, loaded, report, shards, staleness
from kvref_testbed.targets import Terminal, catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from kvref_bench.experiment import Outcome
    from kvref_bench.turns.report import Column, Point

    Decorator = Callable[[Callable[..., None]], Callable[..., None]]

INTERRUPTED: Final = 130
# The tables of documents, by what a document has.
TABLES: Final = {"rows": documents.table, "setups": setups_document.table, "axes": growth.table}
PATH: Final = click.Path(dir_okay=False, path_type=Path)
DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_json = click.option("--json", "file", metavar="FILE", type=PATH, help="Write all figures to this file.")
_targets = click.option("--target", "names", multiple=True, default=("kvref-sqlite",), show_default=True)
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


_scenario = click.argument("name", metavar="SCENARIO", shell_complete=_scenarios)


def _number(name: str, default: float, text: str = "", low: float = 1) -> Decorator:
    """Return an option with a number, a whole one where the default is."""
    kind = click.IntRange(int(low)) if isinstance(default, int) else click.FloatRange(low)
    return click.option(name, default=default, show_default=True, type=kind, help=text)


def _options(*options: Decorator) -> Decorator:
    """Return several options as one decorator, in their order."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for each in reversed(options):
            command = each(command)
        return command

    return add


def _turns(times: int, seconds: float) -> Decorator:
    return _options(
        _number("--turns", times, "Repetitions."), _number("--seconds", seconds, "Of each measurement.", low=0.1)
    )


_processors = _options(
    click.option("--server-cpus", default="0", show_default=True, help="Processors of the servers, such as 0,2-3."),
    click.option("--client-cpus", default="1", show_default=True, help="Of the generator."),
)


def _server(name: str, metavar: str, text: str, **options: Any) -> Decorator:
    return click.option(f"--{name}", multiple=True, metavar=f"[NAME=]{metavar}", help=f"{text} Repeatable.", **options)


@click.group("bench")
def command() -> None:
    """Measure endpoints over memcached and SQL with the experiments of published articles."""


@command.command()
@_scenario
@_server("endpoint", "HOST:PORT|unix:PATH", "Endpoint to measure.")
@_server(
    "target",
    "TARGET",
    "Target to start as a private instance and measure; see `kvref target list`.",
    shell_complete=catalogue.complete,
)
@_server("sql", "DSN", "Database of the endpoint NAME. With a NAME that no endpoint has, a SQL server to measure.")
@_server("reload", "COMMAND", "Shell command that makes an endpoint reload its configuration tables.")
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
    dask, control = options["dask"], options["control_host"]
    if control is not None and dask is None:
        raise KvrefError("--control-host applies only to workers of a cluster: add --dask")
    workers = experiment.Workers(dask, control)
    made = Path(options["out"], document.new_id())
    try:
        request = experiment.Request(chosen, servers, workers, made, options["seed"], sys.argv)
        outcome = experiment.measure(request, Screen())
    except KeyboardInterrupt:
        click.echo("interrupted before anything was measured", err=True)
        context.exit(INTERRUPTED)
    _show_run(outcome, as_json)
    if outcome.stopped == experiment.STOPPED:
        context.exit(INTERRUPTED)
    if outcome.stopped is not None:
        raise KvrefError(f"{outcome.stopped}; partial results are in {outcome.folder}")


def _show_run(outcome: Outcome, as_json: bool) -> None:
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

    Adds 1,000 items with its own key prefix, measures gets and a mix of gets and sets, one command at a time and
    16 in one write, and deletes the items. Works with memcached, kvref and the plugin.
    """
    where = parse_address(address)
    if not (where.path or where.port):
        raise KvrefError(f"{address!r}: port 0 is none; write HOST:PORT")
    try:
        outcome = quicker.measure(address, Screen(), sessions, processes)
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
    listed = []
    for name in scenario.names():
        scales = {scale: scenario.load(name, scale) for scale in scenario.SCALES}
        one, seconds = scales["full"], {scale: estimate(each) for scale, each in scales.items()}
        article = " ".join(one.source.partition(". ")[0].split())
        # Where sessions have a number of operations the time is only their limit.
        limited = any(series.work.operations is not None for series in one.series)
        facts = {"name": name, "question": one.question, "source": article}
        listed.append({**facts, "seconds": {scale: round(each) for scale, each in seconds.items()}, "at_most": limited})
        if not as_json:
            times = ", ".join(f"{scale} {duration(each)}" for scale, each in seconds.items())
            click.secho(name, bold=True, nl=False)
            click.echo(f": {'up to ' if limited else ''}{times}")
            for text in (one.question, f"After {article}"):
                click.echo(click.wrap_text(text, 110, "  ", "  "))
    if as_json:
        click.echo(json.dumps(listed, indent=2))


@command.command()
@_scenario
@_scale
@_overrides
def show(name: str, scale: str, overrides: tuple[str, ...]) -> None:
    """Print a SCENARIO, by name or TOML file, resolved at a scale, as JSON."""
    click.echo(json.dumps(asdict(scenario.load(name, scale, overrides)), indent=2))


def _say(text: str) -> None:
    click.echo(text, err=True)


def _numbers(text: str, kind: type[Any], wanted: str, fits: Callable[[list[Any]], bool]) -> list[Any]:
    try:
        numbers = [kind(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not fits(numbers):
        raise click.BadParameter(f"{text!r}: write {wanted}, with commas between them")
    return numbers


def _shares(_: click.Context, __: click.Parameter, text: str) -> list[float]:
    return _numbers(text, float, "numbers from 0 to below 1", lambda given: all(0 <= share < 1 for share in given))


def _counts(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    def fits(given: list[int]) -> bool:
        return given == sorted(set(given)) and given[0] >= 0 and sum(count > 0 for count in given) >= 2

    return _numbers(text, int, "two or more numbers above 0, ascending", fits)


def _show(points: Sequence[Point], columns: Sequence[Column], file: Path | None, **settings: Any) -> None:
    if file is not None:
        report.write(report.begin(settings, points=list(points)), file)
    click.echo(report.table(points, columns), nl=False)


def _pairs(seconds: float, warmup: float, keys: int) -> Decorator:
    """Return the options of commands that measure in pairs, see `_settings`."""
    return _options(
        _number("--pairs", 5, "Pairs of each."),
        _number("--seconds", seconds, "Of each measurement.", low=0.5),
        _number("--warmup", warmup, "Seconds before each.", low=0),
        _number("--keys", keys, "Keys in the table.", low=128),
        _processors,
        click.option("--kvref-option", "kvref", multiple=True, help="Further option of `kvref serve`. Repeatable."),
        _json,
    )


def _settings(server_cpus: str, client_cpus: str, **given: Any) -> Settings:
    return Settings(cpus.split(server_cpus, client_cpus), **given)


def _measure(module: ModuleType, settings: Settings, file: Path | None, results: Callable[..., Iterator[Any]]) -> None:
    """Measure, write the document of a module after each result, and print its table."""
    loaded.allow_connections()
    made = module.begin(settings)
    with Terminal() as progress:
        for measured in results(settings, _say, progress):
            module.add(made, measured)
            if file is not None:
                report.write(made, file)
    click.echo(module.table(made), nl=False)


@command.command()
@click.option("--rows", "names", metavar="NAME[,NAME...]", help="Rows to measure.  [default: all]")
@_pairs(10.0, 1.0, rows.COUNT)
@click.option("--other", "venv", type=DIRECTORY, help="Environment with another kvref, for the rows other-*.")
def pairs(names: str | None, file: Path | None, venv: Path | None, **given: Any) -> None:
    """Compare kvref with the plugin, memcached and SQL in interleaved pairs.

    Servers have one processor, the generator another. kvref_bench/pairs/rows.toml has the rows.
    """
    chosen = rows.chosen(names)
    settings = _settings(other=venv and venv.absolute() / "bin" / "python", **given)
    _measure(documents, settings, file, partial(measure_pairs, chosen))


@command.command("setups")
@click.option("--only", "names", metavar="NAME[,NAME...]", help="Set-ups to measure.  [default: all]")
@click.option("--store", type=click.Choice(list(entries.STORES)), help="Only over this store.  [default: both]")
@_pairs(1.0, 0.3, 10_000)
def set_ups(names: str | None, store: str | None, file: Path | None, **given: Any) -> None:
    """Measure what each set-up costs relative to the demo table, in interleaved pairs.

    CPU time of kvref for a get and for a set. kvref_bench/setups/setups.toml has the set-ups.
    """
    chosen = entries.chosen(names, (store,) if store else tuple(entries.STORES))
    _measure(setups_document, _settings(**given), file, partial(measure_setups, chosen))


@command.command("growth")
@click.option("--axes", default=",".join(growth.AXES), show_default=True, metavar="NAME[,NAME...]", help="What grows.")
@_turns(2, 2.0)
@_number("--warmup", 0.5, "Seconds before each.", low=0)
@click.option("--largest", default=1_000_000, show_default=True, help="No points beyond this.")
@click.option("--servers", default=",".join(growth.ALL), show_default=True, help="TARGET[,TARGET...].")
@_processors
@_json
def grow(axes: str, servers: str, largest: int, file: Path | None, **given: Any) -> None:
    """Measure how the cost of a get and of a set grows.

    With rows, size of values, connections, mappings, columns, batches and workers.
    """
    chosen = growth.chosen(axes, servers, largest)
    where = cpus.split(given["server_cpus"], given["client_cpus"])
    loaded.allow_connections()
    settings = {name: given[name] for name in ("turns", "seconds", "server_cpus", "client_cpus")}
    titles = {name: axis.what for name, axis in chosen.items()}
    made = report.begin(settings, axes=titles, servers=growth.TITLES, points=[])
    with loaded.generator(where) as engine:
        for name, axis in chosen.items():
            clock = Clock(given["warmup"], given["seconds"])
            made["points"] += growth.measure(name, axis, given["turns"], clock, engine, where, _say)
            if file is not None:
                report.write(made, file)
    click.echo(growth.table(made), nl=False)


@command.command("row-cache")
@click.option(
    "--server", default="mariadb", show_default=True, type=click.Choice(list(staleness.OPTIONS)), help="Database."
)
@click.option(
    "--shares", default="0,0.01,0.05,0.1,0.2,0.5", show_default=True, callback=_shares, help="Shares of SQL updates."
)
@_turns(3, 3.0)
@_number("--sessions", 64, "Connections that get rows.")
@_number("--keys", 2000, "Rows of the table.", low=4)
@_json
def row_cache(server: str, file: Path | None, **given: Any) -> None:
    """Measure the row cache over a database while SQL writes: CPU time, hits and staleness."""
    version, points = staleness.row_cache(server, **given)
    _show(points, staleness.ROW_CACHE, file, server=version, **given)


@command.command("replica-reads")
@click.option("--shares", default="0,0.1,0.5", show_default=True, callback=_shares, help="Shares of sets.")
@_turns(3, 3.0)
@_number("--sessions", 32, "Connections.")
@_json
def replica_reads(file: Path | None, **given: Any) -> None:
    """Measure gets from the secondaries of a MySQL replication group."""
    _show(staleness.replica_reads(**given), staleness.REPLICA_READS, file, **given)


@command.command("shards")
@click.option(
    "--counts", default="1,2,4", show_default=True, callback=_counts, help="Numbers of shards, powers of two."
)
@click.option("--shares", default="0,0.1,0.9", show_default=True, callback=_shares, help="Shares of sets.")
@_turns(3, 3.0)
@_number("--sessions", 32, "Connections for each shard.")
@_number("--keys", 5000, "Rows of the table.", low=128)
@click.option(
    "--server-cpu",
    "cpu",
    default=0.05,
    show_default=True,
    type=click.FloatRange(LEAST),
    help="Processors of each mysqld.",
)
@_json
def shard_counts(file: Path | None, **given: Any) -> None:
    """Measure kvref over Vitess with different numbers of shards, each of which has a share of a processor.

    It needs root, Go, etcd and the control groups of Linux.
    """
    _show(shards.measure(say=_say, **given), shards.SHARDS, file, **given)


@command.command()
@_targets
@click.option(
    "--protocol", "protocols", multiple=True, type=click.Choice(list(idle.REQUESTS)), default=tuple(idle.REQUESTS)
)
@click.option("--connections", "counts", default="0,100,1000,4000", show_default=True, callback=_counts)
@_json
def memory(names: tuple[str, ...], protocols: tuple[str, ...], counts: list[int], file: Path | None) -> None:
    """Measure the memory of an idle connection after one get."""
    loaded.allow_connections(counts[-1])
    points = [point for name in names for protocol in protocols for point in idle.memory(name, protocol, counts)]
    _show(points, idle.MEMORY, file, connections=counts)


@command.command()
@_targets
@_number("--clients", 200, "Number of greedy clients.")
@_number("--seconds", 10.0, "Seconds of measurement.", low=0)
@_json
def newcomer(names: tuple[str, ...], clients: int, seconds: float, file: Path | None) -> None:
    """Measure the first get of a new connection while greedy clients pipeline gets without end."""
    loaded.allow_connections(clients)
    _show([idle.newcomer(name, clients, seconds) for name in names], idle.NEWCOMER, file, seconds=seconds)


@command.command()
@_number("--times", 9, "Starts of each.")
@_json
def start(times: int, file: Path | None) -> None:
    """Measure the time from the start of kvref to its first reply."""
    _show(idle.start(times), idle.START, file, times=times)


@command.command("cold")
@_targets
@_number("--keys", 1_000_000, "Rows of the table.")
@_number("--sessions", 8, "Connections.")
@_number("--seconds", 10, "Seconds after each restart.")
@_number("--turns", 2, "Restarts.")
@_processors
@_json
def cold_start(names: tuple[str, ...], server_cpus: str, client_cpus: str, file: Path | None, **given: Any) -> None:
    """Measure gets in the seconds after a restart, until the cache is warm."""
    points = cold.measure(names, cpus.split(server_cpus, client_cpus), _say, **given)
    _show(points, cold.COLD, file, **given)


@command.command()
@click.argument("file", type=PATH)
@click.option("--into", metavar="PAGE", type=PATH, help="Put the table between the markers of the file's name there.")
def table(file: Path, into: Path | None) -> None:
    """Print the table of a FILE that pairs, setups or growth wrote."""
    found = report.read(file, *TABLES)
    text = next(table for key, table in TABLES.items() if key in found)(found)
    if into is None:
        click.echo(text, nl=False)
        return
    try:
        into.write_text(report.insert(into.read_text(encoding="utf-8"), text, file.stem), encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{into} cannot be changed: {error.strerror}") from error
