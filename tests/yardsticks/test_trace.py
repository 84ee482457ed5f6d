"""A command calls no more functions, of no more files, than its budget allows."""

from __future__ import annotations

import copy

import pytest

from yardsticks.trace import measure as trace

pytestmark = pytest.mark.programs


@pytest.mark.serial  # a server that is late also looks at its file, which counts
@pytest.mark.parametrize("store", ["sqlite", pytest.param("mysql-8.0", marks=[pytest.mark.live, pytest.mark.nightly])])
def test_no_command_is_beyond_its_budget(store: str) -> None:
    measured = trace.measure([store])

    assert measured, "no set-up over this store"
    assert {setup: set(commands) for setup, commands in measured.items()} == {
        setup["name"]: {command["name"] for command in setup["command"]}
        for setup in trace.setups()
        if setup["store"] == store
    }
    assert all(figures["calls"] > 0 for commands in measured.values() for figures in commands.values())
    assert trace.beyond_budget(measured) == []

    more = copy.deepcopy(measured)
    setup = next(iter(more))
    command = next(iter(more[setup]))
    more[setup][command]["calls"] += 1000
    (line,) = trace.beyond_budget(more)
    assert line.startswith(f"{setup}: {command}: ")
    assert len(trace.differences(measured, more)) == 1
