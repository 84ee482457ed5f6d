"""Fixtures for every room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.browser import browser_or_skip
from helpers.harness import Harness
from helpers.tiers import pytest_collection_modifyitems, pytest_ignore_collect, pytest_runtest_protocol
from hypothesis import HealthCheck, settings

__all__ = ["chromium", "harness", "pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_runtest_protocol"]

# The duration of an example has no meaning: other tests run at the same time. .ci/nightly chooses the second profile.
settings.register_profile("kvref", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("kvref"), max_examples=300)
settings.load_profile("kvref")


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Callable[..., Harness]]:
    """Return a maker of in-process endpoints: harness(profile, *sql)."""
    harnesses: list[Harness] = []

    def make(profile: str = "kvref", *sql: str) -> Harness:
        folder = tmp_path / str(len(harnesses))
        folder.mkdir()
        harnesses.append(Harness(folder, profile, *sql))
        return harnesses[-1]

    yield make
    for made in harnesses:
        made.close()


@pytest.fixture
def chromium() -> str:
    """Return the path of a real browser."""
    return browser_or_skip()
