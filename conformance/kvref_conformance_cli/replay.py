"""`kvref replay`: hold the recorded conversations again, with kvref itself or with a live plugin.

The work is done in `kvref_conformance.corpus`; this module chooses conversations, starts the servers and shows
what came out. Exit code 0 all as recorded (or listed), 1 something differs, 2 nothing could be tried.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvref import profiles
from kvref.addresses import parse_address
from kvref.cli.output import print_results
from kvref.errors import KvrefError, SuiteError
from kvref.storage.base import without_password
from kvref_conformance import corpus
from kvref_conformance.corpus import listing, show
from kvref_conformance.corpus.compare import ServerKind
from kvref_conformance.corpus.parallel import Job, replay_jobs
from kvref_conformance.corpus.replay import Script, recorded_with, sample
from kvref_conformance.corpus.targets import innodb
from kvref_conformance.corpus.targets.innodb import InnoDBTarget
from kvref_conformance.corpus.targets.plugin import PluginTarget
from kvref_conformance.corpus.targets.running_plugin import RunningPlugin
from kvref_conformance.corpus.targets.sqlite import SQLiteTarget
from kvref_conformance.corpus.targets.vitess import VitessTarget
from kvref_conformance.errors import CannotJudge
from kvref_conformance.traffic.replay import is_traffic
from kvref_conformance.triage import replay_file
from kvref_conformance_cli import traffic
from kvref_conformance_cli.conform import judge
from kvref_conformance_cli.options import is_address, json_option, only_conversations
from kvref_testbed import targets
from kvref_testbed.targets import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from kvref_conformance.corpus.observe import ReplayTarget
    from kvref_conformance.corpus.replay import Outcome

PROFILES: Final = ("mysql-8.0", "mysql-5.6")
EMBEDDED: Final = "kvref-sqlite"
VITESS: Final = "kvref-vitess"
# Each target has its own server.
EMBEDDED_TARGETS: Final = 3
LIVE_TARGETS: Final = 2
# The target that has the recorded version's own SQL, and that version.
# Options of other replays, with their names on the command line.
_NOT_OF_TRAFFIC: Final = {
    "sets": "set",
    "only": "only",
    "sampled": "sample",
    "chosen": "profile",
    "sql": "sql",
    "reload": "reload",
    "restart": "restart",
}
SAME_SQL: Final = ("kvref-mysql-8.0", "8.0.33")


def open_kvref(name: str, profile: str, version: str, stack: ExitStack) -> ReplayTarget:
    """Start kvref and return its target; both end with the stack.

    Args:
        name: EMBEDDED, or a target that is kvref over a SQL server.
        profile: of kvref.
        version: the MySQL version whose defaults the tables take.
        stack: ends them.

    Raises:
        TargetError: it cannot be started.
    """
    if name == EMBEDDED:
        return SQLiteTarget(stack.enter_context(targets.kvref_server(profile)), version)
    options = innodb.options(version, mariadb=name == "kvref-mariadb")
    if name == VITESS:
        server, cluster = stack.enter_context(targets.kvref_over_vitess(profile))
        return VitessTarget(server, cluster.gate, cluster.database, version)
    return InnoDBTarget(*stack.enter_context(targets.kvref_over_sql(name, profile, options)), version)


@click.command("replay")
@click.argument("what", nargs=-1, metavar="[CONVERSATION | FILE.jsonl | FAILURE.json | HOST:PORT | unix:PATH]...")
@click.option(
    "--set", "sets", multiple=True, metavar="NAME", help="Set of recordings to replay, for example core. Repeatable."
)
@only_conversations
@click.option("--sample", "sampled", is_flag=True, help="Only a fixed sample from all groups, without long waits.")
@click.option(
    "--profile",
    "chosen",
    multiple=True,
    type=click.Choice(PROFILES),
    help="Profile of kvref. Repeatable.  [default: both]",
)
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=catalogue.complete,
    help="Replay on private instances of this target: a plugin, or kvref over InnoDB.",
)
@click.option("--sql", metavar="DSN", help="MySQL server behind HOST:PORT. ALL its databases are dropped repeatedly.")
@click.option(
    "--allow-destructive", is_flag=True, help="Allow dropping the databases behind HOST:PORT. Required with HOST:PORT."
)
@click.option(
    "--model",
    type=click.Choice(profiles.names()),
    help="For recorded traffic: compare with the replies of the reference model of this profile, without an endpoint.",
)
@click.option("--timed", is_flag=True, help="For recorded traffic: send each command no earlier than it was recorded.")
@click.option("--reload", metavar="COMMAND", help="For FAILURE.json: see `kvref conform`.")
@click.option("--restart", metavar="COMMAND", help="For FAILURE.json: see `kvref conform`.")
@json_option
@click.pass_context
def command(context: click.Context, /, what: tuple[str, ...], file: Path | None, **options: Any) -> None:
    """Replay recorded conversations and compare every reply. Default: all of them, on kvref over SQLite.

    FAILURE.json is a file written by `kvref conform`: its conversation is replayed on fresh keys. --sql and the other
    options have the same meaning as in that command.

    If FILE.jsonl is traffic recorded by `kvref record --proxy`, it is replayed on HOST:PORT, --target NAME or --model
    PROFILE alone, and the differences are grouped by requirement. The endpoint should be empty; its items are changed.

    Exit code: 0 all replies match or their difference is documented, 1 some differ, 2 none could be run.
    """
    addresses = [word for word in what if is_address(word)]
    words = [word for word in what if word not in addresses]
    if failures := [word for word in words if word.endswith(".json")]:
        if failures != words or len(addresses) > 1:
            raise KvrefError(
                "FAILURE.json cannot be combined with other conversations: give only it and one HOST:PORT,"
                " unix:PATH or --target"
            )
        address = next(iter(addresses), None)
        context.exit(max(_failure(each, address, options) for each in failures))
    if recordings := [word for word in words if _is_file(word) and is_traffic(Path(word))]:
        context.exit(_traffic(recordings, words, addresses, file, options))
    for name in ("timed", "model"):
        if options[name]:
            raise KvrefError(f"--{name} replays recorded traffic: give a FILE.jsonl of `kvref record --proxy`")
    try:
        scripts = [each for each in _scripts(words, options["sets"]) if _fits(each, options["only"])]
        jobs = _jobs(
            scripts, addresses, **{name: options[name] for name in ("chosen", "target", "sql", "allow_destructive")}
        )
    except (CannotJudge, SuiteError) as error:
        raise KvrefError(str(error)) from error
    if options["sampled"]:
        jobs = [replace(job, scripts=sample(job.scripts)) for job in jobs]
    versions = ", ".join(job.version for job in jobs)
    if not any(job.scripts for job in jobs):
        raise KvrefError(f"nothing to replay: no selected conversation has a recording of {versions}")
    outcomes = _replay(jobs)
    # The list is about kvref and the package's own sets.
    idle = listing.idle(jobs[0].rows, _recorded()) if jobs[0].rows and not any(map(_is_file, words)) else []
    _tell(outcomes, idle)
    if file is not None:
        file.write_text(json.dumps(show.as_json(outcomes, idle), indent=1) + "\n", encoding="utf-8")
    context.exit(1 if idle or any(outcome.fails for outcome in outcomes) else 0)


def _failure(file: str, address: str | None, options: dict[str, Any]) -> int:
    path = Path(file).resolve()
    try:
        profile = replay_file.read(path).profile
    except CannotJudge as error:
        raise KvrefError(str(error)) from error
    given = {name: options[name] for name in ("sql", "reload", "restart", "allow_destructive")}
    return judge(address, options["target"], {**given, "profile": profile, "replay": str(path), "level": "quirk"})


def _traffic(
    recordings: Sequence[str],
    words: Sequence[str],
    addresses: Sequence[str],
    file: Path | None,
    options: dict[str, Any],
) -> int:
    """Replay one recording of traffic; return the exit code."""
    unused = [f"--{name}" for option, name in _NOT_OF_TRAFFIC.items() if options[option] not in {None, False, ()}]
    if unused:
        raise KvrefError(f"{', '.join(unused)}: not for recorded traffic, which is replayed as a whole: leave it out")
    target, model, timed = options["target"], options["model"], options["timed"]
    endpoints = len(addresses) + (target is not None) + (model is not None)
    if list(recordings) != list(words) or len(words) > 1 or endpoints != 1:
        raise KvrefError(
            "recorded traffic is replayed alone: give one FILE.jsonl, and HOST:PORT, unix:PATH, --target NAME or"
            " --model PROFILE"
        )
    path = Path(recordings[0])
    if model is not None:
        if timed:
            raise KvrefError("--timed: the model has no clock: leave it out")
        return traffic.replay_on_model(path, model, file)
    if target is not None:
        with targets.running(target) as running:
            return traffic.replay_file(path, (running.host, running.port), file, timed=timed)
    if not options["allow_destructive"]:
        raise KvrefError(f"items of {addresses[0]} would be changed: add --allow-destructive to allow it")
    return traffic.replay_file(path, parse_address(addresses[0]).socket_address, file, timed=timed)


def _scripts(words: Sequence[str], sets: Sequence[str]) -> list[Script]:
    if not words and not sets:
        sets = corpus.SETS
    scripts = [Script(f"{name}:{key}", each) for name in sets for key, each in corpus.load(name).items()]
    for word in words:
        if _is_file(word):
            path = Path(word)
            scripts += [Script(f"{path.stem}:{key}", each) for key, each in corpus.read(path).items()]
        else:
            scripts.append(Script(word, corpus.find(word)))
    return scripts


def _is_file(word: str) -> bool:
    return word.endswith(".jsonl")


def _fits(script: Script, globs: Sequence[str]) -> bool:
    names = (script.citation, script.conversation.id, script.conversation.group)
    return not globs or any(fnmatchcase(name, glob) for name in names for glob in globs)


def _jobs(
    scripts: Sequence[Script],
    addresses: Sequence[str],
    *,
    chosen: Sequence[str],
    target: str | None,
    sql: str | None,
    allow_destructive: bool,
) -> list[Job]:
    if bool(addresses) != (sql is not None) or len(addresses) > 1:
        raise KvrefError(
            "to replay on a running endpoint, give one HOST:PORT or unix:PATH, and --sql with its MySQL server"
        )
    over_sql = target in targets.over_sql()
    if sum(map(bool, (addresses, target, chosen and not over_sql))) > 1:
        raise KvrefError(
            "an address, --target and --profile exclude each other, except --profile with a target of kvref"
            " over InnoDB: give one"
        )
    if addresses and sql is not None:
        if not allow_destructive:
            raise KvrefError(
                f"all databases of {without_password(sql)} would be dropped: add --allow-destructive to allow it"
            )
        return [_running(RunningPlugin(parse_address(addresses[0]).socket_address, sql), scripts)]
    if target is not None and over_sql:
        return [_kvref(target, name, scripts) for name in chosen or PROFILES]
    if target is not None:
        return [_private(target, scripts)]
    return [_kvref(EMBEDDED, name, scripts) for name in chosen or PROFILES]


def _kvref(name: str, profile: str, scripts: Sequence[Script]) -> Job:
    version = str(profiles.load(profile)["identity.version"])

    def open_target(stack: ExitStack) -> ReplayTarget:
        return open_kvref(name, profile, version, stack)

    rows, count = (listing.load(), EMBEDDED_TARGETS) if name == EMBEDDED else (listing.load(name), LIVE_TARGETS)
    kind = ServerKind.KVREF if (name, version) == SAME_SQL else ServerKind.KVREF_OVER_OTHER_SQL
    return Job(version, recorded_with(scripts, version), rows, count, open_target, kind)


def _private(name: str, scripts: Sequence[Script]) -> Job:
    version = str(profiles.load(catalogue.profile_of(name))["identity.version"])

    def open_target(stack: ExitStack) -> ReplayTarget:
        return PluginTarget(stack.enter_context(targets.plugin_server(name)))

    return Job(version, recorded_with(scripts, version), (), LIVE_TARGETS, open_target, ServerKind.PLUGIN)


def _running(machine: RunningPlugin, scripts: Sequence[Script]) -> Job:
    target = PluginTarget(machine)
    return Job(target.version, recorded_with(scripts, target.version), (), 1, lambda _: target, ServerKind.PLUGIN)


def _replay(jobs: Sequence[Job]) -> list[Outcome]:
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {job.version: bars.add_task(job.version, total=len(job.scripts)) for job in jobs}
        return replay_jobs(jobs, lambda version: bars.advance(tasks[version]))


def _recorded() -> set[tuple[str, str]]:
    return {
        (f"{name}:{key}", version)
        for name in corpus.SETS
        for key, each in corpus.load(name).items()
        for version in each.versions()
    }


def _tell(outcomes: Sequence[Outcome], idle: Sequence[str]) -> None:
    for outcome in outcomes:
        if outcome.fails:
            click.echo(show.conversation_text(outcome) + "\n")
    for glob in idle:
        click.echo(f"not_replayed.toml: {glob} matches no recorded conversation: remove it\n")
    print_results(show.table(outcomes))
    click.echo(show.summary(outcomes))
