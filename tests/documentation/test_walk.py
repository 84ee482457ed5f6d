"""What the page on the architecture says about a get and a set is what a running server calls, in that order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree import ElementTree

import pytest
from documentation.blocks import DOCS

from yardsticks.trace import measure as trace

pytestmark = pytest.mark.programs

PAGE: Final = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
PICTURE: Final = DOCS / "_static" / "get-and-set.svg"
STEP: Final = re.compile(
    r"^\| (?P<number>\d+) \| (?P<stage>\w+) \| (?P<commands>[a-z, ]+) \| `(?P<function>[\w.]+)` in `kvref/(?P<file>[\w/.]+)` \| .+ \|$",
    re.MULTILINE,
)
FUNCTION: Final = re.compile(r"`(?P<function>[\w.]+)` in `kvref/(?P<file>[\w/.]+)`")
# Commands of the page by their names in yardsticks/trace/commands.toml.
SQLITE: Final = {"cached get": "get, cached", "get": "get, not cached", "set": "set"}
MYSQL: Final = {"get": "get, not cached", "set": "set"}

Call = tuple[str, str]  # file and function
Calls = dict[str, list[Call]]  # by command


def steps(command: str) -> list[Call]:
    """Return the steps of a command over SQLite."""
    rows = [row for row in STEP.finditer(PAGE) if command in row["commands"].split(", ") or row["commands"] == "all"]
    return [(row["file"], row["function"]) for row in rows]


def further_files() -> set[str]:
    """Return the files that the page lists in addition to the steps."""
    listed = re.search(r"^These steps also call functions of:\n\n((?:\*.*\n)+)", PAGE, re.MULTILINE)
    assert listed is not None
    return set(re.findall(r"`kvref/([\w/.]+)`", listed[1]))


def steps_over_mysql(command: str) -> list[Call]:
    """Return what differs for a command over a database server."""
    line = re.search(rf"^\* {command}: (.+)$", PAGE, re.MULTILINE)
    assert line is not None
    return [(found["file"], found["function"]) for found in FUNCTION.finditer(line[1])]


def misplaced(expected: Sequence[Call], calls: Sequence[Call]) -> list[str]:
    """Return what is not called after the step before it."""
    found, at = [], 0
    for step in expected:
        if step in calls[at:]:
            at = calls.index(step, at) + 1
        else:
            found.append(f"{' '.join(step)}: {'called earlier' if step in calls else 'not called'}")
    return found


def traced(name: str, commands: dict[str, str]) -> Calls:
    """Return the calls of commands in a set-up."""
    (setup,) = [each for each in trace.setups() if each["name"] == name]
    sent = {each["name"]: each for each in setup["command"]}
    with trace.started(setup) as server:
        return {command: server.calls(sent[name]) for command, name in commands.items()}


@pytest.fixture(scope="module")
def calls() -> Calls:
    return traced("sqlite", SQLITE)


@pytest.mark.parametrize("command", SQLITE)
def test_a_command_calls_the_steps_in_their_order(calls: Calls, command: str) -> None:
    assert len(steps(command)) > 3
    assert misplaced(steps(command), calls[command]) == []


@pytest.mark.parametrize("command", SQLITE)
def test_a_command_passes_no_file_that_the_page_leaves_out(calls: Calls, command: str) -> None:
    named = {file for file, _ in steps(command)} | further_files()
    assert sorted({file for file, _ in calls[command]} - named) == []


def test_the_page_lists_no_file_that_no_command_passes(calls: Calls) -> None:
    passed = {file for each in calls.values() for file, _ in each}
    assert sorted(further_files() - passed) == []
    assert sorted(further_files() & {file for command in SQLITE for file, _ in steps(command)}) == []


@pytest.mark.live
@pytest.mark.nightly
def test_the_page_says_what_differs_over_a_database_server() -> None:
    for command, found in traced("mysql", MYSQL).items():
        assert len(steps_over_mysql(command)) > 3
        assert misplaced(steps_over_mysql(command), found) == []


def test_steps_are_numbered_and_their_stages_are_those_of_the_picture() -> None:
    rows = [*STEP.finditer(PAGE)]
    assert [int(row["number"]) for row in rows] == [*range(1, len(rows) + 1)]
    assert {name for row in rows for name in row["commands"].split(", ")} == {"all", *SQLITE}
    assert {row["stage"] for row in rows} == set(boxes())


def boxes() -> Iterator[str]:
    """Yield the stages of the picture; it has the store twice, with what it does."""
    drawn = ElementTree.parse(PICTURE).getroot()
    for text in drawn.iter("{http://www.w3.org/2000/svg}text"):
        if text.get("font-size") == "15":
            assert text.text is not None
            yield text.text.partition(":")[0].lower()
