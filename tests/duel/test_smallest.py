"""A difference is shown with no step, command, word or row that it does not need."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from kvref_conformance.corpus.templates import bytes_of
from kvref_conformance.differential.configuration import Configuration
from kvref_conformance.differential.generate import Script, conversations, parts_of, run_one, start_of, world_of
from kvref_conformance.steps import Send

pytestmark = pytest.mark.long
CONFIGURATION = Configuration("8.0.33", frozenset())


class DiffersError(Exception):
    """A script differs."""


def smallest(protocol: str, differs: Callable[[Script], bool]) -> Script:
    """Return what is left of the first conversation that differs."""
    found: list[Script] = []

    def test(script: Script) -> None:
        if differs(script):
            found.append(script)
            raise DiffersError

    configuration = Configuration(CONFIGURATION.version, CONFIGURATION.rules, protocol)
    world = world_of(3, 0, configuration)
    for number in range(100):
        try:
            run_one(conversations(number, 10, configuration, world), start_of(3, number), test)
        except DiffersError:
            return found[-1]
    raise AssertionError("no conversation of a hundred differs")


def reply(script: Script) -> list[bytes]:
    return [bytes_of(step) for step in script.steps if isinstance(step, Send)]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (rb"incr ", rb"incr \S+ \S+\r\n"),
        (rb"\ndelete |^delete ", rb"delete \S+\r\n"),
        (rb"gets \S+ ", rb"gets \S+ \S+\r\n"),
    ],
)
def test_one_command_is_left_of_one_that_differs(pattern: bytes, wanted: bytes) -> None:
    small = smallest("text", lambda script: re.search(pattern, b"".join(reply(script))) is not None)
    (line,) = reply(small)
    assert re.fullmatch(wanted, line), line
    assert not any(row.startswith("INSERT") for row in small.rows)


def test_two_commands_that_need_each_other_are_left() -> None:
    def differs(script: Script) -> bool:
        lines = b"".join(reply(script))
        return 0 <= lines.find(b"decr ") < lines.rfind(b"prepend ")

    assert len(reply(smallest("text", differs))) <= 2


def test_one_frame_is_left_of_one_that_differs() -> None:
    small = smallest("binary", lambda script: any(b"\x80\x05" in data for data in reply(script)))
    (frame,) = reply(small)
    assert frame[:2] == b"\x80\x05"
    assert len(frame) < 2 * 24 + 30


def test_a_world_loses_mappings_and_their_tables() -> None:
    world = next(
        each for number in range(0, 5000, 100) if len((each := world_of(3, number, CONFIGURATION)).containers) > 4
    )
    needed, found = world.usable[0], []

    def test(part: object) -> None:
        if needed in part.containers:  # type: ignore[attr-defined]
            found.append(part)
            raise DiffersError

    with pytest.raises(DiffersError):
        run_one(parts_of(world), "parts", test)
    assert found[-1].containers == (needed,)
    assert found[-1].tables == (needed.table,)
