"""The entry point of the pytest plugin, which loads it for a run that names the suite, and does nothing otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

SUITE: Final = "kvref_conformance"


def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> None:
    """Load the plugin, with its options and fixtures, if an argument names the suite or a part of it."""
    if any(arg.partition("::")[0].partition(".")[0] == SUITE for arg in args):
        early_config.pluginmanager.import_plugin(f"{SUITE}.plugin")
