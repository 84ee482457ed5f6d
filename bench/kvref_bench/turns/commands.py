"""Subcommands of `kvref bench` that measure servers in turns, and print or write one kind of document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kvref_bench.errors import BenchError
from kvref_bench.load.work import Clock
from kvref_bench.pairs import document as documents
from kvref_bench.pairs import rows
from kvref_bench.pairs.measure import Settings
from kvref_bench.pairs.measure import measure as measure_pairs
from kvref_bench.turns import cpus, growth, idle, loaded, report, staleness
from kvref_testbed.targets import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvref_bench.turns.report import Column, Document, Point

PATH: Final = click.Path(dir_okay=False, path_type=Path)
DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_json = click.option("--json", "file", metavar="FILE", type=PATH, help="Write all figures to this file.")
_targets = click.option("--target", "names", multiple=True, default=("kvref-sqlite",), show_default=True)


def _turns(times: int, seconds: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of measurements that are repeated."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        each = click.option("--turns", default=times, show_default=True, type=click.IntRange(1), help="Repetitions.")
        long = click.option(
            "--seconds", default=seconds, show_default=True, type=click.FloatRange(0.1), help="Of each measurement."
        )
        return each(long(command))

    return add


def _processors(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that keep servers and generator apart."""
    servers = click.option(
        "--server-cpus", default="0", show_default=True, help="Processors of the servers, such as 0,2-3."
    )
    return servers(click.option("--client-cpus", default="1", show_default=True, help="Of the generator.")(command))


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


@click.command()
@click.option("--rows", "names", metavar="NAME[,NAME...]", help="Rows to measure.  [default: all]")
@click.option("--pairs", default=5, show_default=True, type=click.IntRange(1), help="Pairs of each row.")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.5), help="Of each measurement.")
@click.option("--warmup", default=1.0, show_default=True, type=click.FloatRange(0), help="Seconds before each.")
@click.option("--keys", default=rows.COUNT, show_default=True, type=click.IntRange(128), help="Keys in the table.")
@_processors
@click.option("--kvref-option", "options", multiple=True, help="Further option of `kvref serve`. Repeatable.")
@click.option("--compiled", "venv", type=DIRECTORY, help="Environment of `.ci/build venv`, for the rows compiled-*.")
@_json
def pairs(names: str | None, file: Path | None, server_cpus: str, client_cpus: str, **given: Any) -> None:
    """Compare kvref with the plugin, memcached and SQL in interleaved pairs.

    Servers have one processor, the generator another. kvref_bench/pairs/rows.toml has the rows.
    """
    chosen = rows.chosen(names)
    where = cpus.split(server_cpus, client_cpus)
    compiled = given["venv"] and given["venv"].absolute() / "bin" / "python"
    numbers = {name: given[name] for name in ("pairs", "seconds", "warmup", "keys")}
    settings = Settings(where, kvref=given["options"], compiled=compiled, **numbers)
    loaded.allow_connections()
    made = documents.begin(settings)
    with Terminal() as progress:
        for measured in measure_pairs(chosen, settings, _say, progress):
            documents.add(made, measured)
            if file is not None:
                report.write(made, file)
    click.echo(documents.table(made), nl=False)


@click.command("growth")
@click.option("--axes", default=",".join(growth.AXES), show_default=True, metavar="NAME[,NAME...]", help="What grows.")
@_turns(2, 2.0)
@click.option("--warmup", default=0.5, show_default=True, type=click.FloatRange(0), help="Seconds before each.")
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
            measured = growth.measure(name, axis, given["turns"], clock, engine, where, _say)
            made["points"] += measured
            if file is not None:
                report.write(made, file)
    click.echo(growth.table(made), nl=False)


@click.command("row-cache")
@click.option(
    "--server", default="mariadb", show_default=True, type=click.Choice(list(staleness.OPTIONS)), help="Database."
)
@click.option(
    "--shares", default="0,0.01,0.05,0.1,0.2,0.5", show_default=True, callback=_shares, help="Shares of SQL updates."
)
@_turns(3, 3.0)
@click.option("--sessions", default=64, show_default=True, type=click.IntRange(1), help="Connections that get rows.")
@click.option("--keys", default=2000, show_default=True, type=click.IntRange(4), help="Rows of the table.")
@_json
def row_cache(server: str, file: Path | None, **given: Any) -> None:
    """Measure the row cache over a database while SQL writes: CPU time, hits and staleness."""
    version, points = staleness.row_cache(server, **given)
    _show(points, staleness.ROW_CACHE, file, server=version, **given)


@click.command("replica-reads")
@click.option("--shares", default="0,0.1,0.5", show_default=True, callback=_shares, help="Shares of sets.")
@_turns(3, 3.0)
@click.option("--sessions", default=32, show_default=True, type=click.IntRange(1), help="Connections.")
@_json
def replica_reads(file: Path | None, **given: Any) -> None:
    """Measure gets from the secondaries of a MySQL replication group."""
    _show(staleness.replica_reads(**given), staleness.REPLICA_READS, file, **given)


@click.command()
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


@click.command()
@_targets
@click.option("--clients", default=200, show_default=True, type=click.IntRange(1), help="Number of greedy clients.")
@click.option("--seconds", default=10.0, show_default=True, help="Seconds of measurement.")
@_json
def newcomer(names: tuple[str, ...], clients: int, seconds: float, file: Path | None) -> None:
    """Measure the first get of a new connection while greedy clients pipeline gets without end."""
    loaded.allow_connections(clients)
    _show([idle.newcomer(name, clients, seconds) for name in names], idle.NEWCOMER, file, seconds=seconds)


@click.command()
@click.option("--times", default=9, show_default=True, type=click.IntRange(1), help="Starts of each.")
@_json
def start(times: int, file: Path | None) -> None:
    """Measure the time from the start of kvref to its first reply."""
    _show(idle.start(times), idle.START, file, times=times)


@click.command("table")
@click.argument("file", type=PATH)
@click.option("--into", metavar="PAGE", type=PATH, help="Put the table between the markers of the file's name there.")
def table(file: Path, into: Path | None) -> None:
    """Print the table of a FILE that pairs or growth wrote."""
    text = made(report.read(file, "rows", "axes"))
    if into is None:
        click.echo(text, nl=False)
        return
    try:
        into.write_text(report.insert(into.read_text(encoding="utf-8"), text, file.stem), encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{into} cannot be changed: {error.strerror}") from error


def made(document: Document) -> str:
    """Return the table of a document of pairs or of growth."""
    return documents.table(document) if "rows" in document else growth.table(document)


COMMANDS: Final = (pairs, grow, row_cache, replica_reads, memory, newcomer, start, table)
