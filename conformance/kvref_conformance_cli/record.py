"""`kvref record`: hold scripted conversations with real servers and write down what they answer.

The work is done in `kvref_conformance.corpus`; this module boots the servers, two for each target, and shows how
far they are. What was recorded is written after each conversation; an interrupt takes effect at the end of the running
one, whose servers could not be left in the middle.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kvref.errors import KvrefError, SuiteError
from kvref_conformance import corpus
from kvref_conformance.corpus.record import record, script_of
from kvref_conformance.corpus.targets.memcached import MemcachedTarget
from kvref_conformance.corpus.targets.plugin import PluginTarget
from kvref_conformance_cli import traffic
from kvref_conformance_cli.options import file_option, only_conversations
from kvref_testbed import targets
from kvref_testbed.targets import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvref_conformance.corpus.conversation import Conversation
    from kvref_conformance.corpus.observe import ReplayTarget
    from kvref_conformance.corpus.record import Recording

MEMCACHED: Final = "memcached"


@click.command("record")
@click.argument("what", metavar="SCRIPTS.jsonl | HOST:PORT | unix:PATH")
@click.option(
    "--target",
    "names",
    shell_complete=catalogue.complete,
    multiple=True,
    metavar="NAME",
    help="Target to record. Repeatable. Required with SCRIPTS.jsonl.",
)
@only_conversations
@click.option("--missing", is_flag=True, help="Only conversations that have no recording of the target's version.")
@file_option(
    "--out",
    help="Output file. Recordings of other versions in it stay. With --proxy: a new file.  [default: SCRIPTS.jsonl]",
)
@click.option(
    "--proxy",
    metavar="LISTEN",
    help="Listen on this HOST:PORT or unix:PATH, pass all bytes on to the server, and record them.",
)
@file_option(
    "--mask-key",
    help="With --proxy: mask keys and values by a hash with the secret in FILE. Lengths stay the same.",
)
@click.pass_context
def command(
    context: click.Context,
    /,
    what: str,
    names: tuple[str, ...],
    only: tuple[str, ...],
    out: Path | None,
    **options: Any,
) -> None:
    """Run the conversations of SCRIPTS.jsonl twice on each target and record the replies. Or record real traffic.

    With --proxy, clients connect to LISTEN instead of the server, with the text or the binary protocol, not with TLS.
    Ctrl-C ends the recording, and what is recorded is kept. `kvref replay FILE HOST:PORT` replays it.

    Exit code: 0 all recorded, 1 some failed, 2 none could be run.
    """
    proxy, mask_key, missing = (options[name] for name in ("proxy", "mask_key", "missing"))
    if proxy is not None:
        if names or missing or only:
            raise KvrefError(
                "--proxy cannot be combined with --target, --only and --missing: they select conversations"
            )
        context.exit(traffic.record(proxy, what, out, mask_key))
    if mask_key is not None:
        raise KvrefError("--mask-key masks recorded traffic: add --proxy LISTEN")
    scripts = Path(what)
    if not names or not scripts.is_file():
        raise click.UsageError(
            f"{what}: give a file of conversations and --target NAME, or an address and --proxy LISTEN"
        )
    try:
        notebook = _Notebook(scripts, out or scripts)
    except SuiteError as error:
        raise KvrefError(str(error)) from error
    chosen = [each for each in notebook.conversations() if _fits(each, only)]
    if not chosen:
        raise KvrefError(f"--only {' '.join(map(repr, only))}: no conversation of {scripts} has a matching ID or group")
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
    stop = threading.Event()
    with ExitStack() as stack:
        pairs = [_pair(name, stack, console) for name in names]
        stack.enter_context(bars)
        pool = stack.enter_context(ThreadPoolExecutor(len(names)))
        # Entered last, so that an interrupt stops the threads before the pool waits for them and the servers end.
        stack.callback(stop.set)
        runs = [
            pool.submit(_record_all, _suited(chosen, pair[0], missing=missing), pair, notebook, bars, stop)
            for pair in pairs
        ]
        failures = sum(run.result() for run in runs)
    click.echo(f"{notebook.path}: {notebook.recorded} recorded, {failures} failed")
    context.exit(1 if failures else 0)


def _fits(conversation: Conversation, globs: Sequence[str]) -> bool:
    names = (conversation.id, conversation.group)
    return not globs or any(fnmatchcase(name, glob) for name in names for glob in globs)


def _pair(name: str, stack: ExitStack, console: Console) -> tuple[ReplayTarget, ReplayTarget]:
    console.print(f"starting two instances of {name}", markup=False)
    if name == MEMCACHED:
        boot = partial(targets.running, name)
        return MemcachedTarget(boot), MemcachedTarget(boot, used=True)
    one, other = (stack.enter_context(targets.plugin_server(name)) for _ in range(2))
    return PluginTarget(one), PluginTarget(other, used=True)


def _suited(conversations: Iterable[Conversation], target: ReplayTarget, *, missing: bool) -> list[Conversation]:
    fit = [each for each in conversations if not isinstance(target, MemcachedTarget) or target.suits(each)]
    todo = [each for each in fit if not missing or target.version not in each.versions()]
    # Other options mean another server.
    return sorted(todo, key=lambda each: each.options)


def _record_all(
    conversations: Sequence[Conversation],
    pair: tuple[ReplayTarget, ReplayTarget],
    notebook: _Notebook,
    bars: Progress,
    stop: threading.Event,
) -> int:
    version = pair[0].version
    task = bars.add_task(version, total=len(conversations))
    failures = 0
    for conversation in conversations:
        if stop.is_set():
            break
        bars.update(task, description=f"{version} {conversation.id}")
        try:
            recording = record(conversation, *pair)
        except (SuiteError, KvrefError) as error:
            failures += 1
            bars.console.print(f"{conversation.id} on {version}: {error}", markup=False)
        else:
            notebook.enter(conversation.id, recording)
            for doubt in recording.doubts:
                bars.console.print(f"{conversation.id} on {version}, {doubt}", markup=False)
        bars.advance(task)
    return failures


class _Notebook:
    """The file that is written, which several targets fill at a time."""

    def __init__(self, scripts: Path, out: Path) -> None:
        self.path = out
        self.recorded = 0
        self._lines = corpus.read(scripts)
        self._requested = list(self._lines)
        self._lock = threading.Lock()
        if out != scripts and out.exists():
            # Existing conversations keep their position, and their recordings if the requests are the same.
            before = corpus.read(out)
            changed = {
                key for key, each in self._lines.items() if key in before and script_of(before[key]) != script_of(each)
            }
            self._lines = before | {
                key: each for key, each in self._lines.items() if key not in before or key in changed
            }

    def conversations(self) -> list[Conversation]:
        return [self._lines[identifier] for identifier in self._requested]

    def enter(self, identifier: str, recording: Recording) -> None:
        with self._lock:
            self._lines[identifier] = recording.entered(self._lines[identifier])
            self.recorded += 1
            corpus.write(self.path, self._lines.values())
