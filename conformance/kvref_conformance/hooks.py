"""Hooks of the pytest plugin: what whoever runs the suite may do for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.hookspec(firstresult=True)
def pytest_kvref_restart(settings: Mapping[str, int]) -> str | None:
    """Start the endpoint again with these settings and no others, at the same address and on the same data.

    Args:
        settings: by the plugin's own names, such as daemon_memcached_w_batch_size; none: as it was before the run.

    Returns:
        "" when it answers, why it refuses the settings (it then runs without any), or None: cannot be done here.
    """
