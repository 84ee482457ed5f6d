"""`kvref` that plans no command, to compare planned commands with: `python -m kvref_testbed.steps serve ...`.

Each command takes the path of those that are not planned: the parser, then the steps of its verb one by one, see
docs/explanation/architecture.md.
"""

from __future__ import annotations

import runpy
import sys
from typing import Any

from kvref.server import server
from kvref.server.executors import executor_for
from kvref.server.executors.base import Executor


def without_plans(executor: Executor) -> Executor:
    """Return an executor, from now on without planners."""
    vars(executor)["planner"] = lambda *_: None
    return executor


def _executor_without_plans(*arguments: Any, **options: Any) -> Executor:
    return without_plans(executor_for(*arguments, **options))


def plan_nothing() -> None:
    """Let the servers of this process plan no command."""
    vars(server)[executor_for.__name__] = _executor_without_plans


if __name__ == "__main__":
    plan_nothing()
    sys.argv = ["kvref", *sys.argv[1:]]
    runpy.run_module("kvref", run_name="__main__")
