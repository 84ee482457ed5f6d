"""Hooks of the pytest plugin: what whoever runs the suite may do for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvref_conformance.running.parallel import Instance


@pytest.hookspec(firstresult=True)
def pytest_kvref_instances() -> Sequence[Instance] | None:
    """Return further equal instances of the endpoint, which judge cases at the same time; None without any."""


@pytest.hookspec(firstresult=True)
def pytest_kvref_restart(address: str, settings: Mapping[str, int]) -> str | None:
    """Start the endpoint again with these settings and no others, at the same address and on the same data.

    Args:
        address: HOST:PORT or unix:PATH of the instance.
        settings: by the plugin's own names, such as daemon_memcached_w_batch_size; none: as it was before the run.

    Returns:
        "" when it answers, why it refuses the settings (it then runs without any), or None: cannot be done here.
    """
