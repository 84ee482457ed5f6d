"""`kvref conform-client`: judge memcached clients with a scripted server.

The work is done in `kvref_conformance.clients`; this module chooses clients, starts their adapters and shows verdicts.
Exit code 0 every required verdict holds, 1 some fail, 2 no client could be judged.
"""

from __future__ import annotations

import datetime
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from kvref.cli import output
from kvref.errors import KvrefError, SuiteError
from kvref_conformance.clients import report
from kvref_conformance.clients.adapter import AdapterError
from kvref_conformance.clients.judge import FAILS, HOLDS, UNSUPPORTED, Judged, judge_client
from kvref_conformance.clients.requirements import PROTOCOLS, Requirement, load
from kvref_conformance.clients.rows import OWN, judged_clients
from kvref_conformance.interop import kits
from kvref_conformance_cli.interop import install, matching
from kvref_conformance_cli.options import json_option, write_option
from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_conformance.interop.rows import Client
    from kvref_testbed.targets.progress import Progress

# Clients wait for timeouts more than they work.
JOBS: Final = 12
COMMAND: Final = "command"


@click.command("conform-client")
@click.argument("globs", metavar="[CLIENT]...", nargs=-1)
@click.option("--command", "words", metavar="WORDS", help="Command line of your own adapter, instead of a CLIENT.")
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default="text",
    show_default=True,
    help="Protocol of the client that --command starts.",
)
@click.option(
    "--level",
    type=click.Choice(["must", "should"]),
    default="must",
    show_default=True,
    help="Lowest requirement level that affects the exit code.",
)
@click.option("--only", metavar="GLOB", multiple=True, help="Only requirements whose ID matches. Repeatable.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.01),
    metavar="SECONDS",
    default=0.3,
    show_default=True,
    help="Timeout of the client for each reply, in seconds.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="COUNT",
    default=JOBS,
    show_default=True,
    help="Number of processes of clients that are judged at the same time.",
)
@click.option("--conversations", is_flag=True, help="Show the conversation of each failure.")
@click.option("--list", "listed", is_flag=True, help="List clients and requirements, without judging.")
@json_option
@write_option
@click.pass_context
def command(  # noqa: PLR0913, PLR0917 - an argument for each option
    context: click.Context,
    /,
    globs: tuple[str, ...],
    words: str | None,
    protocol: str,
    level: str,
    only: tuple[str, ...],
    timeout: float,
    jobs: int,
    conversations: bool,
    listed: bool,
    file: Path | None,
    page: Path | None,
) -> None:
    """Judge memcached clients: a scripted server sends them split, late, wrong and missing replies.

    CLIENT is an ID or a glob, see --list. Without CLIENT and --command, all clients are judged.

    Exit code: 0 all required verdicts hold, 1 some fail, 2 no client could be judged.
    """
    chosen = [each for each in load() if not only or any(fnmatchcase(each.id, glob) for glob in only)]
    if not chosen:
        raise KvrefError(f"no requirement matches {' or '.join(only)}: see kvref conform-client --list")
    if listed:
        _list(chosen)
        return
    if page is not None and (globs or words or only):
        raise KvrefError("--write requires a full run: remove CLIENT, --command and --only")
    with targets.Terminal() as progress:
        run = _Run(chosen, timeout, progress)
        if words is not None:
            run.judge([_Adapter(COMMAND, shlex.split(words), protocol)], jobs)
        else:
            run.judge(run.adapters(matching(judged_clients(), globs)), jobs)
    results = report.record(run.judged, run.skipped, datetime.datetime.now(datetime.UTC).date().isoformat(), timeout)
    if file is not None:
        output.write(str(file), report.dumped(results))
    if page is not None:
        _write(page, results)
    _show(results, conversations=conversations)
    if not run.judged:
        context.exit(2)
    required = {each.id for each in chosen if level == "should" or each.level == "MUST"}
    failed = any(
        each.verdicts[key].outcome == FAILS for each in run.judged.values() for key in required & set(each.verdicts)
    )
    context.exit(1 if failed else 0)


def _list(chosen: Sequence[Requirement]) -> None:
    for client in judged_clients().values():
        click.echo(f"{client.id:26} {client.title}")
    click.echo()
    for each in chosen:
        click.echo(f"{each.id:16} {each.level:6} {'/'.join(each.protocols):16} {each.statement}")


class _Adapter(NamedTuple):
    """A client to judge: name, command line of its adapter, protocol, and additional environment variables."""

    name: str
    words: Sequence[str]
    protocol: str
    environment: Mapping[str, str] = {}


class _Run:
    """Judges clients.

    Args:
        requirements: by which.
        timeout: of the clients, in seconds.
        progress: where failures are shown.

    Attributes:
        judged: results by client.
        skipped: clients that could not be judged, with reasons.
    """

    def __init__(self, requirements: Sequence[Requirement], timeout: float, progress: Progress) -> None:
        self.judged: dict[str, Judged] = {}
        self.skipped: dict[str, str] = {}
        self._requirements, self._timeout, self._progress = requirements, timeout, progress

    def adapters(self, chosen: Sequence[Client]) -> list[_Adapter]:
        """Return the adapters of clients, whose kits it installs; a client whose kit is missing is skipped."""
        all_kits = kits.load()
        needed = {each.kit for each in chosen if each.id not in OWN}
        installed = {name: install(all_kits[name], self._progress) for name in sorted(needed)}
        found = []
        for client in chosen:
            words, environment = [sys.executable, str(client.path)], dict[str, str]()
            if client.id not in OWN:
                folder, lack = installed[client.kit]
                if folder is None or lack:
                    self.skipped[client.id] = lack
                    continue
                words, environment = all_kits[client.kit].command(folder, client.path)
            found.append(_Adapter(client.id, words, client.protocol, environment))
        return found

    def judge(self, adapters: Sequence[_Adapter], jobs: int) -> None:
        """Judge clients, each group of requirements in its own process.

        What a call leaves in a process, such as a damaged heap, affects its group alone, so that no verdict depends on
        which groups are judged, or on when.

        Args:
            adapters: the clients.
            jobs: number of groups that are judged at the same time.
        """
        groups = [list(group) for _, group in groupby(self._requirements, lambda each: each.group)]
        with ThreadPoolExecutor(jobs) as pool:
            parts = {
                (one.name, place): pool.submit(self._judge_group, one, group)
                for place, group in enumerate(groups)
                for one in adapters
                if not place or any(one.protocol in each.protocols for each in group)
            }
        for one in adapters:
            try:
                found = [part.result() for (name, _), part in parts.items() if name == one.name]
            except AdapterError as error:
                self.skipped[one.name] = str(error)
                continue
            if found:
                verdicts = {key: each for part in found for key, each in part.verdicts.items()}
                self.judged[one.name] = replace(found[0], verdicts=verdicts)

    def _judge_group(self, one: _Adapter, group: Sequence[Requirement]) -> Judged:
        return judge_client(
            one.words,
            one.protocol,
            group,
            self._timeout,
            one.environment,
            lambda line: self._progress.step(f"{one.name}: {line}"),
        )


def _write(page: Path, results: report.Record) -> None:
    if results["skipped"]:
        raise KvrefError(f"not written, as clients are missing: {', '.join(results['skipped'])}")
    results = report.marked(results)
    try:
        text = report.filled(page.read_text(encoding="utf-8"), results)
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    output.write(str(page), text)
    output.write(str(report.PATH), report.dumped(results))


def _show(results: report.Record, *, conversations: bool) -> None:
    texts = {each.id: each for each in load()}
    for name, row in results["clients"].items():
        verdicts = row["verdicts"]
        for key, verdict in verdicts.items():
            if verdict["outcome"] == FAILS:
                click.echo(f"{name}: {key} {texts[key].level}: {texts[key].statement}\n    {verdict['why']}")
                if conversations:
                    click.echo("\n".join(report.conversation(verdict["steps"])))
        counts = {kind: sum(v["outcome"] == kind for v in verdicts.values()) for kind in (HOLDS, FAILS, UNSUPPORTED)}
        shown = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        click.echo(f"{name}: {row['client']} {row['version']}, {row['runtime']}: {shown}")
    for name, reason in results["skipped"].items():
        click.echo(f"{name}: skipped: {reason}")
