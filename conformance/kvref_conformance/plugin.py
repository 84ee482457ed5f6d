"""The pytest plugin: options, the course of a run, and what pytest's words mean here.

    pytest --pyargs kvref_conformance -p kvref_conformance.plugin --endpoint HOST:PORT

Options live here because those of a conftest are not known with --pyargs. A case that holds passes, a documented
deviation is an xfail, an unsupported or not judged case a skip. Exit code: 0 conforms, 1 deviates, 2 could not judge.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from kvref_conformance import hooks, verdict
from kvref_conformance.cases import CHAPTERS
from kvref_conformance.errors import CannotJudge, CaseFailed, SuiteError
from kvref_conformance.report.progress import Watch
from kvref_conformance.report.table import chapter_table, rendered
from kvref_conformance.run import Run
from kvref_conformance.verdict import DEVIATES, FAILS, HOLDS, SUITE_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kvref_conformance.case import Case

RUN = pytest.StashKey[Run]()
DEFAULT_EXAMPLES = 60
DEFAULT_HISTORIES = 15
DEFAULT_SEED = 20120929  # the day the mapping was published


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare what whoever runs the suite may do for it."""
    pluginmanager.add_hookspecs(hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of a run."""
    group = parser.getgroup("kvref", "conformance of memcached over SQL tables")
    group.addoption("--endpoint", metavar="HOST:PORT", help="the endpoint to judge")
    group.addoption("--sql", metavar="DSN", help="the database behind it: mysql://user@host:port/ or sqlite:///PATH")
    group.addoption(
        "--profile", metavar="NAME", default="auto", help="facts to judge it by (default: ask the endpoint)"
    )
    group.addoption(
        "--reload", metavar="COMMAND", help="shell command that makes it read its configuration tables again"
    )
    group.addoption(
        "--restart",
        metavar="COMMAND",
        help="shell command that starts it again with the settings behind it, NAME=VALUE",
    )
    group.addoption("--deviations", metavar="FILE", help="your own list of what it is known not to keep")
    group.addoption(
        "--update-deviations", action="store_true", help="write that list anew, so that the same run conforms"
    )
    group.addoption("--report", metavar="DIR", help="write report.jsonl and report.html there")
    group.addoption(
        "--examples",
        metavar="N",
        type=int,
        default=DEFAULT_EXAMPLES,
        help="random conversations (default: %(default)s)",
    )
    group.addoption(
        "--histories",
        metavar="N",
        type=int,
        default=DEFAULT_HISTORIES,
        help="histories of three connections under each group of settings (default: %(default)s)",
    )
    group.addoption(
        "--seed", metavar="S", type=int, default=DEFAULT_SEED, help="of the random conversations (default: %(default)s)"
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Reach the endpoint and make the suite's tables, or end with exit code 2."""
    if session.config.option.collectonly:
        return
    try:
        run = Run.start(
            session.config.option, lambda settings: session.config.hook.pytest_kvref_restart(settings=settings)
        )
    except (CannotJudge, CaseFailed, SuiteError) as error:
        pytest.exit(f"cannot judge: {error}", returncode=verdict.COULD_NOT_JUDGE)
    session.config.stash[RUN] = run
    session.config.pluginmanager.register(BrokenModules(run))


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
    """Make one test of each case of a chapter."""
    if "case" in metafunc.fixturenames:
        cases: tuple[Case, ...] = metafunc.module.CASES
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to tell progress, where pytest's own terminal output is off (`-p no:terminal`, as in `kvref conform`)."""
    if RUN in session.config.stash and not session.config.pluginmanager.has_plugin("terminalreporter"):
        run = session.config.stash[RUN]
        console = Console(highlight=False)
        for line in run.header_lines():
            console.print(line, markup=False, soft_wrap=True)
        run.watch = Watch(console, Counter(chapter_of(item) for item in session.items))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the chapters into their order; tests that are none of ours stay behind them.

    What needs settings comes last, equal ones together: the endpoint is started again for each.
    """
    place = {chapter: number for number, chapter in enumerate(CHAPTERS)}
    items.sort(key=lambda item: place.get(chapter_of(item), len(place)))
    groups: dict[object, int] = {None: 0}
    for item in items:
        groups.setdefault(_settings_of(item), len(groups))
    items.sort(key=lambda item: groups[_settings_of(item)])


def _settings_of(item: pytest.Item) -> object:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    case = parameters.get("case")
    settings = getattr(case, "settings", None)
    return None if settings is None else tuple(settings.items())


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Run:
    """Return the run in progress."""
    return request.config.stash[RUN]


@pytest.fixture
def judge(run: Run, request: pytest.FixtureRequest) -> Callable[[Case], None]:
    """Return a function that judges a case and ends the test accordingly."""
    chapter = chapter_of(request.node)

    def judge_case(case: Case) -> None:
        end_test(run, run.judge.judge(case, chapter))

    return judge_case


def chapter_of(node: pytest.Item) -> str:
    """Return the chapter of a test: the name of its file without `test_`."""
    return node.path.stem.removeprefix("test_")


def end_test(run: Run, record: verdict.Verdict) -> None:
    """Keep a verdict and end the test with pytest's word for it."""
    __tracebackhide__ = True
    record = run.keep(record)
    if record.verdict == FAILS:
        raise CaseFailed(record.text)
    if record.verdict == DEVIATES:
        pytest.xfail(record.reason)
    if record.verdict != HOLDS:
        pytest.skip(f"{record.verdict}: {record.reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a failure by its own text; count anything else that is raised as a suite error."""
    report = yield
    if report.failed and call.excinfo is not None:
        if isinstance(call.excinfo.value, CaseFailed):
            report.longrepr = str(call.excinfo.value)
        elif RUN in item.config.stash:
            text = report.longreprtext
            record = verdict.Verdict(item.name, chapter_of(item), (), SUITE_ERROR, text.splitlines()[-1], text=text)
            item.config.stash[RUN].keep(record)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None]:
    """Undo what the run changed, write the report, and set the exit code before the terminal's summary is written."""
    if RUN in session.config.stash:
        run = session.config.stash[RUN]
        run.finish(interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)
        if exitstatus != pytest.ExitCode.INTERRUPTED:
            session.exitstatus = run.exit_code()
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Add the table by chapter to pytest's own summary."""
    if RUN in config.stash:
        run = config.stash[RUN]
        terminalreporter.section("kvref conformance")
        for line in (*rendered(chapter_table(run.tally)).splitlines(), *run.closing_lines()):
            terminalreporter.write_line(line)
