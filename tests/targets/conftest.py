"""What the target tests share: a state folder of their own, and `kvref target` as its users call it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from helpers import commands
from helpers.live import missing_skips

from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Kvref = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep the state in a folder of the test, so that a target the user left running is not touched."""
    folder = tmp_path / "state"
    monkeypatch.setenv("KVREF_STATE", str(folder))
    yield folder
    for file in folder.glob("*.json"):
        targets.down(file.stem)


@pytest.fixture
def kvref(state: Path) -> Kvref:
    """Run `kvref target ...` in its own process; keyword arguments are environment variables."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return commands.kvref("target", *arguments, environment=os.environ | environment, timeout=120)

    return run


@pytest.fixture
def kvref_json(kvref: Kvref) -> Callable[..., Any]:
    """Run `kvref target ... --json`, which must succeed, and give what it printed."""

    def run(*arguments: str) -> Any:
        done = kvref(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def available() -> Callable[[str], None]:
    """Skip the test where a target cannot be had on this machine, before it is booted through the command line."""
    booted: set[str] = set()

    def require(name: str) -> None:
        if name not in booted:
            with missing_skips(), targets.running(name):
                booted.add(name)

    return require
