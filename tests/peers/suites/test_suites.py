"""Test suites of other projects: what passes on memcached passes on kvref; each exception is a row with its reason."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from helpers.live import missing_skips
from peers.suites import run

EXCEPTIONS: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("exceptions.toml").read_text()
)
QUICK = "python-memcached"
KINDS = ("kvref", "memcached")
CASES = [
    pytest.param(name, kind, marks=[pytest.mark.live] if name == QUICK else [pytest.mark.live, pytest.mark.nightly])
    for name in run.SUITES
    for kind in KINDS
]


def expected(name: str, kind: str) -> dict[str, str]:
    """Return the tests that fail, and why."""
    return EXCEPTIONS.get(name, {}).get(kind, {})


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.timeout(1800)
def test_suite(name: str, kind: str, tmp_path: Path) -> None:
    try:
        with missing_skips():
            found = run.outcomes(name, kind, tmp_path)
    except run.UnavailableError as lack:
        # CI reaches the registries; a git host may be out of reach.
        required = os.environ.get("CI") and run.SUITES[name]["source"] != "git"
        pytest.fail(str(lack)) if required else pytest.skip(str(lack))
    assert found
    failed = {test for test, passed in found.items() if not passed}
    rows = set(expected(name, kind))
    assert not failed - rows, f"these fail: {sorted(failed - rows)}"
    assert not rows - failed, f"these pass or do not exist, and have a row in exceptions.toml: {sorted(rows - failed)}"


def test_each_exception_belongs_to_a_suite_and_has_a_reason() -> None:
    assert set(EXCEPTIONS) <= set(run.SUITES)
    for kinds in EXCEPTIONS.values():
        assert set(kinds) <= set(KINDS)
        assert all(reason for rows in kinds.values() for reason in rows.values())
