"""`kvref duel`: run generated conversations on two endpoints and compare every reply and every row.

`kvref_conformance.differential` does the work; this module starts the two servers and shows progress. Exit codes: 0 no
difference that repeats, 1 differences, 2 could not be tried.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from hypothesis.database import DirectoryBasedExampleDatabase
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kvref import profiles
from kvref.cli import completion
from kvref.cli.output import print_results
from kvref.errors import KvrefError, choices
from kvref_conformance.corpus.targets.plugin import PluginTarget
from kvref_conformance.differential import exclusions, known_differences, report
from kvref_conformance.differential.configuration import BATCHES, PROTOCOLS, TEXT, Configuration
from kvref_conformance.differential.exchange import Side
from kvref_conformance.differential.run import Run
from kvref_conformance_cli.options import file_option, folder_option
from kvref_conformance_cli.replay import EMBEDDED, VITESS, open_kvref
from kvref_testbed import targets
from kvref_testbed.targets import catalogue

if TYPE_CHECKING:
    from kvref_conformance.differential.run import Found, Tally

# What the tables of two kvref servers look like where no MySQL takes part, by profile.
VERSIONS: Final = {"mysql-5.6": "5.6.14"}
NEWEST: Final = "8.0.33"
# Nothing of a duel outlives it, so nothing needs to reach a disk.
LAZY: Final = ("--innodb_flush_log_at_trx_commit=0",)


@click.command("duel")
@click.argument("names", metavar="A B", nargs=2, shell_complete=catalogue.complete)
@click.option(
    "--conversations",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    metavar="N",
    help="Number of conversations.",
)
@click.option(
    "--steps", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="Steps per conversation."
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    metavar="S",
    help="Random seed. The same seed generates the same conversations.",
)
@click.option(
    "--from", "first", type=click.IntRange(0), default=0, metavar="N", help="Number of the first conversation."
)
@click.option("--only", metavar="SEED:NUMBER", help="Run only this conversation.")
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default=TEXT,
    show_default=True,
    help="Protocol of the connections. mixed: each connection uses one of the two.",
)
@click.option(
    "--batches",
    is_flag=True,
    help="Run both servers with batches of 4 writes and 7 reads. One connection writes, another one reads.",
)
@click.option(
    "--profile",
    "given",
    shell_complete=completion.profile,
    multiple=True,
    metavar="NAME",
    help="Profile of kvref. Give it twice if both targets are kvref.",
)
@folder_option("--save", help="Directory for scripts that replay the differences.")
@folder_option(
    "--database", help="Directory that keeps conversations with differences between runs; later runs try them first."
)
@file_option("--json", "json_file", help="Write the counts as JSON.")
@click.pass_context
def command(context: click.Context, /, names: tuple[str, str], only: str | None, **options: Any) -> None:
    """Run generated conversations on the targets A and B in parallel and compare every reply and every row.

    A and B are names from `kvref target list`. kvref uses the profile of the other target unless --profile is given.
    """
    seed, first, count = options["seed"], options["first"], options["conversations"]
    if only is not None:
        seed, first = _one(only)
        count = 1
    console = Console(stderr=True, highlight=False)
    with ExitStack() as stack:
        own = BATCHES if options["batches"] else ()
        sides, configuration, taking_part = _sides(names, options["given"], own, stack, console)
        configuration = replace(configuration, protocol=options["protocol"], batches=options["batches"])
        watch = stack.enter_context(_Watch(console, count, sides, own, options["save"]))
        known = known_differences.load(taking_part)
        failures = DirectoryBasedExampleDatabase(options["database"]) if options["database"] is not None else None
        run = Run(sides, seed, options["steps"], configuration, known, watch, database=failures)
        tally = run.run(range(first, first + count))
    _tell(tally, seed, (sides[0].name, sides[1].name), options["json_file"])
    context.exit(1 if tally.differences else 0)


def _one(text: str) -> tuple[int, int]:
    seed, colon, number = text.partition(":")
    if not (colon and seed.lstrip("-").isdigit() and number.isdigit()):
        raise KvrefError(f"--only {text!r}: write SEED:NUMBER, for example 7:1234")
    return int(seed), int(number)


def _sides(
    names: tuple[str, str], given: tuple[str, ...], options: tuple[str, ...], stack: ExitStack, console: Console
) -> tuple[tuple[Side, Side], Configuration, set[str]]:
    ours = [EMBEDDED, *targets.over_sql()]
    unknown = [name for name in names if name not in ours and not name.endswith("-plugin")]
    if unknown:
        raise KvrefError(
            f"{unknown[0]!r} has no mappings to compare"
            f"{choices(unknown[0], ['mysql-8.0-plugin', 'mysql-5.6-plugin', *ours])}"
        )
    plugins = [name.removesuffix("-plugin") for name in names if name not in ours]
    wanted = list(given) or plugins or ["kvref"]
    if wrong := [name for name in wanted if name not in profiles.names()]:
        raise KvrefError(f"no profile {wrong[0]!r}{choices(wrong[0], profiles.names())}")
    private: list[tuple[str, PluginTarget]] = []
    for name in names:
        if name not in ours:
            console.print(f"starting {name}", markup=False)
            private.append((name, PluginTarget(stack.enter_context(targets.plugin_server(name)))))
    version = private[0][1].version if private else VERSIONS.get(wanted[0], NEWEST)
    sides: list[Side] = []
    for name in names:
        if name not in ours:
            sides.append(Side(name, private.pop(0)[1], (*LAZY, *options)))
            continue
        profile = wanted.pop(0) if len(wanted) > 1 else wanted[0]
        console.print(f"starting {name} --profile {profile}", markup=False)
        status = f"kvref {profile}" if name == EMBEDDED else f"{name} {profile}"
        sides.append(Side(status, open_kvref(name, profile, version, stack), options))
    taking_part = {*plugins, *wanted, *given}
    kinds = {
        exclusions.INNODB if {*names}.intersection(targets.over_sql()) else "",
        exclusions.VITESS if VITESS in names else "",
    }
    rules = exclusions.rules_for({*taking_part, *kinds})
    return (sides[0], sides[1]), Configuration(version, rules), taking_part


class _Watch:
    """Shows how the run goes: a bar, and each difference as it is found."""

    def __init__(
        self, console: Console, total: int, sides: tuple[Side, Side], options: tuple[str, ...], folder: Path | None
    ) -> None:
        self._names = (sides[0].name, sides[1].name)
        self._version = sides[0].target.version
        self._options = options
        self._folder = folder
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        self._bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self._task = self._bars.add_task("", total=total)

    def __enter__(self) -> _Watch:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def step(self, text: str) -> None:
        """Say what begins now."""
        self._bars.update(self._task, description=text)

    def finished(self, tally: Tally) -> None:
        """Move the bar."""
        rate = tally.steps / tally.seconds if tally.seconds else 0
        status = f"world {tally.worlds}, {rate:,.0f} steps/s, {tally.differences} differ"
        self._bars.update(self._task, completed=tally.conversations + tally.not_run, description=status)

    def found(self, found: Found) -> None:
        """Show a difference, and keep it where a folder is given."""
        click.echo(report.describe(found, self._names))
        if self._folder is not None:
            click.echo(f"saved: {report.save(found, self._folder, self._version, self._options)}")


def _tell(tally: Tally, seed: int, names: tuple[str, str], json_file: Path | None) -> None:
    print_results(report.table(tally))
    closed = f", {tally.not_run} not run: the server does not listen" if tally.not_run else ""
    click.echo(
        f"{names[0]} against {names[1]}, seed {seed}: {tally.conversations} conversations, {tally.steps} steps,"
        f" {tally.worlds} worlds in {tally.seconds:.0f} s{closed}: {tally.differences} differ,"
        f" {tally.unrepeated.total()} differed once, {tally.known.total()} answers differ as known"
    )
    if json_file is not None:
        json_file.write_text(json.dumps(report.as_json(tally, seed, names), indent=2) + "\n", encoding="utf-8")
