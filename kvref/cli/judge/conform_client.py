"""`kvref conform-client`: judge memcached clients with a scripted server.

The work is done in `kvref_conformance.clients`; this module chooses clients, starts their adapters and shows verdicts.
Exit code 0 every required verdict holds, 1 some fail, 2 no client could be judged.
"""

from __future__ import annotations

import datetime
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvref.cli import output
from kvref.cli.judge.interop import install, matching, write_option
from kvref.errors import KvrefError, SuiteError
from kvref_conformance.clients import report
from kvref_conformance.clients.adapter import AdapterError
from kvref_conformance.clients.judge import FAILS, HOLDS, UNSUPPORTED, Judged, judge_client
from kvref_conformance.clients.requirements import PROTOCOLS, Requirement, load
from kvref_conformance.clients.rows import OWN, judged_clients
from kvref_conformance.interop import kits
from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvref_conformance.interop.rows import Client
    from kvref_testbed.targets.progress import Progress

# Clients wait for timeouts more than they work.
AT_ONCE: Final = 6
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
@click.option("--conversations", is_flag=True, help="Show the conversation of each failure.")
@click.option("--list", "listed", is_flag=True, help="List clients and requirements, without judging.")
@output.json_option
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
            run.judge(COMMAND, shlex.split(words), protocol, {})
        else:
            run.judge_all(matching(judged_clients(), globs))
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

    def judge_all(self, chosen: Sequence[Client]) -> None:
        """Judge clients by name; install their kits first."""
        all_kits = kits.load()
        needed = {each.kit for each in chosen if each.id not in OWN}
        installed = {name: install(all_kits[name], self._progress) for name in sorted(needed)}

        def one(client: Client) -> None:
            words, environment = [sys.executable, str(client.path)], dict[str, str]()
            if client.id not in OWN:
                folder, lack = installed[client.kit]
                if folder is None or lack:
                    self.skipped[client.id] = lack
                    return
                words, environment = all_kits[client.kit].command(folder, client.path)
            self.judge(client.id, words, client.protocol, environment)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(one, client) for client in chosen]:
                done.result()
        order = [each.id for each in chosen]
        self.judged = {name: self.judged[name] for name in order if name in self.judged}

    def judge(self, name: str, words: Sequence[str], protocol: str, environment: dict[str, str]) -> None:
        """Judge one client."""
        try:
            self.judged[name] = judge_client(
                words,
                protocol,
                self._requirements,
                self._timeout,
                environment,
                lambda line: self._progress.step(f"{name}: {line}"),
            )
        except AdapterError as error:
            self.skipped[name] = str(error)


def _write(page: Path, results: report.Record) -> None:
    if results["skipped"]:
        raise KvrefError(f"not written, as clients are missing: {', '.join(results['skipped'])}")
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
