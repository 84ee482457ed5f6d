"""`kvref conform --self-test`: does every mutant of the server fail the requirement that it breaks?

A mutant is a separate process. So is what judges it: hypothesis, which draws the generated cases, is not for threads.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kvref.cli.output import print_results
from kvref.errors import KvrefError
from kvref.specification import requirements
from kvref_conformance.judging import trial
from kvref_conformance.judging.verdict import FAILS, HOLDS
from kvref_testbed import targets
from kvref_testbed.mutants import CONTROL, DEFAULT_PATH, FIRST_CALL, MUTANTS, Mutant, trials_of
from kvref_testbed.mutants.mutant import planted_code
from kvref_testbed.targets import catalogue
from kvref_testbed.targets.kvref_server import KvrefInnoDB, KvrefSQLite
from kvref_testbed.targets.run import tail

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from kvref_conformance.judging.judge import Judge
    from kvref_conformance.judging.verdict import Verdict

# Most of a trial is waiting.
AT_ONCE: Final = 2
OWN_OPTIONS: Final = {"self_test", "only", "target"}
UNUSED_FIX: Final = (
    "patch what this path calls, or exclude the path in conformance/kvref_testbed/mutants/__init__.py with the reason"
)
# What `python -m` starts with a name in front of `serve`.
PROGRAM: Final = "kvref_testbed.mutants"
TRACEBACK: Final = "Traceback (most recent call last)"


def run_self_test(context: click.Context) -> int:
    """Judge the mutants and the server that is not broken; show survivors, a table and the sum.

    Args:
        context: of `kvref conform`; its --only has globs of names and requirements of mutants, none for all of them.
            --target names a kvref over a database, whose store all servers have instead of a file.

    Returns:
        The exit code: 0 all are killed, 1 one survived.

    Raises:
        KvrefError: an option makes no sense here, a server could not be judged, the unbroken one does not hold, or a
            mutant replies as the unbroken one does: its patch is not used on that path.
    """
    _refuse_other_options(context)
    target = context.params["target"] or ""
    _recipe(CONTROL, target)  # an unknown target is reported as such
    chosen = _chosen(context.params["only"], over_sql=bool(target))
    console = Console(highlight=False)
    try:
        survivors = _survivors(chosen, target, console)
    except KeyboardInterrupt:
        raise KvrefError("interrupted before every mutant was judged") from None
    survived = {_mutant(each.trial) for each in survivors}
    killed = [each for each in chosen if each.name not in survived]
    print_results(_table(chosen, killed))
    click.echo(f"{len(chosen)} mutants, {len(killed)} killed")
    if unused := [each.trial for each in survivors if not each.is_used]:
        raise KvrefError(f"the patch is not used on that path: {', '.join(unused)}: {UNUSED_FIX}")
    return 1 if survivors else 0


@dataclass(frozen=True, slots=True)
class _Tried:
    """A trial that is over.

    Args:
        trial: name of the mutant or CONTROL, with `DEFAULT_PATH` or without.
        verdicts: up to the first case that failed.
        called: of a survivor, what `_calls_patch` returns.
    """

    trial: str
    verdicts: list[Verdict]
    called: bool | None = None

    def survived(self) -> bool:
        """Return whether no case failed."""
        return all(each.verdict != FAILS for each in self.verdicts)


@dataclass(frozen=True, slots=True)
class Survivor:
    """A trial in which no case failed.

    Args:
        trial: name of the mutant, with `DEFAULT_PATH` or without.
        is_used: a function of its patch was called; if the patch changes values alone, a reply that a case compares was
            not that of the unbroken server.
    """

    trial: str
    is_used: bool

    def line(self) -> str:
        """Return what the terminal shows of it."""
        mutant = MUTANTS[_mutant(self.trial)]
        what = "survived" if self.is_used else "changes nothing"
        return f"{what}: {self.trial}, {mutant.requirement}: {mutant.about}"


def judged(name: str, wanted: Collection[str], target: str = "") -> list[Verdict]:
    """Start a mutant or the control over a fresh store and judge it up to the first case that fails.

    Args:
        name: of a mutant or CONTROL, with `DEFAULT_PATH` behind it or without.
        wanted: ids of requirements, whose cases are tried.
        target: see `run_self_test`; empty: SQLite.

    Raises:
        KvrefError: it cannot be started, or has its own error: what fails it then is not what it breaks.
    """
    with _judging(_recipe(name, target)) as judge:
        return trial.verdicts(judge, wanted)


def complaints(control: Sequence[Verdict], wanted: Collection[str]) -> list[str]:
    """Say what is wrong with the control: the case that fails, and requirements that no case of it holds.

    Args:
        control: its verdicts.
        wanted: ids of the requirements that were on trial.
    """
    failed = [each.text for each in control if each.verdict == FAILS]
    holding = {name for each in control if each.verdict == HOLDS for name in each.requirements}
    return failed or [f"{name}: no case of it holds" for name in sorted(set(wanted) - holding)]


def replies_differ(survivor: Sequence[Verdict], control: Sequence[Verdict]) -> bool:
    """Return whether a mutant replied otherwise than the unbroken server, up to keys and numbers of a run.

    Args:
        survivor: verdicts on the mutant, none of which failed.
        control: verdicts on the unbroken server, of the same cases at least.

    Returns:
        True also if no case has a conversation: generated cases keep none.
    """
    replies = {each.case: _replies(each) for each in control}
    recorded = [each for each in survivor if each.conversation]
    return not recorded or any(_replies(each) != replies.get(each.case) for each in recorded)


def _calls_patch(name: str, wanted: Collection[str], target: str) -> bool | None:
    """Judge a mutant again; return whether a function of its patch is called, None if the patch has none."""
    if not planted_code(MUTANTS[_mutant(name)]):
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = os.environ[FIRST_CALL] = str(Path(folder) / "called")
        try:
            judged(name, wanted, target)
        finally:
            del os.environ[FIRST_CALL]
        return Path(file).exists()


def _replies(verdict: Verdict) -> list[tuple[str, ...]]:
    return [(each.on, each.written[0] or each.sent, each.written[1] or each.got) for each in verdict.conversation]


def _mutant(trial: str) -> str:
    return trial.removesuffix(DEFAULT_PATH)


def _control(trial: str) -> str:
    """Return the trial of the unbroken server on the path of a trial."""
    return f"{CONTROL}{trial.removeprefix(_mutant(trial))}"


def _recipe(name: str, target: str) -> KvrefSQLite | KvrefInnoDB:
    """Return the recipe of a mutant or the control; the arguments are those of `judged`."""
    program = (PROGRAM, name)
    if not target:
        return KvrefSQLite(name, program=program)
    known = {each.name: each for each in catalogue.recipes() if isinstance(each, KvrefInnoDB)}
    if target not in known:
        raise KvrefError(f"--self-test starts kvref over SQLite, or over a database with --target {', '.join(known)}")
    return replace(known[target], name=name, program=program)


@contextmanager
def _judging(recipe: KvrefSQLite | KvrefInnoDB) -> Iterator[Judge]:
    with targets.booted(recipe) as instance:
        address, store = instance.target.memcached(), instance.target.sql or instance.target.store
        assert store is not None, "kvref serves from a store"

        def restart(settings: Mapping[str, int]) -> str:
            instance.restart(settings)
            return ""

        with trial.judging(address, store, lambda: os.kill(instance.target.pid, signal.SIGHUP), restart) as judge:
            yield judge
        log = instance.target.log
        if TRACEBACK in log.read_text(encoding="utf-8", errors="replace"):
            last = "\n".join(tail(log))
            raise KvrefError(f"the server failed with an unrelated error: fix it\n{last}")


def _refuse_other_options(context: click.Context) -> None:
    others = [
        parameter.opts[0] if isinstance(parameter, click.Option) else "HOST:PORT"
        for parameter in context.command.params
        if parameter.name is not None and parameter.name not in OWN_OPTIONS
        if context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if others:
        raise KvrefError(f"--self-test starts its own servers: remove {', '.join(others)}")


def _chosen(globs: Sequence[str], *, over_sql: bool) -> list[Mutant]:
    chosen = [
        each
        for each in MUTANTS.values()
        if not globs or any(fnmatchcase(name, glob) for glob in globs for name in (each.name, each.requirement))
        if trials_of(each.name, over_sql=over_sql)
    ]
    if not chosen:
        raise KvrefError(
            f"no mutant or requirement matches {' or '.join(globs)}: see `python -m kvref_testbed.mutants`"
        )
    return chosen


def _survivors(chosen: Sequence[Mutant], target: str, console: Console) -> list[Survivor]:
    """Judge mutants, and the unbroken server on both paths; show the survivors and return them."""
    controls: dict[str, list[Verdict]] = {}
    found: list[_Tried] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    trials = _trials(chosen, target)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("trials of mutants", total=len(trials))
        for each in _judge_all(trials, target):
            bar.advance(task)
            if _mutant(each.trial) == CONTROL:
                if wrong := complaints(each.verdicts, trials[each.trial]):
                    raise KvrefError("\n".join(["the server that is not broken does not hold:", *wrong]))
                controls[each.trial] = each.verdicts
            elif each.survived():
                found.append(each)
    survivors = [
        Survivor(
            each.trial,
            replies_differ(each.verdicts, controls[_control(each.trial)]) if each.called is None else each.called,
        )
        for each in found
    ]
    for survivor in survivors:
        console.print(survivor.line(), markup=False, soft_wrap=True)
    return survivors


def _trials(chosen: Sequence[Mutant], target: str) -> dict[str, frozenset[str]]:
    """Return the requirements on trial by name of the trial; the control, on every path of a mutant, comes first."""
    mutants = {
        name: frozenset({each.requirement}) for each in chosen for name in trials_of(each.name, over_sql=bool(target))
    }
    wanted = frozenset().union(*mutants.values())
    return {_control(name): wanted for name in mutants} | mutants


def _judge_all(trials: Mapping[str, frozenset[str]], target: str) -> Iterator[_Tried]:
    """Yield each trial when it is over."""
    # Ctrl-C reaches every process of a terminal: this one handles it and ends the others, and each its server.
    deaf = (signal.SIGINT, signal.SIG_IGN)
    with get_context("spawn").Pool(AT_ONCE, initializer=signal.signal, initargs=deaf) as pool:
        yield from pool.imap_unordered(_trial, [(name, wanted, target) for name, wanted in trials.items()])


def _trial(of: tuple[str, frozenset[str], str]) -> _Tried:
    name, wanted, target = of
    try:
        tried = _Tried(name, judged(name, wanted, target))
        if _mutant(name) != CONTROL and tried.survived():
            tried = replace(tried, called=_calls_patch(name, wanted, target))
    except Exception as error:
        # As a text, because not every exception comes through a pipe.
        raise KvrefError(f"{name} could not be judged: {error}") from error
    return tried


def _table(chosen: Sequence[Mutant], killed: Sequence[Mutant]) -> Table:
    catalogue = requirements.load()
    counts = [Counter(catalogue[each.requirement].chapter for each in mutants) for mutants in (chosen, killed)]
    table = Table(title="mutants by chapter of requirements", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    table.add_column("chapter", no_wrap=True)
    for head in ("mutants", "killed"):
        table.add_column(head, justify="right")
    for chapter in requirements.CHAPTERS:
        if counts[0][chapter]:
            table.add_row(chapter, *(str(count[chapter]) for count in counts))
    return table
