"""Make an endpoint read its configuration tables again."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Final

from kvref_conformance.errors import CannotJudge, CaseFailed, NotRun
from kvref_conformance.wire.connection import version_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvref.addresses import SocketAddress
    from kvref_conformance.sql.base import Database

# A plugin whose configuration is bad never opens its port; a good one takes about a second.
PORT_SECONDS: Final = 20.0
# Exit code of a --reload whose endpoint says that it cannot have this configuration, as one of several processes.
UNFIT: Final = 3


def chosen(command: str | None, database: Database, address: SocketAddress) -> Callable[[], None] | None:
    """Return the way to reload: the command given, else the plugin's own where it is active, else None.

    Args:
        command: shell command of --reload.
        database: connection behind the endpoint.
        address: the endpoint, which must answer again afterwards.
    """
    if command is not None:
        return lambda: _run(command, address)
    if database.has_plugin():
        return lambda: _load_plugin_again(database, address)
    return None


def _run(command: str, address: SocketAddress) -> None:
    # The user's own command line, given with --reload.
    done = subprocess.run(command, shell=True, check=False, capture_output=True, text=True, timeout=60)  # noqa: S602
    output = (done.stderr or done.stdout).strip()
    if done.returncode == UNFIT:
        raise NotRun(f"--reload: {output}")
    if done.returncode:
        raise CannotJudge(f"--reload: {command!r} ended with {done.returncode}: {output}")
    wait_for_port(address)


def _load_plugin_again(database: Database, address: SocketAddress) -> None:
    database.load_plugin_again()
    wait_for_port(address)


def wait_for_port(address: SocketAddress) -> None:
    """Wait until an endpoint answers that was loaded or started again.

    Raises:
        CaseFailed: it does not within PORT_SECONDS.
    """
    deadline = time.monotonic() + PORT_SECONDS
    while True:
        try:
            version_line(address)
        except CannotJudge as error:
            if time.monotonic() > deadline:
                raise CaseFailed(
                    f"after the reload the endpoint did not come back within {PORT_SECONDS:.0f} s: {error}"
                ) from error
            time.sleep(0.05)
        else:
            return
