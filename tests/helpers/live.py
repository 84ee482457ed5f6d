"""Real endpoints for any test that needs one.

    with target_or_skip("mysql-8.0-plugin") as target: ...
    with sql_server_or_skip("mariadb") as server: ...

A user whose machine lacks memcached or Maven still gets a green run, with the reason for each skip. Continuous
integration (CI set in the environment) gets a failure, since a suite that skips everything proves nothing.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from kvref_testbed import targets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def nightly(*values: object) -> Any:
    """Return a parameter set that only the nightly tier runs, for example of a server that needs Maven."""
    return pytest.param(*values, marks=pytest.mark.nightly)


MYSQL_8 = nightly("mysql-8.0")
MYSQL_9 = nightly("mysql-9.7")


@contextmanager
def target_or_skip(name: str, options: Sequence[str] = ()) -> Iterator[targets.Target]:
    """Boot a private instance of a target for the block; skip the test where the machine lacks what it needs.

    options: further options of its server.
    """
    with ExitStack() as stack:
        # Only booting may skip: an error of the block is the test's own.
        with missing_skips():
            target = stack.enter_context(targets.running(name, options))
        yield target


@contextmanager
def sql_server_or_skip(name: str, options: Sequence[str] = ()) -> Iterator[targets.SQLServer]:
    """Start a private SQL server without the plugin, as `target_or_skip` boots a target."""
    with ExitStack() as stack:
        with missing_skips():
            server = stack.enter_context(targets.sql_server(name, options))
        yield server


@contextmanager
def missing_skips() -> Iterator[None]:
    """Turn a lack of the machine into a skip, or into a failure where CI is set."""
    try:
        yield
    except targets.MissingError as lack:
        if os.environ.get("CI"):
            pytest.fail(f"CI is set and this machine lacks something: {lack}")
        pytest.skip(str(lack))
