"""What tests of faults have in common: the fault with its record, and the databases, each started once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from faults.description import FULL, Fault, append, described
from faults.stores import Store, sql_store, sqlite_store
from helpers.database import database_or_skip

from kvref_testbed.targets import SQLServer

_OUTCOME = pytest.StashKey[pytest.TestReport]()
SHORT_SECONDS = 120
FULL_SECONDS = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test the time that its length needs."""
    for item in items:
        if item.path.parent == Path(__file__).parent and "fault" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(FULL_SECONDS if FULL else SHORT_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep how a test ended for its record."""
    report = yield
    if report.when == "call" or report.outcome != "passed":
        item.stash[_OUTCOME] = report
    return report


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Iterator[Fault]:
    """Yield the fault that a test tries, and record what it found."""
    tried = Fault(**described()[request.param])
    yield tried
    report = request.node.stash.get(_OUTCOME, None)
    if report is None or report.outcome == "failed":
        reply = getattr(getattr(report, "longrepr", None), "reprcrash", None)
        append(tried.record(failed=(reply.message if reply else "it ended early").splitlines()[0]))
    elif report.outcome == "skipped":
        append(tried.record(not_run=str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else "skipped"))
    else:
        append(tried.record())


@pytest.fixture(scope="session")
def databases() -> Iterator[Callable[[str], SQLServer]]:
    """Yield database servers by the names of their targets, each with the plugin's tables."""
    started: dict[str, SQLServer] = {}
    with ExitStack() as stack:

        def give(name: str) -> SQLServer:
            if name not in started:
                started[name] = stack.enter_context(database_or_skip(name))
            return started[name]

        yield give


@pytest.fixture
def store(fault: Fault, tmp_path: Path, databases: Callable[[str], SQLServer]) -> Store:
    """Return the fault's store with an empty demo table."""
    return sqlite_store(tmp_path / "kvref.sqlite") if fault.store == "sqlite" else sql_store(databases(fault.store))
