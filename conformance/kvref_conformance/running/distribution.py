"""Runs distributed by pytest-xdist: one worker judges all cases, as an endpoint has one state."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypedDict

import pytest

if TYPE_CHECKING:
    from pathlib import Path

OUTPUT: Final = "kvref"
_GROUP: Final = "kvref"
_CASES: Final = re.compile(r"^CASES\b", re.MULTILINE)


class Judged(TypedDict):
    """What the worker that judged reports: the exit code of its run, and the lines of the summary."""

    code: int
    lines: list[str]


def distributed(config: pytest.Config) -> bool:
    """Return whether this process is a worker of xdist, or distributes tests to workers."""
    return hasattr(config, "workerinput") or config.getoption("dist", "no") != "no"


class Controller:
    """The process that distributes tests: it shows the result of the worker that judged."""

    def __init__(self) -> None:
        self._judged: list[Judged] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Return xdist's scheduler for its option --dist, with the cases as one scope."""
        return _scheduler(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the result of a worker that has ended."""
        judged = getattr(node, "workeroutput", {}).get(OUTPUT)
        if judged is not None:
            self._judged.append(judged)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Any:
        """Set the exit code."""
        if exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            session.exitstatus = max([exitstatus, *(each["code"] for each in self._judged)])
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Add the worker's lines to pytest's summary."""
        for each in self._judged:
            terminalreporter.section("kvref conformance")
            for line in each["lines"]:
                terminalreporter.write_line(line)


def configure(config: pytest.Config) -> None:
    """Let xdist, if it distributes the tests of this process, give all cases to one worker."""
    if not hasattr(config, "workerinput") and config.getoption("dist", "no") not in {"no", "each"}:
        config.pluginmanager.register(Controller())


def _scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist import scheduler  # noqa: PLC0415 - only where it is installed

    bases: dict[str, Any] = {
        "loadfile": scheduler.LoadFileScheduling,
        "loadgroup": scheduler.LoadGroupScheduling,
        "loadscope": scheduler.LoadScopeScheduling,
    }
    base = bases.get(config.getoption("dist"))

    class Scheduling(base or scheduler.LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if _has_cases(config.rootpath / nodeid.partition("::")[0]):
                return _GROUP
            return nodeid if base is None else str(super()._split_scope(nodeid))

    return Scheduling(config, log)


@cache
def _has_cases(path: Path) -> bool:
    """Return whether a file has cases; one that is not in the root folder is of the suite."""
    return not path.is_file() or _CASES.search(path.read_text(encoding="utf-8")) is not None
