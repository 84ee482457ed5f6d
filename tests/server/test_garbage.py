"""Python's collections of garbage in a process that serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kvref.server import garbage


@pytest.fixture
def defaults() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("defaults")
def test_objects_of_the_start_are_exempt_from_collections_and_others_collected_rarely() -> None:
    garbage.prepare()
    assert gc.get_freeze_count() > garbage.YOUNG
    before = gc.get_stats()[0]["collections"]
    for _ in range(3 * garbage.YOUNG):
        cycle: list[object] = []
        cycle.append(cycle)
    assert 2 <= gc.get_stats()[0]["collections"] - before <= 4
