"""The pytest plugin: options, the course of a run, and what pytest's words mean here.

    pytest --pyargs kvref_conformance --endpoint HOST:PORT

An entry point (`pytest_entry.py`) loads the plugin for runs that name the suite. Without --endpoint, the fixture
`conformance_endpoint` of the conftest in the root folder gives the endpoint. With pytest-xdist one worker judges all
cases. A case that holds passes; what deviates as
documented or is non-strict is an xfail; unsupported, disabled and not-run cases are skips. Exit code: 0 conforms,
1 does not, 2 could not judge.

A project may also load the plugin in its conftest (`pytest_plugins = ["kvref_conformance.plugin"]`) and write cases of
its own. Without an endpoint its run goes on, and the cases are skipped; a run of nothing but cases ends with exit code
2. If only tests of the project fail, the exit code is 1, and the report has no verdict about them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.outcomes import Exit
from rich.console import Console

from kvref.errors import SuiteError, printable
from kvref.specification import requirements
from kvref_conformance import cases, hooks
from kvref_conformance.case import Case
from kvref_conformance.errors import CannotJudge, CaseFailed
from kvref_conformance.judging import verdict
from kvref_conformance.judging.verdict import SUITE_ERROR
from kvref_conformance.reports.progress import ProgressDisplay
from kvref_conformance.reports.table import chapter_table, rendered
from kvref_conformance.running import distribution, options, selection
from kvref_conformance.running.parallel import Parallel, batches_of
from kvref_conformance.running.run import Run
from kvref_conformance.triage.replay_file import ReplayFile

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from kvref_conformance.running.parallel import Instance

RUN = pytest.StashKey[Run]()
WANTED = pytest.StashKey[selection.Wanted]()
REPLAY = pytest.StashKey[ReplayFile | None]()
INTERRUPTED = "the run was interrupted"
FINISHED = pytest.StashKey[bool]()
CHAPTER_FOLDER = Path(cases.__file__).parent
NO_ENDPOINT = (
    "no endpoint: give --endpoint HOST:PORT, or the fixture conformance_endpoint in the root folder's conftest.py"
)

# The endpoint of a project: an address, or a function that starts a server and returns its address, also as a context.
GivenEndpoint = str | Callable[[], str | AbstractContextManager[str]] | None


class Error(Exit):
    """Ends the run. pytest prints the name of the class in front of the text."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare what whoever runs the suite may do for it."""
    pluginmanager.add_hookspecs(hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of a run."""
    options.declare(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep the cases together if tests are distributed."""
    distribution.configure(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Reach the endpoint, if one is given, and make the suite's tables, or end with exit code 2.

    In a distributed run, the worker that judges does so at its first case.
    """
    config = session.config
    if config.option.collectonly or not config.option.endpoint:
        return
    try:
        _choose(config)
        if distribution.distributed(config):
            return
        run = _start(config, config.option)
    except (CannotJudge, CaseFailed, SuiteError) as error:
        raise Error(f"cannot judge: {error}", returncode=verdict.COULD_NOT_JUDGE) from error
    config.stash[RUN] = run
    config.pluginmanager.register(BrokenModules(run))


def _choose(config: pytest.Config) -> None:
    config.stash[WANTED] = selection.wanted(config.option)
    config.stash[REPLAY] = selection.replayed(config.option)


def _start(config: pytest.Config, options: Namespace) -> Run:
    """Start a run against the endpoint of the options."""

    def restart(settings: Mapping[str, int]) -> str | None:
        failure: str | None = config.hook.pytest_kvref_restart(address=options.endpoint, settings=settings)
        return failure

    return Run.start(options, restart)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules of the suite without a case of the run: to collect them takes longer than to judge one."""
    if WANTED not in config.stash or collection_path.parent != CHAPTER_FOLDER or collection_path.suffix != ".py":
        return None
    replay = config.stash[REPLAY] is not None
    return None if selection.has_any(collection_path, config.stash[WANTED], replay=replay) else True


class BrokenModules:
    """Counts a module of cases that cannot be loaded as a suite error (a hook that knows no configuration)."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a suite error for a module that could not be collected."""
        if report.failed:
            self._run.keep(
                verdict.Verdict(report.nodeid, "suite", (), SUITE_ERROR, "cannot be loaded", text=report.longreprtext)
            )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say who is judged and how."""
    return config.stash[RUN].header_lines() if RUN in config.stash else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case of a chapter; a project's tests may have fixtures of these names."""
    if not _has_cases(metafunc.module):
        return
    if "case" in metafunc.fixturenames:
        made: tuple[Case, ...] = metafunc.module.CASES
        metafunc.parametrize("case", made, ids=[case.id for case in made])
    if "replay" in metafunc.fixturenames:
        script = metafunc.config.stash.get(REPLAY, None)
        metafunc.parametrize("replay", [] if script is None else [script], ids=lambda each: each.case.id)


def _has_cases(module: object) -> bool:
    made = getattr(module, "CASES", None)
    return isinstance(made, tuple) and all(isinstance(case, Case) for case in made)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to tell progress, where pytest's own terminal output is off (`-p no:terminal`, as in `kvref conform`).

    A run of nothing but cases that has no endpoint ends with exit code 2.
    """
    if not distribution.distributed(session.config) and _nothing_to_judge(session):
        raise Error(f"cannot judge: {NO_ENDPOINT}", returncode=verdict.COULD_NOT_JUDGE)
    if RUN in session.config.stash and not session.config.pluginmanager.has_plugin("terminalreporter"):
        run = session.config.stash[RUN]
        console = Console(highlight=False)
        for line in run.header_lines():
            console.print(printable(line), markup=False, soft_wrap=True)
        run.watch = ProgressDisplay(console, Counter(chapter_of(item) for item in session.items))


def _nothing_to_judge(session: pytest.Session) -> bool:
    """Return whether a run has nothing but cases, and no endpoint for them."""
    options = session.config.option
    if options.endpoint or options.collectonly or not session.items:
        return False
    return all(is_judged(item) and not _gives_endpoint(item) for item in session.items)


def _gives_endpoint(item: pytest.Item) -> bool:
    """Return whether a project's own `conformance_endpoint` replaces the one of this module for a test."""
    known = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - pytest has no public name for it
    return len(known.get("conformance_endpoint", ())) > 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not wanted, put the chapters into their order; tests that are none of ours stay behind them.

    Behind them comes what needs another configuration, which the endpoint reads again, and last what needs settings,
    equal ones together: the endpoint is started again for each.
    """
    if WANTED not in config.stash:
        if config.option.collectonly or not any(is_judged(item) and _gives_endpoint(item) for item in items):
            return
        if config.option.dry_run:
            raise pytest.UsageError("--dry-run needs --endpoint")
        try:
            _choose(config)
        except (CannotJudge, SuiteError) as error:
            raise Error(f"cannot judge: {error}", returncode=verdict.COULD_NOT_JUDGE) from error
    replay = config.stash[REPLAY] is not None
    items[:], left = selection.split(items, config.stash[WANTED], replay=replay)
    config.hook.pytest_deselected(items=left)
    place = {chapter: number for number, chapter in enumerate(requirements.CHAPTERS)}
    items.sort(key=lambda item: place.get(chapter_of(item), len(place)) if is_judged(item) else len(place))
    groups: dict[object, int] = {None: 0}
    for item in items:
        groups.setdefault(_settings_of(item), len(groups))
    items.sort(key=lambda item: (groups[_settings_of(item)], _is_configured(item)))


def _is_configured(item: pytest.Item) -> bool:
    case = selection.case_of(item)
    return case is not None and case.setup is not None


def _settings_of(item: pytest.Item) -> object:
    case = selection.case_of(item)
    return None if case is None or case.settings is None else tuple(case.settings.items())


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With --dry-run, print what would be judged, and end; print a profile that was detected as a profile file."""
    if RUN not in session.config.stash:
        return None
    run = session.config.stash[RUN]
    if session.config.option.dry_run:
        cases = [case for case in map(selection.case_of, session.items) if case is not None]
        print(run.profile_file(), *run.plan(cases), sep="\n")  # noqa: T201 - the output of the option
        run.planned = True
        return True
    instances = session.config.hook.pytest_kvref_instances()
    if not instances:
        return None
    _judge_in_parallel(session, run, instances)
    return True


def _judge_in_parallel(session: pytest.Session, run: Run, instances: Sequence[Instance]) -> None:
    def start(instance: Instance) -> Run:
        return _start(session.config, instance.options(session.config.option))

    def judge(run: Run, items: Sequence[pytest.Item]) -> None:
        session.config.stash[RUN] = run
        for item, following in zip_longest(items, items[1:]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    batches = batches_of(session.items, lambda item: (chapter_of(item), _settings_of(item)))
    try:
        Parallel(run, instances, start, judge).judge(batches)
    except SuiteError as error:
        run.count(verdict.Verdict("parallel", "suite", (), SUITE_ERROR, str(error), text=str(error)))
    session.config.stash[RUN] = run
    cases = [selection.case_of(item) for item in session.items]
    order = {case.id: number for number, case in enumerate(cases) if case is not None}
    run.tally.verdicts.sort(key=lambda record: order.get(verdict.base(record.case), len(order)))


@pytest.fixture(scope="session")
def conformance_endpoint() -> GivenEndpoint:
    """Return the endpoint to judge; a project's conftest.py replaces this fixture.

    Returns:
        An address, `HOST:PORT` or `unix:PATH`; or a function that starts a server and returns its address, or a context
        manager that yields it. None: there is none.
    """
    return None


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest, conformance_endpoint: GivenEndpoint) -> Iterator[Run]:
    """Return the run in progress; start it with the project's endpoint, or skip the test if there is none."""
    config = request.config
    with ExitStack() as stack:
        if RUN not in config.stash:
            if not config.option.endpoint:
                config.option.endpoint = _address(conformance_endpoint, stack)
            if not config.option.endpoint:
                pytest.skip(NO_ENDPOINT)
            try:
                config.stash[RUN] = _start(config, config.option)
            except (CannotJudge, CaseFailed, SuiteError) as error:
                pytest.fail(f"cannot judge: {error}", pytrace=False)
            # The server ends with the last test, and the run before it.
            stack.callback(_finish, config)
        yield config.stash[RUN]


def _address(given: GivenEndpoint, stack: ExitStack) -> str | None:
    found = given() if callable(given) else given
    return stack.enter_context(found) if isinstance(found, AbstractContextManager) else found


def _finish(config: pytest.Config, *, interrupted: bool = False) -> None:
    if not config.stash.get(FINISHED, False):
        config.stash[FINISHED] = True
        config.stash[RUN].finish(interrupted=interrupted)


@pytest.fixture
def judge(run: Run, request: pytest.FixtureRequest) -> Callable[[Case], None]:
    """Return a function that judges a case and ends the test accordingly."""
    chapter = chapter_of(request.node)

    def judge_case(case: Case) -> None:
        run.aftermath.know(case)
        if run.watch is not None:
            run.watch.wait_for(f"{chapter}: {case.id}")
        run.end_test(run.judge.judge(case, chapter))

    return judge_case


def chapter_of(node: pytest.Item) -> str:
    """Return the chapter of a test; of a test that is none of the suite's, the name of its file without `test_`."""
    case = selection.case_of(node)
    if case is None or node.path.parent != CHAPTER_FOLDER:
        return node.path.stem.removeprefix("test_")
    return cases.chapter_of(case)


def is_judged(item: pytest.Item) -> bool:
    """Return whether a test judges: one of a case, or of a replay file."""
    return selection.case_of(item) is not None or selection.is_replay(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a failure by its own text; count anything else that a case raises as a suite error."""
    report = yield
    if report.failed and call.excinfo is not None:
        if isinstance(call.excinfo.value, CaseFailed):
            report.longrepr = str(call.excinfo.value)
        elif RUN in item.config.stash and is_judged(item):
            text = report.longreprtext
            record = verdict.Verdict(item.name, chapter_of(item), (), SUITE_ERROR, text.splitlines()[-1], text=text)
            item.config.stash[RUN].keep(record)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None]:
    """Undo what the run changed, write the report, and set the exit code before the terminal's summary is written."""
    config = session.config
    output: dict[str, object] | None = getattr(config, "workeroutput", None)
    if RUN in config.stash:
        run = config.stash[RUN]
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        _leave_rest(session, run, INTERRUPTED if interrupted else run.judge.budget.spent())
        _finish(config, interrupted=interrupted)
        if output is not None:
            output[distribution.OUTPUT] = distribution.Judged(code=run.exit_code(), lines=_summary(run))
        elif exitstatus != pytest.ExitCode.INTERRUPTED:
            others = exitstatus if exitstatus == pytest.ExitCode.TESTS_FAILED else 0
            session.exitstatus = run.exit_code() or others
    elif output is not None and _nothing_to_judge(session):
        output[distribution.OUTPUT] = distribution.Judged(
            code=verdict.COULD_NOT_JUDGE, lines=[f"cannot judge: {NO_ENDPOINT}"]
        )
    yield


def _leave_rest(session: pytest.Session, run: Run, reason: str) -> None:
    """Report the cases that were not tried, if there is a reason, as not-run."""
    if not reason or run.planned:
        return
    known = {verdict.base(each.case) for each in run.tally.verdicts}
    for item in session.items:
        case = selection.case_of(item)
        if case is not None and case.id not in known:
            run.count(verdict.Verdict(case.id, chapter_of(item), case.requirements, verdict.NOT_RUN, reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Add the table by chapter to pytest's own summary."""
    if RUN in config.stash:
        terminalreporter.section("kvref conformance")
        for line in _summary(config.stash[RUN]):
            terminalreporter.write_line(line)


def _summary(run: Run) -> list[str]:
    return [*rendered(chapter_table(run.tally)).splitlines(), *run.closing_lines()]
