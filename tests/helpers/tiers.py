"""Which tests are unit tests, in which order tests run, and the guard that unit tests start no program.

docs/development/tests.md lists the tiers. `live`, `long`, `programs`, `serial` and `nightly` are marks in the test files; `unit` is derived: a test is
a unit test if neither its module nor its fixtures import anything that starts a program.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

TESTS: Final = Path(__file__).parents[1]
NOT_UNIT: Final = frozenset({"live", "long", "programs", "serial", "nightly"})
# Modules that start programs.
STARTERS: Final = frozenset(
    {"subprocess", "psutil", "kvref_testbed.targets"}
    | {
        f"helpers.{name}"
        for name in ("commands", "live", "serving", "database", "faulty", "proxy", "browser", "warm", "guide")
    }
)
# Audit events of programs that start; of `multiprocessing` too.
PROGRAM_EVENTS: Final = frozenset({"subprocess.Popen", "os.posix_spawn", "os.system", "os.exec", "os.fork"})
_IMPORT: Final = re.compile(rf"^(?:from|import) (?:{'|'.join(map(re.escape, sorted(STARTERS)))})\b", re.MULTILINE)
_SERIAL: Final = re.compile(r"\bpytest\.mark\.serial\b")
# A file whose tests are all nightly.
_NIGHTLY: Final = re.compile(r"^pytestmark = .*\bpytest\.mark\.nightly\b", re.MULTILINE)

_running: list[str] = []  # the unit test that runs, if one does


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that have no test of the tier: each worker imports what is collected, and that takes seconds."""
    expression = config.getoption("markexpr")
    if collection_path.suffix != ".py" or not (expression == "unit" or "not nightly" in expression):
        return None
    source = collection_path.read_text(encoding="utf-8")
    without = [_NIGHTLY, _IMPORT] if expression == "unit" else [_NIGHTLY]
    serial = not expression.startswith("serial") or _SERIAL.search(source)
    return True if not serial or any(each.search(source) for each in without) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser as nightly, and unit tests; run these last: tests of live servers take longest and begin first."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("nightly")
        if isinstance(item, pytest.Function) and _is_unit(item):
            item.add_marker("unit")
    items.sort(key=lambda item: item.get_closest_marker("unit") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a unit test fail if it starts a program."""
    if item.get_closest_marker("unit") is None:
        return (yield)
    _running.append(item.nodeid)
    try:
        return (yield)
    finally:
        _running.clear()


def _refuse_programs(event: str, arguments: tuple[Any, ...]) -> None:
    if _running and event in PROGRAM_EVENTS:
        raise RuntimeError(
            f"{_running[0]} starts a program ({event} {arguments[:1]}): mark it, see docs/development/tests.md"
        )


sys.addaudithook(_refuse_programs)


def _is_unit(item: pytest.Function) -> bool:
    if NOT_UNIT & {mark.name for mark in item.iter_markers()} or _module_starts_programs(item.module):
        return False
    fixtures = [each.func for found in item._fixtureinfo.name2fixturedefs.values() for each in found]
    return not any(_leads_to_programs(_globals_of(each)) for each in fixtures)


def _globals_of(function: object) -> Iterable[object]:
    """Return the global objects that a fixture refers to."""
    if not isinstance(function, FunctionType):
        return []
    return [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]


@cache
def _module_starts_programs(module: ModuleType) -> bool:
    return _leads_to_programs(vars(module).values())


def _leads_to_programs(objects: Iterable[object]) -> bool:
    """Return whether objects come from a module that starts programs, or from one of the tests that imports such."""
    waiting = _modules_of(objects)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in STARTERS or name.startswith("kvref_testbed.targets."):
            return True
        seen.add(name)
        module = sys.modules.get(name)
        if module is not None and TESTS in Path(getattr(module, "__file__", None) or "/").parents:
            waiting |= _modules_of(vars(module).values()) - seen
    return False


def _modules_of(objects: Iterable[object]) -> set[str]:
    names = (each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None) for each in objects)
    return {name for name in names if isinstance(name, str)}
