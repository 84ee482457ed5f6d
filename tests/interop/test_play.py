"""What the lines of a script become: judged against what must come, and honest about scripts that fail."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from kvref_conformance.interop import kits
from kvref_conformance.interop.play import CANNOT, NOT_RUN, WORKS, WRONG, Cell, play
from kvref_conformance.interop.rows import Feature

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.programs

GET = Feature("get", "get", ("get",), "", (True, "one", None))
INCR = Feature("incr", "incr", ("incr",), "", (1,))
HEAD = 'print(\'{"client": "x", "version": "1.2", "runtime": "Any 1"}\', flush=True)'
REPORTED = 'print(\'{"feature": "get", "came": [true, "one", null]}\', flush=True)'


def cells(script: str, patience: float = 20) -> dict[str, Cell]:
    words = [sys.executable, "-c", script]
    return play(words, {}, ["127.0.0.1", "11211", "text", "p"], [GET, INCR], patience).cells


def test_what_came_is_compared_as_json() -> None:
    one_for_true = 'print(\'{"feature": "get", "came": [1, "one", null]}\')'
    found = cells(f'{HEAD}; {one_for_true}; print(\'{{"feature": "incr", "came": [1]}}\')')
    assert found == {"get": Cell(WRONG, '[1, "one", null]'), "incr": Cell(WORKS)}


def test_the_script_gets_its_arguments_and_its_environment() -> None:
    script = f'import os, sys; {HEAD}; print(\'{{"feature": "get", "came": ["%s %s"]}}\' % (sys.argv[1:], os.environ[\'A\']))'
    found = play([sys.executable, "-c", script], {"A": "b"}, ["h", "1"], [GET])
    assert (found.version, found.runtime) == ("1.2", "Any 1")
    assert found.cells["get"].why == "[\"['h', '1'] b\"]"


def test_what_a_client_has_no_call_for_is_no_fault() -> None:
    line = '{"feature": "incr", "came": [], "cannot": "no call"}'
    assert cells(f"{HEAD}; {REPORTED}; print('{line}')") == {"get": Cell(WORKS), "incr": Cell(CANNOT, "no call")}


def test_a_script_that_dies_halfway_is_wrong_in_the_rest() -> None:
    found = cells(f"{HEAD}; {REPORTED}; import sys; sys.exit('broken')")
    assert found == {"get": Cell(WORKS), "incr": Cell(WRONG, "the script ended with 1: broken")}


def test_a_script_that_hangs_is_wrong_in_the_rest() -> None:
    found = cells(f"{HEAD}; {REPORTED}; import signal; signal.pause()", patience=1)
    assert found == {"get": Cell(WORKS), "incr": Cell(WRONG, "the script did not end in 1 s:")}


def test_a_script_without_its_library_did_not_run() -> None:
    found = cells("import no_such_library")
    assert found["get"].outcome == NOT_RUN
    assert "No module named 'no_such_library'" in found["get"].why


def test_a_program_that_is_missing_did_not_run() -> None:
    found = play(["/nonexistent/program"], {}, [], [GET])
    assert found.cells["get"].outcome == NOT_RUN


def test_a_kit_without_its_tool_says_how_to_get_it(tmp_path: Path) -> None:
    kit = kits.Kit("php", {"tools": {"no-such-php": "php-cli"}, "packages": ["php-memcached"]})
    with pytest.raises(kits.KitError, match="no no-such-php: apt-get install php-cli php-memcached"):
        kit.build(tmp_path)
