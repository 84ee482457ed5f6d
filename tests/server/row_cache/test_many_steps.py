"""No get is older than a commit that was answered before it, in many steps."""

from __future__ import annotations

import pytest
from helpers.serving import Served
from server.row_cache.checks import check, crashing

from kvref_testbed.targets import SQLServer

pytestmark = [pytest.mark.live, pytest.mark.nightly, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("seed", range(4))
def test_no_get_is_older_in_many_steps(database: SQLServer, cached: Served, seed: int) -> None:
    check(database, cached, seed, 3000, 60)


@pytest.mark.parametrize("seed", range(4))
def test_no_get_is_older_in_many_steps_with_crashes(database: SQLServer, dsn: str, seed: int) -> None:
    assert crashing(database, dsn, seed, 100, 20) > 100_000
